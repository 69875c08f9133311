"""What kind of loader is profiled and how it is set up, as far as it tells."""

from __future__ import annotations

import os
from typing import Any

from brimful.profiling.figures import LoaderFacts
from brimful.profiling.makers import is_native_loader, is_torch_loader, maker_of

_NATIVE_SETTINGS = (
    "batch_size",
    "seq_len",
    "packing",
    "overlong",
    "layout",
    "shuffle",
    "io",
    "accumulate",
    "device",
    "pin_memory",
)
_TORCH_SETTINGS = ("batch_size", "drop_last", "pin_memory", "persistent_workers", "timeout")


def facts_of(loader: Any, *, simulated_step: float | None = None) -> LoaderFacts:
    """The facts of a loader or any other iterable."""
    common: dict[str, Any] = {
        "name": f"{type(loader).__module__}.{type(loader).__qualname__}",
        "cores": len(os.sched_getaffinity(0)),
        "simulated_step": simulated_step,
    }
    maker = maker_of(loader)
    if is_native_loader(maker):
        config = maker.config
        return LoaderFacts(
            kind="brimful",
            workers=config.num_workers,
            depth=config.depth if config.num_workers else 0,
            settings={name: getattr(config, name) for name in _NATIVE_SETTINGS},
            **common,
        )
    if is_torch_loader(maker):
        return LoaderFacts(
            kind="torch",
            workers=maker.num_workers,
            depth=(maker.prefetch_factor or 0) * maker.num_workers,
            settings={name: getattr(maker, name) for name in _TORCH_SETTINGS},
            **common,
        )
    return LoaderFacts(kind="iterable", **common)
