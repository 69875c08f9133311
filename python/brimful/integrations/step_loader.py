"""A native loader as trainers that count batches want it: a `torch.utils.data.DataLoader` whose
epochs are equally long, in whole optimizer steps.

Packing makes some epochs a few batches longer than others, and the last step of one may have fewer
micro-batches. A trainer that asks for a length once would leave the surplus out, or add up the
gradients of two steps. So the batches here are one stream: where an epoch of the loader ends, its
next one goes on, and a short step is filled up with batches without labels, which add nothing to a
summed loss. Skipping the first batches of such a loader skips numbers; batches come from where the
native loader stands.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, Sampler

from brimful import _core
from brimful._core import PlanError
from brimful.batch import Batch
from brimful.loader import DataLoader


class StepLoader(TorchDataLoader[Any]):
    """Yields `brimful.Batch`; `len()` is that of the loader's first epoch, in whole steps.

    Attributes:
        loader: the native loader, whose state says where this one goes on.

    Raises:
        PlanError: an epoch has no batch.
    """

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        super().__init__(
            _Batches(loader),
            batch_sampler=_Numbers(loader),
            collate_fn=_only,
            generator=torch.Generator(),  # torch draws a seed for workers, here from nobody's own
        )

    def state_behind(self, steps: int) -> dict[str, Any]:
        """The loader's state behind so many steps of this object: all of those it has begun, or all
        but the last, whose batches were handed out and not trained on yet.
        """
        batches = self.dataset
        assert isinstance(batches, _Batches)
        if batches.before_step is not None and steps < batches.steps:
            return batches.before_step
        return self.loader.state_dict()

    def close(self) -> None:
        """Ends the threads of the running iteration."""
        assert isinstance(self.dataset, _Batches)
        self.dataset.close()


class _Numbers(Sampler[list[int]]):
    """Batch numbers of a trainer's epoch, one at a time."""

    def __init__(self, loader: DataLoader) -> None:
        # Not len(loader), which speaks of the rest where the loader stands in an epoch.
        batches = loader._count_batches(_core.Cursor(0))
        if batches == 0:
            raise _no_batch(loader)
        steps = -(-batches // loader.config.accumulate)
        self._count = steps * loader.config.accumulate

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[int]]:
        return ([number] for number in range(self._count))


class _Batches(Dataset[Batch]):
    """The batches of a loader's epochs, one after the other, whatever number is asked for.

    Attributes:
        steps: that were begun here.
        before_step: the loader's state in front of the last of them.
    """

    def __init__(self, loader: DataLoader) -> None:
        self.steps = 0
        self.before_step: dict[str, Any] | None = None
        self._loader = loader
        self._iterator: Iterator[Batch] | None = None
        self._in_step = 0  # micro-batches of the running step that were handed out
        self._last: Batch | None = None

    def __len__(self) -> int:
        """Documents: what trainers report as the number of examples."""
        return len(self._loader.corpus)

    def __getitems__(self, numbers: list[int]) -> list[Batch]:
        return [self._next() for _ in numbers]

    def __getitem__(self, number: int) -> Batch:
        return self._next()

    def close(self) -> None:
        self._iterator = None

    def _next(self) -> Batch:
        batch = self._next_of_step() if self._in_step else self._first_of_step()
        self._in_step = (self._in_step + 1) % self._loader.config.accumulate
        return batch

    def _first_of_step(self) -> Batch:
        self.before_step = self._loader.state_dict()
        self.steps += 1
        for _ in range(2):  # where an epoch is over, the next one begins
            if self._iterator is None:
                self._iterator = iter(self._loader)
            self._last = next(self._iterator, None)
            if self._last is not None:
                return self._checked(self._last)
            self._iterator = None
        raise _no_batch(self._loader)

    def _next_of_step(self) -> Batch:
        batch = None if self._iterator is None else next(self._iterator, None)
        if batch is not None:
            self._last = self._checked(batch)
            return batch
        self._iterator = None
        assert self._last is not None
        return _without_labels(self._last)

    def _checked(self, batch: Batch) -> Batch:
        if batch.micro_batch != self._in_step:
            raise PlanError(
                f"the loader stands at micro-batch {batch.micro_batch} of "
                f"{self._loader.config.accumulate} of its step {batch.step}, and a trainer begins "
                f"with the first one: load a state that was saved behind a step"
            )
        return batch


def _no_batch(loader: DataLoader) -> PlanError:
    return PlanError(
        f"an epoch of {loader!r} has no batch: there are no documents, or they fill no step and "
        f"drop_last=True leaves it out"
    )


def _only(batches: list[Batch]) -> Batch:
    return batches[0]


def _without_labels(batch: Batch) -> Batch:
    """A batch of the same shape that teaches nothing."""
    empty = copy.copy(batch)
    empty._columns = {
        name: torch.full_like(column, -100) if name in ("labels", "shift_labels") else column
        for name, column in batch.items()
    }
    empty.num_items = empty.num_tokens = 0
    return empty
