"""How long torch's DataLoader took for batches, timed where it fetches them: in the consumer, or in
worker processes, which begin to keep time in `worker_init_fn`, before the user's own is called.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import DataLoader, _DatasetKind, get_worker_info

from brimful.profiling.clocks import MakerStats, Making, WaitClock
from brimful.profiling.fetch_times import FetchTimes, time_fetches
from brimful.profiling.figures import BatchFigures
from brimful.profiling.iterator_hooks import hooked
from brimful.profiling.usage import Usage

# Of iterators whose workers keep time, also when a profile is over: another one may follow.
_timed: weakref.WeakKeyDictionary[Any, FetchTimes] = weakref.WeakKeyDictionary()

_Made = tuple[Making, BatchFigures | None]


class TorchClock(WaitClock):
    """Of `torch.utils.data.DataLoader` and loaders derived of it.

    Workers that began before the first profile, as persistent ones may have, are not timed.
    """

    def __init__(self, loader: Any, *, handed_out_by: Any) -> None:
        """`handed_out_by` is the loader that is profiled: this one, or one that is around it."""
        super().__init__()
        self._loader = loader
        own_iter = type(loader).__iter__ is DataLoader.__iter__
        self._as_fetched = loader is handed_out_by and own_iter  # else batches may be others
        self._made: deque[_Made] = deque(maxlen=1024)  # fetched, and not handed out yet
        self._watching = False
        self._iterator: Callable[[], Any] = _nothing  # the newest with workers
        self._times: FetchTimes | None = None
        self._ended = Usage(0, 0)  # of workers of earlier iterators
        self._before = Usage(0, 0)  # of workers that worked before this profile
        self._worker_bytes: int | None = None
        self._depth: int | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Has a say in how the loader makes iterators."""
        self._watching = True
        try:
            with hooked(self._loader, self._timed_iterator):
                yield
        finally:
            self._watching = False
            self._let_go()

    def begin(self, iterate: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Begins a pass, with the workers of an earlier one where they persist."""
        self._made.clear()
        persistent = getattr(self._loader, "_iterator", None)
        if persistent is not None and persistent is not self._iterator():
            self._let_go()
            if persistent in _timed:
                self._follow(persistent, _timed[persistent])
        if self._times is not None:
            self._times.begin_pass()
        return iter(iterate())

    def enter(self) -> None:
        """Looks how many batches are ready."""
        iterator = self._iterator()
        if iterator is not None:
            early = sum(len(task) > 1 for task in iterator._task_info.values())
            self._depth = early + iterator._data_queue.qsize()

    def taken(self, number: int, batch: Any) -> BatchFigures | None:
        """The batches are handed out in the order in which they were fetched or received."""
        if not self._made:
            return None
        making, figures = self._made.popleft()
        self._settled.append((number, making))
        return figures if self._as_fetched else None

    def stats(self) -> MakerStats:
        """Of the consumer and of workers."""
        own, workers = self._usage(), self._ended
        if self._times is not None:
            workers = workers.plus(self._times.usage().since(self._before))
            self._worker_bytes = self._times.anonymous_bytes()
        return MakerStats(
            read_bytes=own.read_bytes + workers.read_bytes,
            major_faults=own.major_faults + workers.major_faults,
            worker_bytes=self._worker_bytes,
        )

    def _timed_iterator(self, make: Callable[[], Any]) -> Any:
        """A new iterator, made as ever and timed."""
        loader = self._loader
        if loader.num_workers == 0:
            iterator = make()
            time_fetches(iterator._dataset_fetcher, self._fetched)
            return iterator
        ring = loader.prefetch_factor * loader.num_workers + 1
        times = FetchTimes(
            loader.multiprocessing_context or torch.multiprocessing, loader.num_workers, ring
        )
        of_user = loader.worker_init_fn
        # Beside `__setattr__`, in which Lightning records what users do to a loader.
        vars(loader)["worker_init_fn"] = TimedWorker(times, of_user)
        try:
            iterator = make()
        finally:
            vars(loader)["worker_init_fn"] = of_user
        self._let_go()
        _timed[iterator] = times
        self._follow(iterator, times)
        return iterator

    def take(self, worker: int) -> _Made | None:
        """How this worker made the batch that it fetched next, and what that holds."""
        if self._times is None:  # of an iterator that another one has followed
            return None
        load, blocked, collate, figures = self._times.take(worker)
        return Making(load, blocked, collate, self._depth), figures

    def made(self, made: _Made | None) -> None:
        """That batch is on its way out."""
        if made is not None and self._watching:
            self._made.append(made)

    def _fetched(self, load: float, blocked: float, collate: float, batch: Any) -> None:
        """The consumer did it itself."""
        self.made((Making(load, blocked, collate), None))

    def _follow(self, iterator: Any, times: FetchTimes) -> None:
        """Hears from now on which worker each batch of this iterator comes from."""
        times.switch(True)
        self._before = times.usage()
        self._times, self._iterator = times, weakref.ref(iterator)
        self._of_inner = vars(iterator).get("_process_data")  # that another profile has put there
        process = self._of_inner or functools.partial(
            _process, type(iterator)._process_data, self._iterator
        )
        iterator._process_data = functools.partial(_process_timed, process, self)

    def _let_go(self) -> None:
        """Of the newest iterator's workers; they may live on."""
        if self._times is None:
            return
        self._times.switch(False)
        self._ended = self._ended.plus(self._times.usage().since(self._before))
        self._worker_bytes = self._times.anonymous_bytes()
        iterator = self._iterator()
        if iterator is not None:
            vars(iterator).pop("_process_data", None)
            if self._of_inner is not None:
                iterator._process_data = self._of_inner
        self._times, self._iterator = None, _nothing


class _TimedIterators:
    """In the place of a loader's `_get_iterator`. Not in its copies, deep ones and pickled ones,
    which get their own back: a program may hand them to processes.
    """

    def __init__(self, clock: TorchClock, make: Callable[[], Any]) -> None:
        self._clock, self._make = clock, make

    def __call__(self) -> Any:
        return self._clock._timed_iterator(self._make)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._clock._loader, "_get_iterator")


def _nothing() -> None:
    return None


def _process(process: Callable[..., Any], iterator: Callable[[], Any], *given: Any) -> Any:
    """As the iterator does it, which is known weakly: workers end with the last reference to it."""
    return process(iterator(), *given)


def _process_timed(process: Callable[..., Any], clock: TorchClock, *given: Any) -> Any:
    """Takes data out of an iterator: `given` are these, the worker and, in torchdata, more."""
    made = clock.take(given[1])
    batch = process(*given)  # or the error that came in place of it
    clock.made(made)
    return batch


class TimedWorker:
    """A `worker_init_fn` that makes a worker keep time and then does what the user's does."""

    def __init__(self, times: FetchTimes, of_user: Callable[[int], None] | None) -> None:
        self._times, self._of_user = times, of_user

    def __call__(self, worker: int) -> None:
        writer = self._times.writer(worker)
        kinds: Any = _DatasetKind
        create = kinds.create_fetcher

        def create_timed(kind: Any, dataset: Any, *arguments: Any) -> Any:
            fetcher = create(kind, dataset, *arguments)
            info = get_worker_info()
            if info is not None and dataset is info.dataset:  # else of a loader in a dataset
                writer.begin_pass(fetcher)
            return fetcher

        kinds.create_fetcher = staticmethod(create_timed)  # in this process alone
        if self._of_user is not None:
            self._of_user(worker)
