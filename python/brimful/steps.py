"""Steps of a run by their numbers: which are skipped, and which documents each one holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError

_MOST_NAMED = 1_000_000  # of a range with gaps


@dataclass(frozen=True, kw_only=True, eq=False)
class StepDocuments:
    """What one optimizer step holds, over all ranks, as the plan has it. One entry a piece.

    Attributes:
        step: its number in the run, from 0.
        epoch: the epoch it belongs to.
        skipped: whether it is left out by `skip=`.
        documents: int64, document numbers in the corpus.
        starts: int64, place of the piece's first token in its document.
        lengths: int32, tokens.
        sources: names of the documents' sources.
        rank, micro_batch, row: int32, where the piece is dealt to.
    """

    step: int
    epoch: int
    skipped: bool
    documents: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    sources: npt.NDArray[np.str_]
    rank: npt.NDArray[np.int32]
    micro_batch: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]


def documents_of(
    steps: _core.Steps, step: int, *, skip: _core.StepSet, names: Iterable[str]
) -> StepDocuments:
    """The documents of a step; throws PlanError for one that the run does not have."""
    epoch, columns = steps.pieces(step)
    sources = np.array(list(names))[columns.pop("sources")]
    return StepDocuments(
        step=step, epoch=epoch, skipped=skip.contains(step), sources=sources, **columns
    )


def checked_skip(skip: Any) -> tuple[int | range, ...]:
    """The steps that `skip=` names, as ints and ranges. Throws PlanError for anything else."""
    if isinstance(skip, (range, int, np.integer)):
        skip = (skip,)
    if isinstance(skip, (str, bytes)) or not isinstance(skip, Iterable):
        raise PlanError(f"skip is {skip!r}; give numbers of steps and ranges of them")
    return tuple(_checked_entry(entry) for entry in skip)


def _checked_entry(entry: Any) -> int | range:
    if isinstance(entry, range):
        if entry and min(entry[0], entry[-1]) < 0:
            raise PlanError(f"skip: {entry!r} has steps below 0; they are numbered from 0 up")
        if abs(entry.step) != 1 and entry[_MOST_NAMED:]:
            raise PlanError(f"skip: {entry!r} names more than {_MOST_NAMED:,} single steps")
        return entry
    if isinstance(entry, bool) or not isinstance(entry, (int, np.integer)):
        raise PlanError(f"skip: {entry!r} is neither the number of a step nor a range of them")
    number = int(entry)
    if not 0 <= number < 2**62:
        raise PlanError(f"skip: {number} is no step; they are numbered from 0 up")
    return number


def skip_ranges(skip: tuple[int | range, ...]) -> list[tuple[int, int]]:
    """The same steps as ranges `begin, end`, the end not in them."""
    ranges = []
    for entry in skip:
        if isinstance(entry, int):
            ranges.append((entry, entry + 1))
        elif abs(entry.step) != 1:
            ranges += [(number, number + 1) for number in entry]
        elif entry:
            ends = (entry[0], entry[-1])
            ranges.append((min(ends), max(ends) + 1))
    return ranges
