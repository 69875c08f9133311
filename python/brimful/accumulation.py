"""Micro-batches of an optimizer step, with the labels of the whole step known before the first."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from brimful._core import PlanError
from brimful.batch import Batch
from brimful.config import whole_number


def accumulate(batches: Iterable[Batch], steps: int, *, group: Any = None) -> Iterator[list[Batch]]:
    """The next `steps` micro-batches at a time, with the counts of their optimizer step.

    Sets `num_items_step` of each to the labels of them all, and `num_items_step_global` to the same
    over all ranks, so that a summed loss is divided by what it was summed over: a mean of the means
    of micro-batches would weigh labels of short ones more. For batches of `flatten`, which know of
    themselves alone; batches of `bf.DataLoader` are made with these counts (`accumulate=`).

    Where torch.distributed runs, its ranks add up once a step: all of them must then take part in
    every step, as they do in a training loop.

    Args:
        batches: batches of `flatten`, as from a DataLoader of torch; of any rank its own.
        steps: micro-batches of a step. The last list is shorter where batches run out.
        group: the process group to add up over; None: all ranks. Ranks that work on the same
            batches (tensor, pipeline and context parallelism) must count once: give the group of
            data-parallel ranks.

    Raises:
        PlanError: steps below 1, or no whole number.
    """
    number = whole_number("steps", steps)
    if number < 1:
        raise PlanError(f"steps is {number}; micro-batches of a step are expected, 1 or more")
    return _grouped(iter(batches), number, group)


def _grouped(batches: Iterator[Batch], steps: int, group: Any) -> Iterator[list[Batch]]:
    while step := list(islice(batches, steps)):
        items = sum(batch.num_items for batch in step)
        items_global = sum(_of_ranks(items, group))
        for batch in step:
            batch.num_items_step = items
            batch.num_items_step_global = items_global
        yield step


def _of_ranks(items: int, group: Any) -> list[int]:
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return [items]
    if not torch.distributed.is_initialized():
        return [items]
    found = [0] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(found, items, group)
    return found
