"""What packing does to the distribution of documents: each group of them before and after.

A model learns from what is delivered, not from what the corpus holds. So documents are taken in
groups, tenths of them by length and the sources they come from, and each group says how much of it
was given and how much was placed, how many of its documents are whole, cut or missing, and how many
of its tokens have lost earlier tokens of their document. Whole arrays are summed, no document is
looked at in Python: about a second for 1e7 pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import PlanError
from brimful.wording import counted

_TENTHS = 10


@dataclass(frozen=True, kw_only=True)
class DocumentGroup:
    """Documents before packing, and what became of them. Counts of documents and of tokens.

    Every document given is one of whole, split, truncated, dropped or empty; every token given is
    placed or dropped.
    """

    documents: int  # given
    tokens: int  # given
    whole_documents: int  # in one piece
    split_documents: int  # in more than one piece, nothing lost
    truncated_documents: int  # placed without their end
    dropped_documents: int  # left out whole
    empty_documents: int  # of length 0
    placed_tokens: int
    pieces: int  # parts of documents in bins
    tokens_after_cut: int  # placed, but without what came before the cut
    given_context: float  # earlier tokens of its document that a token sees, the mean over given
    placed_context: float  # the same in the bins, the mean over placed tokens

    @property
    def dropped_tokens(self) -> int:
        """Of dropped documents and of the ends of truncated ones."""
        return self.tokens - self.placed_tokens

    @property
    def placed_documents(self) -> int:
        """Documents of which something is in a bin."""
        return self.whole_documents + self.split_documents + self.truncated_documents

    @property
    def cut_documents(self) -> int:
        """Documents of which something is in a bin, but not the whole in one piece."""
        return self.split_documents + self.truncated_documents

    @property
    def labels(self) -> int:
        """Effective tokens before packing: without a start token in front of it, a document's first
        token is predicted by nothing.
        """
        return self.tokens - (self.documents - self.empty_documents)

    @property
    def placed_labels(self) -> int:
        """Effective tokens in the bins: the first one of a piece has no label."""
        return self.placed_tokens - self.pieces

    @property
    def labels_lost_to_cuts(self) -> int:
        """Without start tokens, each piece of a document after its first has one label less."""
        return self.pieces - self.placed_documents


@dataclass(frozen=True, kw_only=True)
class LengthGroup(DocumentGroup):
    """Documents of `shortest` to `longest` tokens, both included."""

    shortest: int
    longest: int


@dataclass(frozen=True, kw_only=True)
class SourceGroup(DocumentGroup):
    """Documents of one source, named as in `sources`."""

    source: int | str


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The documents of a plan before and after packing: all, by length, and by source.

    Groups add up to `total`: every document is in one group by length, and in one source.
    """

    total: DocumentGroup
    by_length: tuple[LengthGroup, ...]  # tenths of the documents, shortest first; fewer than ten
    #   groups where there are fewer than ten documents. Equally long ones go by number.
    by_source: tuple[SourceGroup, ...]  # in the order of their first document; () without sources
    bins_by_pieces: npt.NDArray[np.int64]  # [k]: bins that hold k pieces
    documents_by_pieces: npt.NDArray[np.int64]  # [k]: placed in k pieces, k > 0

    def __repr__(self) -> str:
        total = self.total
        return (
            f"<brimful.Distribution: {counted(total.documents, 'document')}, "
            f"{total.whole_documents:,} whole, {total.cut_documents:,} cut, "
            f"{total.dropped_documents:,} dropped, {total.empty_documents:,} empty; "
            f"{counted(len(self.by_length), 'group')} by length, "
            f"{counted(len(self.by_source), 'source')}>"
        )


def describe(
    document_lengths: npt.NDArray[np.int64],
    bin_offsets: npt.NDArray[np.int64],
    documents: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    sources: npt.ArrayLike | None,
) -> Distribution:
    """The distribution of a plan; its arguments are the arrays of `PackPlan`.

    O(pieces + documents log documents) time, about 100 bytes of memory a document.
    """
    columns = _Columns(document_lengths, documents, starts, lengths)
    n = len(document_lengths)
    order = _by_length(document_lengths)
    edges = np.unique(np.linspace(0, n, _TENTHS + 1).round().astype(np.int64))
    tenths = columns.sums(edges[:-1], order)
    ends = zip(order[edges[:-1]], order[edges[1:] - 1], strict=True) if n else ()
    by_length = tuple(
        LengthGroup(
            shortest=int(document_lengths[first]),
            longest=int(document_lengths[last]),
            **_means(sums),
        )
        for (first, last), sums in zip(ends, tenths, strict=True)
    )
    by_source: tuple[SourceGroup, ...] = ()
    if sources is not None:
        names, heads, order_of_sources = _by_source(sources, n)
        by_source = tuple(
            SourceGroup(source=name, **_means(sums))
            for name, sums in zip(names, columns.sums(heads, order_of_sources), strict=True)
        )
    return Distribution(
        total=DocumentGroup(**_means({name: sum(t[name] for t in tenths) for name in _SUMMED})),
        by_length=by_length,
        by_source=by_source,
        bins_by_pieces=np.bincount(np.diff(bin_offsets)),
        documents_by_pieces=np.bincount(columns.pieces[columns.pieces > 0]),
    )


_SUMMED = tuple(f.name for f in fields(DocumentGroup))


class _Columns:
    """What is known of each document, as arrays [documents]."""

    def __init__(
        self,
        given: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        n = len(given)
        self.pieces = np.bincount(documents, minlength=n)
        first = starts == 0
        before_cuts = np.zeros(n, np.int64)
        before_cuts[documents[first]] = lengths[first]
        given_context = _context(given)
        placed_context = _context(before_cuts)
        later, later_lengths = documents[~first], lengths[~first].astype(np.int64)
        # Integers are added as such: counts are exact at any size.
        after_cut = np.zeros(n, np.int64)
        np.add.at(after_cut, later, later_lengths)
        np.add.at(placed_context, later, _context(later_lengths))
        placed = before_cuts + after_cut
        complete = placed == given
        absent = placed == 0
        self._summed: dict[str, npt.NDArray[Any]] = {
            "documents": np.ones(n, np.bool_),
            "tokens": given,
            "whole_documents": complete & (self.pieces == 1),
            "split_documents": complete & (self.pieces > 1),
            "truncated_documents": ~complete & ~absent,
            "dropped_documents": ~complete & absent,
            "empty_documents": given == 0,
            "placed_tokens": placed,
            "pieces": self.pieces,
            "tokens_after_cut": after_cut,
            "given_context": given_context,
            "placed_context": placed_context,
        }

    def sums(
        self, heads: npt.NDArray[np.int64], order: npt.NDArray[np.int64] | None
    ) -> list[dict[str, Any]]:
        """Sums over each range of documents that begins at one of `heads`, in the order given by
        `order` [documents] or (None) as they are numbered.
        """
        ranges: list[dict[str, Any]] = [{} for _ in heads]
        for name, column in self._summed.items() if len(heads) else ():
            ordered = column if order is None else column[order]
            dtype = np.int64 if ordered.dtype == np.bool_ else ordered.dtype
            for sums, total in zip(
                ranges, np.add.reduceat(ordered, heads, dtype=dtype).tolist(), strict=True
            ):
                sums[name] = total
        return ranges


def _means(sums: dict[str, Any]) -> dict[str, Any]:
    """The fields of DocumentGroup from their sums over its documents: context is a mean."""
    return {
        **sums,
        "given_context": sums["given_context"] / max(sums["tokens"], 1),
        "placed_context": sums["placed_context"] / max(sums["placed_tokens"], 1),
    }


def _context(lengths: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Earlier tokens that the tokens of a piece see, added up: 0 + 1 + ... + (length - 1)."""
    tokens = lengths.astype(np.float64)
    return tokens * (tokens - 1) / 2


def _by_length(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Documents by length, then by number: 16 bits at a time, which numpy sorts by counting."""
    order = np.argsort(lengths.astype(np.uint16), kind="stable")
    for bits in (16, 32, 48):
        if len(lengths) and int(lengths.max()) >> bits:
            digits = (lengths >> bits).astype(np.uint16)[order]
            order = order[np.argsort(digits, kind="stable")]
    return order


def _by_source(
    sources: npt.ArrayLike, n: int
) -> tuple[list[Any], npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Names of the sources, where each begins in the order, and the order (None: as they are)."""
    given = np.asarray(sources)
    if given.shape != (n,):
        raise PlanError(
            f"sources has the shape {list(given.shape)}; one number or name a document is "
            f"expected, so [{n}]"
        )
    if n and given.dtype.kind not in "iuUO":
        raise PlanError(
            f"sources has the dtype {given.dtype}; integers or names of sources are expected"
        )
    # Documents of a source mostly stand together, and few runs are cheap to sort.
    runs = np.flatnonzero(np.concatenate([[n > 0], given[1:] != given[:-1]])[:n])
    try:
        names, first, run_source = np.unique(given[runs], return_index=True, return_inverse=True)
    except TypeError as error:
        raise PlanError(f"sources mixes names and numbers: {error}") from None
    turn = np.empty(len(names), np.int64)  # by the first document
    turn[np.argsort(first)] = np.arange(len(names))
    names = names[np.argsort(first)]
    if len(runs) == len(names):
        return names.tolist(), runs, None
    source = np.repeat(turn[run_source], np.diff(runs, append=n))
    order = np.argsort(source, kind="stable")
    heads = np.searchsorted(source[order], np.arange(len(names)))
    return names.tolist(), heads, order
