"""Who makes a loader's batches, and which clock goes with it."""

from __future__ import annotations

import sys
from typing import Any

from brimful.loader import DataLoader
from brimful.profiling.clocks import WaitClock
from brimful.profiling.native_clock import NativeClock

# Under which names loaders around loaders keep them: Accelerate's, and those for trainers here.
_INNER = ("base_dataloader", "loader", "_loader")


def is_torch_loader(loader: Any) -> bool:
    """Whether it is torch's DataLoader or one derived of it, as torchdata's and brimful's are."""
    data = sys.modules.get("torch.utils.data")  # absent: nobody has made one
    return data is not None and isinstance(loader, data.DataLoader)


def is_native_loader(loader: Any) -> bool:
    """Whether threads of brimful make its batches."""
    return isinstance(loader, DataLoader) and not is_torch_loader(loader)


def maker_of(loader: Any) -> Any:
    """The loader that makes the batches which `loader` hands out; itself where none is known."""
    attributes = getattr(loader, "__dict__", {})
    if not is_native_loader(loader):
        for inner in map(attributes.get, _INNER):
            if is_native_loader(inner) or is_torch_loader(inner):
                return maker_of(inner)
    return loader


def clock_of(loader: Any) -> WaitClock:
    """The one that tells most of how batches are made."""
    maker = maker_of(loader)
    if is_native_loader(maker):
        return NativeClock(maker)
    if is_torch_loader(maker):
        from brimful.profiling.torch_clock import TorchClock

        return TorchClock(maker, handed_out_by=loader)
    return WaitClock()
