"""How long a device stood still between two calls: from the entry of `next()` to its return, by the
device's own clock.

Event A is recorded on the consumer's stream before `next()` and event B behind it. A comes to pass
when all work before it is done, B when it is recorded or later; what lies between them is time
without work. Both are read once they have passed: the host never waits for a device.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from brimful.starvation import Starvation

_MOST_PENDING = 1024  # pairs; the host is never so many batches ahead of a device that works


class Events(Protocol):
    """What a device does for this: events with its time, on the stream that is current."""

    def record(self) -> Any | None:
        """An event recorded now; None while nothing may be recorded."""

    def passed(self, event: Any) -> bool:
        """Whether the device has come to it. Does not wait."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Between two events that have passed."""

    def give_back(self, event: Any) -> None:
        """It can be recorded again."""


@dataclass(frozen=True, slots=True)
class _Pair:
    number: int | None  # of the batch; None: two events with nothing between, to compare with
    before: Any  # B of the batch before in the same pass; None of a first batch
    entered: Any
    returned: Any


class Gaps:
    """Measures one profile. First batches of passes are left out, and the time before them."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._pending: deque[_Pair] = deque()
        self._entered: Any = None
        self._last: Any = None  # B of the newest batch of the pass
        self._empty = 0.0  # seconds between two events with nothing between them
        self._calibrated = False
        self._settled: list[tuple[int, float]] = []
        self._batches, self._seconds, self._elapsed = 0, 0.0, 0.0
        self._harvesting = threading.Lock()

    def begin_pass(self) -> None:
        """The next batch is a first one."""
        self._last = None

    def enter(self) -> None:
        """`next()` is about to be called."""
        self._harvest()
        if len(self._pending) >= _MOST_PENDING:
            self._entered = None
            return
        if not self._calibrated:
            pair = self._events.record(), self._events.record()
            if None not in pair:
                self._pending.append(_Pair(None, None, *pair))
                self._calibrated = True
        self._entered = self._events.record()

    def taken(self, number: int) -> None:
        """It has returned this batch."""
        entered, self._entered = self._entered, None
        returned = None if entered is None else self._events.record()
        if returned is not None:
            self._pending.append(_Pair(number, self._last, entered, returned))
        self._last = returned

    def settle(self) -> list[tuple[int, float]]:
        """Seconds that the device waited for batches, by number: those that have become known."""
        self._harvest()
        settled, self._settled = self._settled, []
        return settled

    def starvation(self) -> Starvation | None:
        """The sum so far; None where nothing was measured. All of it is `load`: what `next()` does
        is not seen from here.
        """
        if not self._batches:
            return None
        return Starvation(
            batches=self._batches,
            elapsed_seconds=self._elapsed,
            seconds=self._seconds,
            load_seconds=self._seconds,
            ring_seconds=0.0,
            copy_seconds=0.0,
            handoff_seconds=0.0,
            fraction=self._seconds / self._elapsed if self._elapsed else None,
            headroom_seconds=None,
            pinned_bytes=0,
        )

    def _harvest(self) -> None:
        if self._harvesting.acquire(blocking=False):  # else another thread is at it
            try:
                self._read_passed()
            finally:
                self._harvesting.release()

    def _read_passed(self) -> None:
        events = self._events
        while self._pending and events.passed(self._pending[0].returned):
            pair = self._pending.popleft()
            gap = events.seconds(pair.entered, pair.returned)
            if pair.number is None:
                self._empty = gap
                events.give_back(pair.returned)
            elif pair.before is not None:
                starved = max(0.0, gap - self._empty)
                self._batches += 1
                self._seconds += starved
                self._elapsed += events.seconds(pair.before, pair.returned)
                self._settled.append((pair.number, starved))
                events.give_back(pair.before)
            events.give_back(pair.entered)


class TorchEvents:
    """Of the CUDA device that torch works on. Recorded only where the program uses one already."""

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._free: list[Any] = []

    def record(self) -> Any | None:
        """On torch's current stream, unless that is being captured into a graph."""
        cuda = self._cuda
        if not cuda.is_initialized() or cuda.is_current_stream_capturing():
            return None
        event = self._free.pop() if self._free else cuda.Event(enable_timing=True)
        event.record()
        return event

    def passed(self, event: Any) -> bool:
        """As torch says."""
        return bool(event.query())

    def seconds(self, begin: Any, end: Any) -> float:
        """Torch counts milliseconds."""
        return float(begin.elapsed_time(end)) / 1e3

    def give_back(self, event: Any) -> None:
        """To make one costs more than to record it."""
        self._free.append(event)


def gaps_of_torch() -> Gaps | None:
    """Where the program has torch with CUDA, whether it uses a device yet or not; else None."""
    torch = sys.modules.get("torch")
    # Not cuda.is_available(), which wakes the driver: processes forked later could not use it.
    return None if torch is None or torch.version.cuda is None else Gaps(TorchEvents(torch))
