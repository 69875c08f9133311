"""Batches a second of the loader, next to torch's DataLoader, over the same mapped shards.

    pytest bench/bench_loader.py

Nothing is trained: the loop draws BATCHES batches a round from a stream that is already running.
Kinds of torch loader: "padded" does the same job without packing; "fixed rows" does less (slices of
one stream, no documents), and is the floor of what its machinery costs. Batches differ in how full
they are, so compare tokens a second: `tokens_a_round` of extra_info over the time of a round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch

import brimful as bf
from brimful.cli.padding import padded_loader
from rivals.loader.fixed_rows import fixed_row_loader
from rivals.loader.shards import DTYPE, SEQ_LEN, Shards, write_shards

BATCH_SIZE = 8
BATCHES = 100
ROUNDS = 7
SEED = 17


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return write_shards(tmp_path_factory.mktemp("shards"))


def endless(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def tokens_in(batch: Any) -> int:
    """Real tokens of any of the batches here."""
    if isinstance(batch, torch.Tensor):
        return batch.numel()
    return int(batch["num_tokens"] if isinstance(batch, dict) else batch.num_tokens)


def run(benchmark: Any, loader: Iterable[Any]) -> None:
    stream = endless(loader)
    next(stream)

    drawn: list[int] = []

    def draw() -> None:
        drawn.append(sum(tokens_in(next(stream)) for _ in range(BATCHES)))

    benchmark.pedantic(draw, rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["tokens_a_round"] = sum(drawn) / len(drawn)


@pytest.mark.benchmark(group="loader")
@pytest.mark.parametrize("num_workers", [0, 1, 2])
@pytest.mark.parametrize("layout", ["rows", "varlen"])
def test_brimful(benchmark: Any, shards: Shards, layout: str, num_workers: int) -> None:
    loader = bf.DataLoader(
        shards.corpus,
        batch_size=BATCH_SIZE,
        seq_len=SEQ_LEN,
        layout=layout,
        shuffle=True,
        seed=SEED,
        num_workers=num_workers,
    )
    run(benchmark, loader)
    loader.close()


@pytest.mark.benchmark(group="loader")
@pytest.mark.parametrize("num_workers", [0, 2])
def test_torch_padded(benchmark: Any, shards: Shards, num_workers: int) -> None:
    loader = padded_loader(
        shards.corpus,
        batch_size=BATCH_SIZE,
        seq_len=SEQ_LEN,
        num_workers=num_workers,
        shuffle=True,
        seed=SEED,
    )
    run(benchmark, loader)


@pytest.mark.benchmark(group="loader")
@pytest.mark.parametrize("num_workers", [0, 2])
def test_torch_fixed_rows(benchmark: Any, shards: Shards, num_workers: int) -> None:
    loader = fixed_row_loader(
        shards.bin_path,
        DTYPE,
        batch_size=BATCH_SIZE,
        seq_len=SEQ_LEN,
        num_workers=num_workers,
        seed=SEED,
    )
    run(benchmark, loader)
