"""Which clock goes with a loader."""

from __future__ import annotations

from typing import Any

from brimful.profiling.clocks import WaitClock
from brimful.profiling.facts import is_native_loader
from brimful.profiling.native_clock import NativeClock


def clock_of(loader: Any) -> WaitClock:
    """The one that tells most of how its batches are made."""
    return NativeClock(loader) if is_native_loader(loader) else WaitClock()
