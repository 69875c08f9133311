"""What a state says of the sources of its corpus, so that another corpus is found out and named.

Few sources are listed with name, documents and a hash of their lengths. Of many, a hash stands for
all, and 16 bits of the hash of each say which one differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brimful import _core
from brimful.corpus import Corpus
from brimful.source_columns import MOST_LISTED, pack, unpack


def source_prints(corpus: Corpus) -> list[Any] | dict[str, Any]:
    """The sources of a corpus as a state holds them."""
    native = corpus._native
    if native.num_sources <= MOST_LISTED:
        return [
            [name, native.source_documents(s), f"{native.lengths_hash(s):016x}"]
            for s, name in enumerate(corpus.sources)
        ]
    hashes = native.source_hashes()
    return {
        "count": len(hashes),
        "hash": f"{_core.hash_words(hashes.view(np.int64)):016x}",
        "hashes": pack(hashes.astype(np.uint16)),
    }


def source_differences(state: Any, here: Any, names: Sequence[str]) -> list[str]:
    """One line for each source, up to some, that differs between a state's prints and those here.

    `names` are those of the sources here.
    """
    if isinstance(here, list):
        return _listed_differences(state, here)
    count = here["count"]
    if not isinstance(state, Mapping) or state.get("count") != count:
        found = state.get("count") if isinstance(state, Mapping) else _length(state)
        return [f"sources: {found} in the state, {count} here"]
    if state.get("hash") == here["hash"]:
        return []
    theirs = unpack(state.get("hashes"), np.uint16, count, "sources")
    ours = unpack(here["hashes"], np.uint16, count, "sources")
    differ = np.flatnonzero(theirs != ours)
    named = ", ".join(f"{names[s]!r} (number {s})" for s in differ[:MOST_LISTED].tolist())
    more = f", and {len(differ) - MOST_LISTED:,} more" if len(differ) > MOST_LISTED else ""
    return [
        f"sources: the names, documents or lengths of {named or 'some'}{more} differ in the state"
    ]


def _listed_differences(state: Any, here: list[Any]) -> list[str]:
    if not isinstance(state, (list, tuple)) or len(state) != len(here):
        return [f"sources: {_length(state)} in the state, {len(here)} here"]
    lines = []
    for s, (theirs, ours) in enumerate(zip(state, here, strict=True)):
        if not isinstance(theirs, (list, tuple)) or len(theirs) != len(ours):
            lines.append(f"source {s} ({ours[0]!r}): {theirs!r} in the state, {ours!r} here")
            continue
        for what, a, b in zip(("name", "documents", "hash of lengths"), theirs, ours, strict=False):
            if a != b:
                lines.append(f"source {s} ({ours[0]!r}), {what}: {a!r} in the state, {b!r} here")
    return lines


def _length(state: Any) -> Any:
    """How many sources a state names, or what it has in their place."""
    if isinstance(state, Mapping):
        return state.get("count")
    return len(state) if isinstance(state, (list, tuple)) else repr(state)
