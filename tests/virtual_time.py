"""A clock that stands still unless a test moves it, in the place of those that a profile reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

_READERS = ("rows", "stopwatch", "fetch_times", "profiler")


class VirtualTime:
    """Seconds as exact multiples of a power of two, so that sums of them are exact."""

    def __init__(self) -> None:
        self.now = 1024.0
        self.running = 0.0  # of the calling thread

    def sleep(self, ticks: float) -> None:
        """Time goes by."""
        self.now += ticks / 1024

    def work(self, ticks: float) -> None:
        """Time goes by while the calling thread runs."""
        self.sleep(ticks)
        self.running += ticks / 1024


@contextmanager
def virtual_time() -> Iterator[VirtualTime]:
    """While it lasts, all of a profile's own times are virtual; no thread stands in line."""
    clock = VirtualTime()
    module = SimpleNamespace(
        perf_counter=lambda: clock.now,
        thread_time=lambda: clock.running,
        sleep=lambda seconds: clock.sleep(seconds * 1024),
    )
    patches = [patch(f"brimful.profiling.{name}.time", module) for name in _READERS]
    patches.append(patch("brimful.profiling.stopwatch.Stopwatch._queued", lambda self: 0.0))
    for one in patches:
        one.start()
    try:
        yield clock
    finally:
        for one in patches:
            one.stop()
