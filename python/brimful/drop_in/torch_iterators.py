"""torch's iterators with a clock around `next()`, and an account of what was taken out of them.

What they deliver is torch's own doing. Only a pass that goes on from a state is begun otherwise:
its indices are drawn again from generators as they stood, and delivered ones are passed over.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils import data
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from brimful.drop_in.torch_random import RandomSnapshot
from brimful.drop_in.torch_samplers import (
    checksum,
    draw_from_anywhere,
    generators_of,
    is_stateful,
    samplers_of,
    take_states,
)
from brimful.drop_in.torch_state import Resumption, TorchPlace, begin_again, dataset_with_state
from brimful.drop_in.torch_stats import Moment

if TYPE_CHECKING:
    from brimful.drop_in.torch_loader import TorchLoader


_torchs_next = _BaseDataLoaderIter.__next__


class _Watched(_BaseDataLoaderIter):
    """What the iterators without workers and with them share. `__next__` is the only thing that
    costs time at every batch.
    """

    _began: float | None  # when `iter()` was called; None behind the first batch
    _interrupted = False  # a batch was: what becomes of it shows when the next one comes

    def __init__(self, loader: TorchLoader) -> None:
        self._clock = loader._clock
        self._is_map = not isinstance(loader.dataset, data.IterableDataset)
        self._prepare(loader)
        with self._seeds_replayed():
            super().__init__(loader)
        # Profilers look for torch's names.
        torchs = type(self).__mro__[2].__name__
        self._profile_name = f"enumerate(DataLoader)#{torchs}.__next__"
        self._go_on(loader)

    def _reset(self, loader: TorchLoader, first_iter: bool = False) -> None:
        if first_iter:  # in the middle of __init__
            super()._reset(loader, first_iter)
            return
        self._prepare(loader)
        with self._seeds_replayed():
            if self._resumed is not None and self._order_from is None:
                # As a new iterator would draw the workers' seed, before the order.
                torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
            super()._reset(loader, first_iter)
        self._go_on(loader)

    def __next__(self) -> Any:
        entered = perf_counter()
        try:
            batch = _torchs_next(self)
        except BaseException as error:
            self._clock.stall_seconds += perf_counter() - entered
            self._account_for(error)
            raise
        clock = self._clock
        clock.batches += 1
        self._place.taken += 1
        now = perf_counter()
        clock.last.append(Moment(entered, now, self._began is not None and not self._interrupted))
        if self._began is None:
            clock.stall_seconds += now - entered
        else:
            self._first_batch(entered, now)
        return batch

    def _first_batch(self, entered: float, now: float) -> None:
        """It is one of an epoch, or the first behind an interrupted one, which is lost by then."""
        if self._interrupted:
            self._clock.stall_seconds += now - entered
            self._place.taken += 1
        else:
            self._clock.first_batch_seconds += now - (self._began or entered)
        self._began, self._interrupted = None, False

    def _account_for(self, error: BaseException) -> None:
        if isinstance(error, StopIteration):
            self._place.ended = True
        elif isinstance(error, Exception):  # torch goes on behind it, and so does a state
            self._account_for_failure()

    def _account_for_failure(self) -> None:
        self._place.taken += 1

    # A pass begins

    def _prepare(self, loader: TorchLoader) -> None:
        self._began = perf_counter()
        self._ordered = False
        samplers = samplers_of(loader)
        self._generators = generators_of(loader, samplers)
        self._everything = draw_from_anywhere(loader, samplers)
        self._resumed = resumed = loader._resumption_for(samplers)
        self._order_from = None
        self._place = TorchPlace()
        if resumed is None:
            self._place.before_iter = self._snapshot()
            if loader._moved_dataset:
                begin_again(loader.dataset)
                loader._moved_dataset = False
        else:
            self._order_from = resumed.before_order
            self._place.before_iter = resumed.before_iter
            resumed.before_iter.put_back(self._generators)
            for name, sampler in samplers.items():
                if "state" in resumed.samplers.get(name, ()) and is_stateful(sampler):
                    sampler.load_state_dict(resumed.samplers[name]["state"])
            own, dataset = self._own_state(loader), cast(Any, loader.dataset)
            if "dataset" in own and is_stateful(dataset):
                dataset.load_state_dict(own["dataset"])
                loader._moved_dataset = True
            if self._is_map:
                self._place.base, self._place.base_early = resumed.batches, resumed.early
        self._place.samplers = take_states(samplers)

    def _snapshot(self) -> RandomSnapshot:
        return RandomSnapshot.take(self._generators, everything=self._everything)

    def _own_state(self, loader: TorchLoader) -> dict[str, Any]:
        """What the dataset or its iterator saved of itself: good where nothing is fetched ahead."""
        if self._resumed is None or self._resumed.dataset is None or loader.num_workers > 0:
            return {}
        return self._resumed.dataset

    @contextlib.contextmanager
    def _seeds_replayed(self) -> Iterator[None]:
        resumed = self._resumed
        if resumed is None or (resumed.before_order is None and resumed.before_iter.is_now()):
            yield
            return
        with resumed.before_iter.replayed(self._generators):
            yield
            if not self._ordered and self._order_from is None:
                self._order_from = self._snapshot()

    def _go_on(self, loader: TorchLoader) -> None:
        """To the place of a state, where indices do not lead there; then the pass is the newest."""
        resumed, own = self._resumed, self._own_state(loader)
        if loader.num_workers == 0:
            fetcher: Any = self._dataset_fetcher  # type: ignore[attr-defined]
            iterator: Any = getattr(fetcher, "dataset_iter", None)
            if "iterator" in own and is_stateful(iterator):
                iterator.load_state_dict(own["iterator"])
            if own.get("ended") and not self._is_map:
                fetcher.ended = True
            self._place.source = dataset_with_state(loader.dataset, iterator)
            self._place.fetcher = None if self._place.source is None else fetcher
        if resumed is not None and not self._is_map:
            if own:
                self._place.base = resumed.batches
            else:
                self._discard(resumed)
        loader._place = self._place
        loader._resumption = None

    def _discard(self, resumed: Resumption) -> None:
        """Draws batches of an iterable dataset again, for nothing: it has no other way to skip."""
        numbers = resumed.num_workers, self._num_workers
        if numbers[0] != numbers[1] and max(numbers) > 1:
            warnings.warn(
                f"the state counts batches of {numbers[0]} workers, and the loader has "
                f"{numbers[1]}: where workers share an iterable dataset its batches come in "
                f"another order, so that some may come twice and others not at all",
                stacklevel=5,
            )
        place = self._place
        with self._order_replayed():
            while (before := place.taken) < resumed.batches:
                try:
                    _torchs_next(self)
                    place.taken += 1
                except StopIteration:
                    break
                except Exception:  # one that came as a batch did the first time
                    self._account_for_failure()
                    if place.taken == before:
                        raise

    def _order_replayed(self) -> contextlib.AbstractContextManager[None]:
        source = self._order_from
        return contextlib.nullcontext() if source is None else source.replayed(self._generators)

    def _first_index(self) -> Any:
        """The first index of this pass; the order is drawn with it."""
        self._ordered = True
        with self._order_replayed():
            self._place.before_order = self._order_from or self._snapshot()
            index = next(self._sampler_iter)
            if not self._is_map:
                return index
            self._place.first_batch = checksum(index)
            return index if self._resumed is None else self._behind(index, self._resumed)

    def _behind(self, index: Any, resumed: Resumption) -> Any:
        """The index that a state stands at; `index` is the first."""
        # A sampler that deals to ranks by epoch is another on each; a state serves all of them.
        by_epoch = any("epoch" in told for told in resumed.samplers.values())
        if resumed.first_batch not in (None, self._place.first_batch) and not by_epoch:
            warnings.warn(
                "the sampler draws another order than the state's: some samples may come twice and "
                "others not at all. A sampler is understood by its generator=, its "
                "state_dict()/load_state_dict(), or its epoch and set_epoch()",
                stacklevel=5,
            )
        for _ in range(resumed.batches):
            index = next(self._sampler_iter)
        if resumed.early:
            behind = enumerate(self._sampler_iter, resumed.batches + 1)
            self._sampler_iter = (later for number, later in behind if number not in resumed.early)
        return index


class _FirstIndex:
    """Stands in for an iterator of indices until the first is asked for, and costs nothing then."""

    def __init__(self, iterator: WatchedSingle) -> None:
        self._iterator, self._indices = iterator, iterator._sampler_iter

    def __iter__(self) -> _FirstIndex:
        return self

    def __next__(self) -> Any:
        self._iterator._sampler_iter = self._indices
        return self._iterator._first_index()


class WatchedSingle(_Watched, _SingleProcessDataLoaderIter):
    """Without workers: a batch is taken out with its index."""

    def _go_on(self, loader: TorchLoader) -> None:
        self._sampler_iter = _FirstIndex(self)
        super()._go_on(loader)

    def _account_for(self, error: BaseException) -> None:
        super()._account_for(error)
        if not isinstance(error, Exception):  # Ctrl-C: the batch is not out, but its index is
            self._began, self._interrupted = self._began or perf_counter(), True


class WatchedMulti(_Watched, _MultiProcessingDataLoaderIter):
    """With worker processes: a batch is taken out when it, or its exception, is unpacked."""

    _unpacked = 0
    _lowest = 0
    _early: tuple[int, ...] = ()

    def _prepare(self, loader: TorchLoader) -> None:
        super()._prepare(loader)
        self._unpacked = 0

    def __next__(self) -> Any:
        batch = super().__next__()
        if not self._in_order and self._is_map:
            self._place.taken, self._place.early = self._lowest, self._early
        return batch

    def _next_index(self) -> Any:
        return next(self._sampler_iter) if self._ordered else self._first_index()

    def _process_data(self, *arguments: Any) -> Any:
        self._unpacked += 1
        if not self._in_order and self._is_map:
            waiting = self._task_info
            self._lowest = min(waiting, default=self._send_idx)
            behind = range(self._lowest, self._send_idx)
            self._early = tuple(number for number in behind if number not in waiting)
        return super()._process_data(*arguments)  # type: ignore[no-untyped-call]

    def _account_for_failure(self) -> None:
        if self._in_order or not self._is_map:
            self._place.taken = self._unpacked  # not one more where the wait for it timed out
        else:
            self._place.taken, self._place.early = self._lowest, self._early
