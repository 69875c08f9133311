"""A run: documents that lie end to end, with their two-level structure, on their way to shards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

# An index holds lengths of sequences in 32 bits; a longer document becomes several sequences.
MAX_SEQUENCE = (1 << 31) - 1


@dataclass(frozen=True)
class Run:
    """Documents of one or more sequences each. All positions count from the start of the run."""

    tokens: npt.NDArray[Any]  # integers
    sequence_lengths: npt.NDArray[np.int64]  # in tokens
    sequence_ends: npt.NDArray[np.int64]  # of documents, in sequences
    loss_mask: npt.NDArray[np.uint8] | None  # 0 or 1 [tokens]; None is 1 everywhere

    @cached_property
    def token_ends(self) -> npt.NDArray[np.int64]:
        """Where each document ends, in tokens."""
        ends = np.zeros(self.sequence_lengths.size + 1, np.int64)
        np.cumsum(self.sequence_lengths, out=ends[1:])
        token_ends: npt.NDArray[np.int64] = ends[self.sequence_ends]
        return token_ends

    @property
    def num_documents(self) -> int:
        return self.sequence_ends.size

    def effective(self) -> npt.NDArray[np.int64]:
        """Per document: tokens that get a label, which are those of the mask but for the first."""
        ends, mask = self.token_ends, self.loss_mask
        lengths = np.diff(ends, prepend=0)
        if mask is None:
            counts: npt.NDArray[np.int64] = np.maximum(lengths - 1, 0)
            return counts
        # One call a document: a reduction over all of them would widen the mask eightfold first.
        kept = (
            np.count_nonzero(mask[end - length + 1 : end])
            for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
        )
        return np.fromiter(kept, np.int64, lengths.size)

    def documents(self, start: int, stop: int) -> Run:
        """A part of the run; tokens and masks are views."""
        sequences = slice(self._at(self.sequence_ends, start), self._at(self.sequence_ends, stop))
        tokens = slice(self._at(self.token_ends, start), self._at(self.token_ends, stop))
        return Run(
            self.tokens[tokens],
            self.sequence_lengths[sequences],
            self.sequence_ends[start:stop] - sequences.start,
            None if self.loss_mask is None else self.loss_mask[tokens],
        )

    @staticmethod
    def _at(ends: npt.NDArray[np.int64], document: int) -> int:
        return int(ends[document - 1]) if document else 0


def run_of_documents(
    tokens: npt.NDArray[Any],
    lengths: npt.NDArray[np.int64],
    loss_mask: npt.NDArray[np.uint8] | None,
) -> Run:
    """Documents of `lengths` tokens: one sequence each, or as many as a long one needs."""
    parts = np.maximum(-(-lengths // MAX_SEQUENCE), 1)
    ends = np.cumsum(parts)
    if ends.size == 0 or ends[-1] == ends.size:
        return Run(tokens, lengths, ends, loss_mask)
    sequences = np.full(int(ends[-1]), MAX_SEQUENCE)
    sequences[ends - 1] = lengths - (parts - 1) * MAX_SEQUENCE
    return Run(tokens, sequences, ends, loss_mask)
