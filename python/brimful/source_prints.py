"""What a state says of the sources of its corpus, so that another corpus is found out and named.

Few sources are listed with name, documents and a hash of their lengths. Of many, a hash stands for
all, and 16 bits of the hash of each say which one differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from brimful import _core
from brimful.corpus import Corpus
from brimful.source_columns import MOST_LISTED, pack, unpack


def source_prints(corpus: Corpus) -> list[Any]:
    """The sources of a corpus as a state holds them: a list of each, or what stands for all."""
    native = corpus._native
    if native.num_sources <= MOST_LISTED:
        return [
            [name, native.source_documents(s), f"{native.lengths_hash(s):016x}"]
            for s, name in enumerate(corpus.sources)
        ]
    hashes = native.source_hashes()
    hash_of_all = f"{_core.hash_words(hashes.view(np.int64)):016x}"
    return [len(hashes), hash_of_all, pack(hashes.astype(np.uint16))]


def source_differences(state: Any, here: list[Any], names: Sequence[str]) -> list[str]:
    """One line for each source, up to some, that differs between a state's prints and those here.

    `names` are those of the sources here.
    """
    if not _stands_for_many(here):
        return _listed_differences(state, here)
    count, hash_of_all, hashes = here
    if not _stands_for_many(state) or state[0] != count:
        return [f"sources: {_count(state)} in the state, {count} here"]
    if state[1] == hash_of_all:
        return []
    theirs = unpack(state[2], np.uint16, count, "sources")
    ours = unpack(hashes, np.uint16, count, "sources")
    differ = np.flatnonzero(theirs != ours)
    named = ", ".join(f"{names[s]!r} (number {s})" for s in differ[:MOST_LISTED].tolist())
    more = f", and {len(differ) - MOST_LISTED:,} more" if len(differ) > MOST_LISTED else ""
    return [
        f"sources: the names, documents or lengths of {named or 'some'}{more} differ in the state"
    ]


def _listed_differences(state: Any, here: list[Any]) -> list[str]:
    if not isinstance(state, (list, tuple)) or _stands_for_many(state) or len(state) != len(here):
        return [f"sources: {_count(state)} in the state, {len(here)} here"]
    lines = []
    for s, (theirs, ours) in enumerate(zip(state, here, strict=True)):
        if not isinstance(theirs, (list, tuple)) or len(theirs) != len(ours):
            lines.append(f"source {s} ({ours[0]!r}): {theirs!r} in the state, {ours!r} here")
            continue
        for what, a, b in zip(("name", "documents", "hash of lengths"), theirs, ours, strict=False):
            if a != b:
                lines.append(f"source {s} ({ours[0]!r}), {what}: {a!r} in the state, {b!r} here")
    return lines


def _stands_for_many(prints: Any) -> bool:
    """Whether these are `[count, hash, hashes]`, and not a list of sources."""
    return isinstance(prints, (list, tuple)) and len(prints) == 3 and isinstance(prints[0], int)


def _count(state: Any) -> Any:
    """How many sources a state names, or what it has in their place."""
    if _stands_for_many(state):
        return state[0]
    return len(state) if isinstance(state, (list, tuple)) else repr(state)
