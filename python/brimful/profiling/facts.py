"""What kind of loader is profiled and how it is set up, as far as it tells."""

from __future__ import annotations

import os
import sys
from typing import Any

from brimful.loader import DataLoader
from brimful.profiling.figures import LoaderFacts

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


def is_torch_loader(loader: Any) -> bool:
    """Whether it is torch's DataLoader or one derived of it, as torchdata's and brimful's are."""
    data = sys.modules.get("torch.utils.data")  # absent: nobody has made one
    return data is not None and isinstance(loader, data.DataLoader)


def is_native_loader(loader: Any) -> bool:
    """Whether threads of brimful make its batches."""
    return isinstance(loader, DataLoader) and not is_torch_loader(loader)


def facts_of(loader: Any, *, simulated_step: float | None = None) -> LoaderFacts:
    """The facts of a loader or any other iterable."""
    common: dict[str, Any] = {
        "name": f"{type(loader).__module__}.{type(loader).__qualname__}",
        "cores": len(os.sched_getaffinity(0)),
        "simulated_step": simulated_step,
    }
    if is_native_loader(loader):
        config = loader.config
        return LoaderFacts(
            kind="brimful",
            workers=config.num_workers,
            depth=config.depth if config.num_workers else 0,
            settings={name: getattr(config, name) for name in _NATIVE_SETTINGS},
            **common,
        )
    if is_torch_loader(loader):
        return LoaderFacts(
            kind="torch",
            workers=loader.num_workers,
            depth=(loader.prefetch_factor or 0) * loader.num_workers,
            settings={name: getattr(loader, name) for name in _TORCH_SETTINGS},
            **common,
        )
    return LoaderFacts(kind="iterable", **common)
