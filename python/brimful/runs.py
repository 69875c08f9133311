"""A run: documents that lie end to end, with their two-level structure, on their way to shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# An index holds lengths of sequences in 32 bits; a longer document becomes several sequences.
MAX_SEQUENCE = (1 << 31) - 1
BLOCK = 1 << 18  # items looked at in one go, so that no temporary grows with a document


class Items(Protocol):
    """One item a token, read by slices: an array, or a part of a file that is read when asked."""

    @property
    def size(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __getitem__(self, part: slice, /) -> npt.NDArray[Any]: ...


@dataclass(frozen=True)
class Run:
    """Documents of one or more sequences each. All positions count from the start of the run."""

    tokens: Items  # integers
    sequence_lengths: npt.NDArray[np.int64]  # in tokens
    sequence_ends: npt.NDArray[np.int64]  # of documents, in sequences
    loss_mask: Items | None  # uint8, 0 or 1 a token; None is 1 everywhere

    @property
    def num_documents(self) -> int:
        return self.sequence_ends.size

    @cached_property
    def token_ends(self) -> npt.NDArray[np.int64]:
        """Where each document ends, in tokens."""
        ends = np.zeros(self.sequence_lengths.size + 1, np.int64)
        np.cumsum(self.sequence_lengths, out=ends[1:])
        token_ends: npt.NDArray[np.int64] = ends[self.sequence_ends]
        return token_ends

    def effective(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Of documents start to stop: tokens with a label, those of the mask but for the first."""
        ends = self.token_ends
        begins = np.concatenate(([0], ends[:-1]))[start:stop]
        ends = ends[start:stop]
        if self.loss_mask is None:
            counts: npt.NDArray[np.int64] = np.maximum(ends - begins - 1, 0)
            return counts
        # One call a document: a reduction over all of them would widen the mask eightfold first.
        kept = (
            _count_ones(self.loss_mask, begin + 1, end)
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        )
        return np.fromiter(kept, np.int64, stop - start)


def _count_ones(mask: Items, start: int, stop: int) -> int:
    if stop - start <= BLOCK:
        return int(np.count_nonzero(mask[start:stop])) if start < stop else 0
    return sum(_count_ones(mask, at, min(at + BLOCK, stop)) for at in range(start, stop, BLOCK))


def run_of_documents(tokens: Items, lengths: npt.NDArray[np.int64], loss_mask: Items | None) -> Run:
    """Documents of `lengths` tokens: one sequence each, or as many as a long one needs."""
    parts = np.maximum(-(-lengths // MAX_SEQUENCE), 1)
    ends = np.cumsum(parts)
    if ends.size == 0 or ends[-1] == ends.size:
        return Run(tokens, lengths, ends, loss_mask)
    sequences = np.full(int(ends[-1]), MAX_SEQUENCE)
    sequences[ends - 1] = lengths - (parts - 1) * MAX_SEQUENCE
    return Run(tokens, sequences, ends, loss_mask)


def copy_run(run: Run, dtype: str) -> Run:
    """The same run in arrays of its own; the tokens fit the dtype."""
    whole = slice(0, run.tokens.size)
    mask = None if run.loss_mask is None else run.loss_mask[whole].copy()
    return Run(run.tokens[whole].astype(dtype), run.sequence_lengths, run.sequence_ends, mask)


def join_runs(runs: Sequence[Run]) -> Run:
    """One run of the documents of several, which lie in arrays; all of them have masks, or none."""
    if len(runs) == 1:
        return runs[0]
    shifts = np.cumsum([0, *(run.sequence_lengths.size for run in runs)])
    masks = [run.loss_mask[:] for run in runs if run.loss_mask is not None]
    return Run(
        np.concatenate([run.tokens[:] for run in runs]),
        np.concatenate([run.sequence_lengths for run in runs]),
        np.concatenate([run.sequence_ends + s for run, s in zip(runs, shifts, strict=False)]),
        np.concatenate(masks) if masks else None,
    )
