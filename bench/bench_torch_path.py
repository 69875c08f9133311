"""What torch's path costs beside torch's DataLoader, and what the native path gains beside it.

    pytest bench/bench_torch_path.py

"overhead": the same loader of torch's and through brimful take turns at every batch. Items are rows
of 1,024 tokens, collated as torch does, 8 a batch: cheap ones, beside which a cost shows. The clock
and the account of a state are all that brimful adds. Overhead is what `next()` takes more of the
processor, in the thread that calls it, as a share of what torch's takes: by that clock waiting
for workers does not count. Both are tenth percentiles, which other programs disturb least.

"native": a Hugging Face dataset of documents (`input_ids`), through torch's DataLoader and through
the native path (`packing="pad"`, a document a row), with one and the same collate function in both.
Items are dicts of lists, as such a dataset gives them, or of tensors (`with_format("torch")`).
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch.utils import data

import brimful as bf

ROWS, SEQ_LEN, BATCH_SIZE = 2_000, 1_024, 8
DOCUMENTS = 4_000
ROUNDS = {0: 20, 2: 6}


def epoch_seconds(loader: Iterable[Any]) -> float:
    begun = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - begun


@pytest.mark.benchmark(group="overhead")
@pytest.mark.parametrize("num_workers", ROUNDS)
def test_overhead_of_torchs_path(benchmark: Any, num_workers: int) -> None:
    rows = data.TensorDataset(torch.arange(ROWS * SEQ_LEN).reshape(ROWS, SEQ_LEN))
    how: dict[str, Any] = {"batch_size": BATCH_SIZE, "shuffle": True, "num_workers": num_workers}
    loaders = data.DataLoader(rows, **how), bf.DataLoader(rows, **how)
    times: tuple[list[int], list[int]] = [], []

    def both() -> None:
        """An epoch of each, in turns; which comes first changes from batch to batch."""
        iterators = [iter(loader) for loader in loaders]
        for number in range(len(loaders[0])):
            for which in (number % 2, 1 - number % 2):
                begun = time.thread_time_ns()
                next(iterators[which])
                times[which].append(time.thread_time_ns() - begun)

    benchmark.pedantic(both, rounds=ROUNDS[num_workers])
    torchs, ours = (statistics.quantiles(one, n=10)[0] for one in times)
    benchmark.extra_info["torchs_us"] = torchs / 1e3
    benchmark.extra_info["ours_us"] = ours / 1e3
    benchmark.extra_info["overhead"] = ours / torchs - 1


def padded(documents: list[Any]) -> torch.Tensor:
    """The ids of items of a Hugging Face dataset, or of documents, in a matrix."""
    ids = [
        document["input_ids"] if isinstance(document, dict) else document for document in documents
    ]
    tensors = [torch.as_tensor(tokens) for tokens in ids]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)


@pytest.fixture(scope="module")
def documents() -> Dataset:
    generator = np.random.default_rng(0)
    lengths = generator.lognormal(6, 0.8, DOCUMENTS).astype(np.int64).clip(8, 4_096)
    return Dataset.from_dict(
        {"input_ids": [generator.integers(0, 50_000, length).tolist() for length in lengths]}
    )


LOADERS: dict[str, Callable[..., Any]] = {
    "torch": data.DataLoader,
    "native": functools.partial(bf.DataLoader, packing="pad", seq_len=4_096, layout="varlen"),
}


@pytest.mark.benchmark(group="native path, the same collate function, an epoch")
@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("items", ["lists", "tensors"])
@pytest.mark.parametrize("loader", LOADERS)
def test_native_path(
    benchmark: Any, documents: Dataset, loader: str, items: str, num_workers: int
) -> None:
    dataset = documents if items == "lists" else documents.with_format("torch")
    how = {"shuffle": True, "collate_fn": padded, "num_workers": num_workers}
    made = LOADERS[loader](dataset, BATCH_SIZE, **how)
    tokens = sum(int((batch != 0).sum()) for batch in made)
    benchmark.pedantic(epoch_seconds, (made,), rounds=5)
    benchmark.extra_info["tokens"] = tokens
