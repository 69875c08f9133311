"""Loaders whose steps are looked at by their numbers, and what those hold."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from hypothesis import strategies as st

import brimful as bf
from truth import corpus_of

ORDERS: tuple[dict[str, Any], ...] = (
    {"shuffle": True},
    {"shuffle": True, "packing": "concat", "drop_last": True},
    {"packing": "best_fit", "overlong": "truncate"},
    {"shuffle": True, "balance": "attention"},
    {"packing": "bucket", "drop_last": True},
)


def make(lengths: Any, **how: Any) -> bf.DataLoader:
    corpus = lengths if isinstance(lengths, bf.Corpus) else corpus_of(lengths)
    return bf.DataLoader(corpus, **{"seq_len": 16, "window": 7, "num_workers": 0, "seed": 3, **how})


def run(loader: bf.DataLoader, epochs: int) -> list[bf.Batch]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped tokens
        return [batch for _ in range(epochs) for batch in loader]


def resumed(state: Any, lengths: Any, *, change: bool = False, **how: Any) -> bf.DataLoader:
    loader = make(lengths, **how)
    loader.load_state_dict(json.loads(json.dumps(state)), allow_batch_change=change)
    return loader


def told(loader: bf.DataLoader, step: int) -> list[tuple[int, ...]]:
    """(rank, micro_batch, row, document, start, length) of the pieces of a step."""
    found = loader.documents(step)
    columns = (found.rank, found.micro_batch, found.row, found.documents, found.starts)
    assert {column.dtype.name for column in columns} == {"int32", "int64"}
    return [tuple(map(int, entry)) for entry in zip(*columns, found.lengths, strict=True)]


def delivered(loaders: list[bf.DataLoader], epochs: int) -> dict[int, list[tuple[int, ...]]]:
    """The same of every step that the ranks deliver."""
    steps: dict[int, list[tuple[int, ...]]] = {}
    for loader in loaders:
        for batch in run(loader, epochs):
            width = next(iter(batch.values())).shape[1]
            cu = np.asarray(batch.cu_seqlens)
            entries = steps.setdefault(batch.step, [])
            for s, d in enumerate(batch.documents.tolist()):
                place = (loader.config.rank, batch.micro_batch, int(cu[s]) // width)
                if d >= 0:
                    entries.append((*place, d, int(batch.starts[s]), int(batch.lengths[s])))
    return steps


lengths_of = st.lists(st.integers(0, 40), min_size=1, max_size=40)
