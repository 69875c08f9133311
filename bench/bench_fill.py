"""Filling one packed batch, next to vectorised numpy and torch, from the same pieces.

    pytest bench/bench_fill.py

All make input_ids, labels and position_ids, int64 [1, total], of the same 8 bins of 4,096 tokens.
brimful is timed through `next()` of a loader without threads, so its figure includes dealing,
packing (once a window) and making the tensors; the rivals are handed the pieces. The check that all
three hold the same values runs first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import brimful as bf
from rivals.loader.fills import numpy_fill, torch_fill
from rivals.loader.shards import SEQ_LEN, Shards, write_shards

BATCH_SIZE = 8
FIELDS = ("input_ids", "labels", "position_ids")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return write_shards(tmp_path_factory.mktemp("shards"))


@pytest.fixture(autouse=True, scope="module")
def one_torch_thread() -> Iterator[None]:
    """All fill on one thread; torch would use all cores, and waits for them when they are busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def batches(shards: Shards) -> Iterator[Any]:
    """Epoch after epoch of varlen batches, filled in the calling thread."""
    loader = bf.DataLoader(
        shards.corpus,
        batch_size=BATCH_SIZE,
        seq_len=SEQ_LEN,
        layout="varlen",
        fields=FIELDS,
        num_workers=0,
    )
    while True:
        yield from loader


def pieces_of(batch: Any, shards: Shards) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the batch's pieces begin in the file, and their lengths."""
    lengths = np.diff(np.asarray(batch.cu_seqlens).astype(np.int64))
    return shards.begins[batch.documents] + batch.starts, lengths


def test_all_fills_give_the_same(shards: Shards) -> None:
    batch = next(batches(shards))
    begins, lengths = pieces_of(batch, shards)
    for fill in (numpy_fill, torch_fill):
        filled = fill(shards.tokens, begins, lengths)
        for name in FIELDS:
            np.testing.assert_array_equal(np.asarray(filled[name]), np.asarray(batch[name]))


@pytest.mark.benchmark(group="fill")
def test_brimful(benchmark: Any, shards: Shards) -> None:
    stream = batches(shards)
    next(stream)
    batch = benchmark(lambda: next(stream))
    benchmark.extra_info["tokens"] = batch.num_tokens


@pytest.mark.benchmark(group="fill")
@pytest.mark.parametrize("fill", [numpy_fill, torch_fill], ids=["numpy", "torch"])
def test_rival(benchmark: Any, shards: Shards, fill: Any) -> None:
    batch = next(batches(shards))
    benchmark(fill, shards.tokens, *pieces_of(batch, shards))
    benchmark.extra_info["tokens"] = batch.num_tokens
