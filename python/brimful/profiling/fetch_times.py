"""Times of what torch's workers fetch, and what their batches hold: each writes them to memory that
its process shares with the consumer, before it sends a batch, so that they are there when the batch
is. A batch is counted where it was made, for there it is in the processor's caches.
"""

from __future__ import annotations

import ctypes
import functools
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.process_memory import process_memory
from brimful.profiling.counting import figures_of
from brimful.profiling.figures import BatchFigures
from brimful.profiling.stopwatch import Stopwatch
from brimful.profiling.usage import Usage, usage

_ON = 0  # the one entry that belongs to no worker
# Of a worker's row: fetches since it began, those before this pass, what it reads and occupies.
_FETCHES, _BEFORE, _READ_BYTES, _FAULTS, _ANONYMOUS = range(5)
_TOTALS = 5
# Of a fetch: load, blocked, collate; the figures of its batch, NaN for None; how many lengths of
# segments follow, or one of the numbers below 0.
_TIMES = 3
_FIGURES = ("slots", "tokens", "effective_tokens", "documents", "attention_work", "num_bytes")
_NUM_LENGTHS = _TIMES + len(_FIGURES)
_LENGTHS = _NUM_LENGTHS + 1
_MOST_LENGTHS = 256
_ENTRY = _LENGTHS + _MOST_LENGTHS
_NOT_COUNTED, _NO_LENGTHS = -2, -1
_MEMORY_EVERY = 64  # fetches; a look at /proc takes some 50 us

Report = Callable[[float, float, float, Any], None]


def time_fetches(fetcher: Any, report: Report, *, errors: bool = False) -> None:
    """Has a fetcher of torch's report load, blocked and collate seconds of each batch from now on,
    and the batch.

    Args:
        errors: report fetches that raised, too, with None. The end of an iterable dataset is none.
    """
    collate = fetcher.collate_fn
    weak = weakref.ref(fetcher)  # for a cycle would keep the dataset longer than torch does
    of_inner = vars(fetcher).get("fetch")  # that another profile has put there
    fetch = of_inner or functools.partial(_fetch, type(fetcher).fetch, weak)
    collating = 0.0

    def timed_collate(items: Any) -> Any:
        nonlocal collating
        began = time.perf_counter()
        try:
            return collate(items)
        finally:
            collating += time.perf_counter() - began

    def timed_fetch(index: Any) -> Any:
        nonlocal collating
        collating = 0.0
        watch = Stopwatch()
        try:
            batch = fetch(index)
        except Exception as error:
            if errors and not isinstance(error, StopIteration):
                report(*watch.read(), collating, None)
            raise
        report(*watch.read(), collating, batch)
        return batch

    fetcher.fetch, fetcher.collate_fn = timed_fetch, timed_collate


def _fetch(fetch: Any, fetcher: Any, index: Any) -> Any:
    return fetch(fetcher(), index)


class FetchTimes:
    """The shared memory: float64 `[1 + workers * row]`, of each worker its totals and a ring of its
    last fetches, an entry each.

    Args:
        context: multiprocessing, or one of its contexts, which hands memory to new processes.
        workers: that write.
        ring: fetches that a worker may be ahead of what was taken.
    """

    def __init__(self, context: Any, workers: int, ring: int) -> None:
        self._workers, self._ring = workers, ring
        self._row = _TOTALS + _ENTRY * ring
        self._memory = context.RawArray(ctypes.c_double, 1 + workers * self._row)
        self._taken = [0] * workers
        self.switch(True)

    def values(self) -> npt.NDArray[np.float64]:
        """A view of all of it."""
        return np.frombuffer(self._memory)

    def switch(self, on: bool) -> None:
        """Whether workers keep time: some outlive a profile."""
        self.values()[_ON] = on

    def is_on(self) -> bool:
        """As a worker sees it."""
        return bool(self.values()[_ON])

    def row(self, worker: int) -> npt.NDArray[np.float64]:
        """A view of what is of one worker."""
        begin = 1 + worker * self._row
        return self.values()[begin : begin + self._row]

    # In a worker

    def writer(self, worker: int) -> FetchWriter:
        """Keeps time in the process of that worker."""
        return FetchWriter(self, self.row(worker), self._ring)

    # In the consumer

    def begin_pass(self) -> None:
        """Nothing of the pass was taken yet."""
        self._taken = [0] * self._workers

    def take(self, worker: int) -> tuple[float, float, float, BatchFigures | None]:
        """Load, blocked and collate seconds of this worker's next fetch in the pass, and what its
        batch holds; None: too many segments to tell.
        """
        memory, row = self._memory, 1 + worker * self._row
        number = int(memory[row + _BEFORE]) + self._taken[worker]
        self._taken[worker] += 1
        begin = row + _TOTALS + _ENTRY * (number % self._ring)
        load, blocked, collate, *counted, lengths = memory[begin : begin + _LENGTHS]
        if lengths == _NOT_COUNTED:
            return load, blocked, collate, None
        figures: dict[str, Any] = {
            name: None if value != value else int(value)
            for name, value in zip(_FIGURES, counted, strict=True)
        }
        if lengths != _NO_LENGTHS:
            segments = memory[begin + _LENGTHS : begin + _LENGTHS + int(lengths)]
            figures["lengths"] = tuple(map(int, segments))
        return load, blocked, collate, BatchFigures(**figures)

    def usage(self) -> Usage:
        """Of all workers since they began."""
        rows = [self.row(worker) for worker in range(self._workers)]
        return Usage(
            read_bytes=int(sum(row[_READ_BYTES] for row in rows)),
            major_faults=int(sum(row[_FAULTS] for row in rows)),
        )

    def anonymous_bytes(self) -> int:
        """Memory of the workers' own, as each saw it last."""
        return int(sum(self.row(worker)[_ANONYMOUS] for worker in range(self._workers)))


class FetchWriter:
    """Writes the times of one worker."""

    def __init__(self, times: FetchTimes, row: npt.NDArray[np.float64], ring: int) -> None:
        self._times, self._row, self._ring = times, row, ring
        self._usage_before = usage()

    def begin_pass(self, fetcher: Any) -> None:
        """What this fetcher fetches belongs to a new pass."""
        self._row[_BEFORE] = self._row[_FETCHES]
        time_fetches(fetcher, self.write, errors=True)

    def write(self, load: float, blocked: float, collate: float, batch: Any) -> None:
        """Of one more batch, or of the error that is sent in place of it, which holds nothing."""
        if not self._times.is_on():
            return
        row = self._row
        number = int(row[_FETCHES])
        entry = row[_TOTALS + _ENTRY * (number % self._ring) :][:_ENTRY]
        entry[:_TIMES] = load, blocked, collate
        _write_figures(entry, figures_of(batch))
        used = usage().since(self._usage_before)
        row[_READ_BYTES], row[_FAULTS] = used.read_bytes, used.major_faults
        if (number - int(row[_BEFORE])) % _MEMORY_EVERY == 0:
            row[_ANONYMOUS] = process_memory().anonymous
        row[_FETCHES] = number + 1


def _write_figures(entry: npt.NDArray[np.float64], figures: BatchFigures) -> None:
    lengths = figures.lengths
    if lengths is not None and len(lengths) > _MOST_LENGTHS:
        entry[_NUM_LENGTHS] = _NOT_COUNTED
        return
    values = (getattr(figures, name) for name in _FIGURES)
    entry[_TIMES:_NUM_LENGTHS] = [np.nan if value is None else value for value in values]
    entry[_NUM_LENGTHS] = _NO_LENGTHS if lengths is None else len(lengths)
    if lengths:
        entry[_LENGTHS : _LENGTHS + len(lengths)] = lengths
