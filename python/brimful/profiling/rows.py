"""The record of a profile while it is taken: its last batches one by one, and the sums of all."""

from __future__ import annotations

import dataclasses
import time
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any

from brimful.profiling.clocks import Making
from brimful.profiling.figures import BatchFigures, ProfiledBatch
from brimful.profiling.sums import Sums

_MOST_BATCHES = 10_000
_MOST_LENGTHS = 500_000  # in all batches: each costs some 40 bytes


class Row:
    """One batch. Its step, making and starvation become known after it was handed out."""

    __slots__ = (
        "entered", "figures", "first", "making", "number", "returned", "starvation", "step", "wait",
    )  # fmt: skip

    def __init__(
        self, number: int, *, first: bool, entered: float, wait: float, returned: float
    ) -> None:
        self.number = number
        self.first = first
        self.entered = entered
        self.wait = wait
        self.returned = returned
        self.step: float | None = None
        self.making = Making()
        self.starvation: float | None = None
        self.figures = BatchFigures()

    def finished(self) -> ProfiledBatch:
        """All that is known by now."""
        making = self.making
        return ProfiledBatch(
            number=self.number,
            first=self.first,
            entered=self.entered,
            wait=self.wait,
            step=self.step,
            load=making.load,
            blocked=making.blocked,
            collate=making.collate,
            queue_depth=making.queue_depth,
            starvation=self.starvation,
            figures=self.figures,
        )


class Rows:
    """What a profile has seen, in the order in which batches were taken."""

    def __init__(self) -> None:
        self.sums = Sums()
        self._rows: deque[Row] = deque()
        self._with_lengths: deque[Row] = deque()
        self._lengths = 0
        self.began = self._until = 0.0
        # Whose step it is, and of which pass; one that was left in its middle must be free to go.
        self._running: tuple[weakref.ref[Any], Row] | None = None

    @property
    def wall_seconds(self) -> float:
        """From the beginning of the first pass to the last moment that is accounted for."""
        return self._until - self.began

    def begin_pass(self) -> float:
        """Now; a step that nobody ended stays unknown."""
        now = time.perf_counter()
        self._running = None
        if self.began == 0.0:
            self.began = self._until = now
        return now

    def enter(self, of: Any) -> float:
        """Now: the pass asks for a batch, so that the step of its last one is over."""
        now = time.perf_counter()
        if self._running is not None and self._running[0]() is of:
            row = self._running[1]
            row.step = now - row.returned
            self.sums.step_seconds += row.step
            self._until = now
        self._running = None
        return now

    def take(self, of: Any, *, entered: float, began: float | None) -> int:
        """A batch has come, the first of a pass that began then, or a later one; its number."""
        now = time.perf_counter()
        first = began is not None
        since = entered if began is None else began
        wait = now - since
        # From the row before, so that numbers have no gap, whatever interrupts this.
        number = self._rows[-1].number + 1 if self._rows else 0
        row = Row(number, first=first, entered=since - self.began, wait=wait, returned=now)
        self._rows.append(row)
        self.sums.add_wait(wait, first=first)
        if len(self._rows) > _MOST_BATCHES:
            oldest = self._rows.popleft()
            if self._with_lengths and self._with_lengths[0] is oldest:
                self._forget_lengths()
        self._running, self._until = (weakref.ref(of), row), now
        return number

    def take_nothing(self, entered: float) -> None:
        """The wait has ended without a batch: the pass is over, or broken."""
        now = time.perf_counter()
        self.sums.end_seconds += now - entered
        self._until = now

    def add_figures(self, figures: BatchFigures) -> None:
        """What the newest batch holds; it is handed out now. What this took is of no step."""
        row = self._rows[-1]
        row.figures = figures
        self.sums.add_figures(figures)
        if figures.lengths:
            self._with_lengths.append(row)
            self._lengths += len(figures.lengths)
            while self._lengths > _MOST_LENGTHS and len(self._with_lengths) > 1:
                self._forget_lengths()
        row.returned = self._until = time.perf_counter()

    def _forget_lengths(self) -> None:
        """Of the oldest batch that has them."""
        row = self._with_lengths.popleft()
        self._lengths -= len(row.figures.lengths or ())
        row.figures = dataclasses.replace(row.figures, lengths=None)

    def add_making(self, number: int, making: Making) -> None:
        """How the batch of this number was made."""
        row = self._find(number)
        if row is not None:
            row.making = making
        if row is None or not row.first:
            self.sums.add_making(making)

    def add_starved(self, starved: Iterable[tuple[int, float]]) -> None:
        """Seconds that the device waited for batches of these numbers."""
        for number, seconds in starved:
            row = self._find(number)
            if row is not None:
                row.starvation = seconds

    def _find(self, number: int) -> Row | None:
        """The row of this number, if it is kept."""
        behind = self._rows[-1].number - number if self._rows else -1
        return self._rows[-1 - behind] if 0 <= behind < len(self._rows) else None

    def batches(self) -> tuple[ProfiledBatch, ...]:
        """The last ones."""
        return tuple(row.finished() for row in list(self._rows))
