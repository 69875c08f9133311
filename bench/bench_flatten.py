"""Flattening documents into one batch, next to transformers' collator and vectorised numpy.

    pytest bench/bench_flatten.py

16 documents of 9,633 tokens altogether, uint16 in arrays, or, as transformers' collator takes them,
lists of integers. brimful and numpy make input_ids, labels, position_ids (int64) and document_ids
(int32) with cu_seqlens and the longest length, transformers the same with seq_idx for document_ids.
"native call" is brimful without what Python does around it: the check of each document, and the
Batch. The check that all hold the same values runs first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import transformers
from numpy.typing import NDArray

import brimful as bf
from brimful import _core

FIELDS = ("input_ids", "labels", "position_ids", "document_ids")
IGNORE = -100
TOKENS = 9_633

Make = Callable[[], list[Any]]


def documents() -> list[NDArray[np.uint16]]:
    generator = np.random.default_rng(0)
    ends = np.sort(generator.choice(np.arange(1, TOKENS), 15, replace=False))
    return np.split(generator.integers(0, 50_000, TOKENS).astype(np.uint16), ends)


def native() -> Make:
    given = documents()

    def make() -> list[Any]:
        columns, cu_seqlens, _, _, _, longest, *_ = _core.flatten(
            given,
            masks=[],
            labels=[],
            fields=FIELDS,
            pad_token_id=0,
            multiple=1,
            align=1,
            max_segments=None,
        )
        return [*columns, cu_seqlens, longest]

    return make


def brimful_of(given: list[Any]) -> Make:
    def make() -> list[Any]:
        batch = bf.flatten(given, fields=FIELDS)
        return [*batch.values(), batch.cu_seqlens, batch.max_seqlen]

    return make


def numpy_columns() -> Make:
    given = documents()

    def make() -> list[Any]:
        lengths = np.fromiter(map(len, given), np.int64, len(given))
        cu_seqlens = np.zeros(len(given) + 1, np.int32)
        np.cumsum(lengths, out=cu_seqlens[1:])
        begins = cu_seqlens[:-1]
        ids = np.concatenate(given).astype(np.int64)
        labels = ids.copy()
        labels[begins] = IGNORE
        positions = np.arange(len(ids)) - np.repeat(begins, lengths)
        numbers = np.repeat(np.arange(len(given), dtype=np.int32), lengths)
        return [ids, labels, positions, numbers, cu_seqlens, int(lengths.max())]

    return make


def transformers_collator() -> Make:
    given = [{"input_ids": tokens.tolist()} for tokens in documents()]
    collate = transformers.DataCollatorWithFlattening(
        return_flash_attn_kwargs=True, return_seq_idx=True
    )
    names = ("input_ids", "labels", "position_ids", "seq_idx", "cu_seq_lens_q", "max_length_q")

    def make() -> list[Any]:
        batch = collate(given)
        return [batch[name] for name in names]

    return make


MAKERS: dict[str, Callable[[], Make]] = {
    "brimful, native call": native,
    "brimful, arrays": lambda: brimful_of(documents()),
    "brimful, lists": lambda: brimful_of([tokens.tolist() for tokens in documents()]),
    "numpy": numpy_columns,
    "transformers": transformers_collator,
}


@pytest.mark.parametrize("name", MAKERS)
def test_flatten(benchmark: Any, name: str) -> None:
    make = MAKERS[name]()
    for found, wanted in zip(make(), numpy_columns()(), strict=True):
        np.testing.assert_array_equal(np.asarray(found).reshape(np.shape(wanted)), wanted)
    benchmark(make)
