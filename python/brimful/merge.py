"""The documents of a corpus as runs, in order, each read from its file when a writer asks for it.

Sequences of documents are kept where the index of a file tells them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core, manifest
from brimful._core import FormatError
from brimful.corpus import Corpus
from brimful.runs import Run
from brimful.shard_layout import MANIFEST

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


def tokenizers_of(corpus: Corpus) -> list[Mapping[str, Any] | None]:
    """What made the tokens of each store, where a manifest beside its file tells."""
    told: dict[Path, Mapping[str, Any] | None] = {}
    for source in corpus._parts:
        for store in source.stores:
            path = Path(store.name)
            if path not in told:
                told.update(_tokenizers_in(path.parent))
            told.setdefault(path, None)
    return list(told.values())


def _tokenizers_in(folder: Path) -> dict[Path, Mapping[str, Any] | None]:
    if not (folder / MANIFEST).is_file():
        return {}
    known = manifest.read(folder)
    return {folder / shard.bin.name: known.tokenizer for shard in known.shards}


def common_tokenizer(tokenizers: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """The tokenizer that made all tokens; None where that is not known of some of them.

    Raises:
        FormatError: two of them are different ones, whose ids mean different things.
    """
    every = list(tokenizers)
    known = [tokenizer for tokenizer in every if tokenizer is not None]
    for other in known[1:]:
        if _identity(other) != _identity(known[0]):
            raise FormatError(
                f"tokens of two tokenizers, {_identity(known[0])} and {_identity(other)}, whose "
                "ids mean different things; if they mean the same, give the writer a tokenizer="
            )
    return known[0] if known and len(known) == len(every) else None


def _identity(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    """What decides about ids; not where the tokenizer lay, or what ends a document."""
    decisive = {key: tokenizer[key] for key in ("kind", "name", "xxh3") if key in tokenizer}
    return decisive or dict(tokenizer)


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
