"""torch's iterators with a clock around `next()`; nothing else of them is touched."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from brimful.drop_in.torch_stats import TorchStats

if TYPE_CHECKING:
    from brimful.drop_in.torch_loader import TorchLoader


@dataclass
class Clock:
    """Running sums of one loader's iterators, as `TorchStats` has them."""

    batches: int = 0
    stall_seconds: float = 0.0
    first_batch_seconds: float = 0.0

    def read(self) -> TorchStats:
        return TorchStats(
            batches=self.batches,
            stall_seconds=self.stall_seconds,
            first_batch_seconds=self.first_batch_seconds,
        )


class _Timed(_BaseDataLoaderIter):
    """What both iterators share: the time of `next()`, and of `iter()` for a first batch."""

    def __init__(self, loader: TorchLoader) -> None:
        self._clock = loader._clock
        self._began: float | None = perf_counter()
        super().__init__(loader)
        # Profilers look for torch's names.
        torchs = type(self).__mro__[2].__name__
        self._profile_name = f"enumerate(DataLoader)#{torchs}.__next__"

    def _reset(self, loader: TorchLoader, first_iter: bool = False) -> None:
        if not first_iter:
            self._began = perf_counter()
        super()._reset(loader, first_iter)

    def __next__(self) -> Any:
        entered = perf_counter()
        clock = self._clock
        try:
            batch = super().__next__()
        except BaseException:
            clock.stall_seconds += perf_counter() - entered
            raise
        left = perf_counter()
        clock.batches += 1
        if self._began is None:
            clock.stall_seconds += left - entered
        else:
            clock.first_batch_seconds += left - self._began
            self._began = None
        return batch


class TimedSingle(_Timed, _SingleProcessDataLoaderIter):
    """Without workers."""


class TimedMulti(_Timed, _MultiProcessingDataLoaderIter):
    """With worker processes."""
