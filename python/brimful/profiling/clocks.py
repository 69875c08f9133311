"""How long batches took to make, told by whoever makes them; here for loaders that do not tell.

A clock is asked twice a batch: `enter()` as `next()` is called, `taken()` as it returns. What a
batch's making took may be known only later: `settle()` hands it out, by the number of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from brimful.profiling.figures import BatchFigures
from brimful.profiling.stopwatch import Stopwatch
from brimful.profiling.usage import Usage, usage
from brimful.records import BatchRecord
from brimful.starvation import Starvation
from brimful.times import ThreadTimes


@dataclass(frozen=True, slots=True)
class Making:
    """What making one batch took, in seconds: the fields of `ProfiledBatch` of these names."""

    load: float | None = None
    blocked: float | None = None
    collate: float | None = None
    queue_depth: int | None = None


@dataclass(frozen=True, kw_only=True)
class MakerStats:
    """What a loader tells of its makers as a whole, since the profile began: fields of
    `ProfileStats`.
    """

    read_bytes: int
    major_faults: int
    worker_bytes: int | None = None
    starvation: Starvation | None = None
    threads: tuple[ThreadTimes, ...] | None = None


class WaitClock:
    """Of any iterable, and what the clocks of loaders that tell more have in common.

    Nobody can say how long a batch took where something else makes it, so `load` is None; `blocked`
    is the part of the wait in which the calling thread had nothing to do.
    """

    def __init__(self) -> None:
        self._settled: list[tuple[int, Making]] = []
        self._watch: Stopwatch | None = None  # of the wait that is under way
        self._usage_before = usage()

    def watching(self) -> AbstractContextManager[Any]:
        """What is set up for as long as a profile runs, and put back behind it."""
        return nullcontext()

    def begin(self, iterate: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Begins a pass."""
        return iter(iterate())

    def enter(self) -> None:
        """`next()` is about to be called."""
        self._watch = Stopwatch()

    def taken(self, number: int, batch: Any) -> BatchFigures | None:
        """It has returned this batch. What it holds, where its maker has counted that."""
        assert self._watch is not None  # since enter()
        _, blocked = self._watch.read()
        self._settled.append((number, Making(blocked=blocked)))
        return None

    def settle(self) -> list[tuple[int, Making]]:
        """What has become known since it was asked last."""
        settled, self._settled = self._settled, []
        return settled

    def starved(self) -> list[tuple[int, float]] | None:
        """The same of seconds that a device waited for batches; None: the loader does not know."""
        return None

    def records(self) -> tuple[BatchRecord, ...]:
        """What a loader's own threads recorded of each batch; only brimful's do."""
        return ()

    def stats(self) -> MakerStats:
        """Of all makers together."""
        own = self._usage()
        return MakerStats(read_bytes=own.read_bytes, major_faults=own.major_faults)

    def _usage(self) -> Usage:
        return usage().since(self._usage_before)
