"""What packing gives: which piece lies in which bin, what was cut or lost, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brimful import pack_report
from brimful.distribution import Distribution, describe


@dataclass(frozen=True, eq=False)
class PackPlan:
    """Which piece of which document lies in which bin, and what became of the rest.

    Bin ``b`` holds the pieces ``bin_offsets[b]`` up to ``bin_offsets[b + 1]`` of ``documents``,
    ``starts`` and ``lengths``, in the order in which they were placed (``"streaming"``: in which
    they were given). Bins are numbered in the order in which they were opened; those of
    ``"balanced"`` by their first document, those of ``"optimal"`` by pattern. All lengths count
    tokens of documents; a bin has ``capacity`` slots for tokens, and a piece takes
    ``length + start_token`` of them, rounded up to a multiple of ``align``.
    """

    strategy: str
    overlong: str
    capacity: int
    document_lengths: npt.NDArray[np.int64]  # [documents] given; a read-only
    #   view of an int64 array, not a copy
    bin_offsets: npt.NDArray[np.int64]  # [bins + 1], from 0 to the pieces
    documents: npt.NDArray[np.int64]  # [pieces] index into the given lengths
    starts: npt.NDArray[np.int64]  # [pieces] first token in its document
    lengths: npt.NDArray[np.int32]  # [pieces]
    num_tokens: int  # placed in bins
    lower_bound: int  # no packing of these pieces has fewer bins
    dropped_documents: int  # too long, or in a group or with a resource too large: left out whole
    dropped_tokens: int  # of dropped documents and of the cut ends of truncated ones
    truncated_documents: int  # cut to what a bin takes, the end lost
    split_documents: int  # in more than one piece, nothing lost
    empty_documents: int  # of length 0, in no bin
    start_tokens: int  # inserted, one in front of each piece; not among num_tokens
    align: int  # slots of a piece are a multiple of it
    min_piece: int  # fewest tokens in a piece of a document that was cut
    max_segments: int | None  # most pieces in a bin
    has_groups: bool  # the documents of a group are together in one bin
    resource_capacity: int | None  # most of the resource in a bin; None without a resource

    @property
    def num_bins(self) -> int:
        return len(self.bin_offsets) - 1

    @property
    def utilization(self) -> float | None:
        """Tokens over places, 0..1; None when there is no bin."""
        return self.num_tokens / (self.num_bins * self.capacity) if self.num_bins else None

    def distribution(self, sources: npt.ArrayLike | None = None) -> Distribution:
        """What packing does to the documents: before and after, by length and by source.

        Args:
            sources: the source of each document, shape [documents]: integers or names. For a
                corpus `np.repeat(corpus.sources, [s.documents for s in corpus.info])`.

        Returns:
            A Distribution: documents whole, split, truncated and dropped, tokens given and placed,
            tokens that lost their left context and labels lost to cuts, of all documents, of
            tenths of them by length, and of each source. It takes O(documents) memory and time:
            some seconds for 1e7.

        Raises:
            PlanError: sources of another shape, or neither integers nor names.
        """
        return describe(
            self.document_lengths,
            self.bin_offsets,
            self.documents,
            self.starts,
            self.lengths,
            sources,
        )

    def report(self, sources: npt.ArrayLike | None = None) -> str:
        """The plan in words: how full, how far from the optimum, what was cut or lost, and of which
        documents. `sources` as in `distribution`.
        """
        return pack_report.write(self, self.distribution(sources))

    def __repr__(self) -> str:
        return f"<brimful.PackPlan: {pack_report.headline(self)}>"
