"""The documents of a corpus as runs, in order, each read from its file when a writer asks for it.

Sequences of documents are kept where the index of a file tells them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful.corpus import Corpus
from brimful.runs import Run

_DOCUMENTS = 1 << 16  # described in memory at a time


@dataclass(frozen=True)
class StoredTokens:
    """Tokens of a store from `begin`. A slice is a copy: the file cannot change under it."""

    store: _core.TokenStore
    begin: int
    size: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.store.dtype)

    def __getitem__(self, part: slice, /) -> npt.NDArray[Any]:
        start, stop, _ = part.indices(self.size)
        return _core.read_tokens(self.store, self.begin + start, stop - start)


class StoredLossMask(StoredTokens):
    """The loss mask of the same tokens."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)

    def __getitem__(self, part: slice, /) -> npt.NDArray[Any]:
        start, stop, _ = part.indices(self.size)
        return _core.read_loss_mask(self.store, self.begin + start, stop - start)


def runs_of(corpus: Corpus) -> Iterator[Run]:
    """All documents of a corpus, in order, as runs of which each describes a limited number."""
    for source in corpus._parts:
        stores = source.stores
        rows = source.rows
        if rows is None:
            for store in stores:
                yield from _runs(store, 0, len(store))
        else:
            for store, first, stop in _stretches(stores, rows):
                yield from _runs(store, first, stop)


def _runs(store: _core.TokenStore, first: int, stop: int) -> Iterator[Run]:
    for at in range(first, stop, _DOCUMENTS):
        begin, lengths, ends = _core.read_structure(store, at, min(_DOCUMENTS, stop - at))
        size = int(lengths.sum())
        mask = StoredLossMask(store, begin, size) if store.has_loss_mask else None
        yield Run(StoredTokens(store, begin, size), lengths, ends, mask)


def _stretches(
    stores: list[_core.TokenStore], rows: npt.NDArray[np.int64]
) -> Iterator[tuple[_core.TokenStore, int, int]]:
    """A row map as stretches of neighbours in one store: (store, first unit, end)."""
    starts = np.cumsum([0, *map(len, stores)])
    for at in range(0, rows.size, _DOCUMENTS):
        block = rows[at : at + _DOCUMENTS]
        places = np.searchsorted(starts, block, "right") - 1
        breaks = np.flatnonzero((np.diff(block) != 1) | (np.diff(places) != 0)) + 1
        edges = np.concatenate(([0], breaks, [block.size]))
        for first, stop in itertools.pairwise(edges.tolist()):
            place = int(places[first])
            unit = int(block[first] - starts[place])
            yield stores[place], unit, unit + stop - first
