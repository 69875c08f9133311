"""The time that Megatron's indices take, brimful's beside megatron-core's, on the same inputs.

    pip install megatron-core==0.16.1
    python -m pytest bench/bench_megatron_order.py

`sample_index` and `blend` are the loops that megatron-core has in C++ (its helpers.cpp, as the
package from PyPI has it built); `indices` are all three indices of a data set, shuffles included,
which numpy does for both.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brimful as bf
from brimful import _core
from length_sets import wide_sets

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import megatron_core

SEED = 1234
EPOCHS = 3
CASES = [
    ("pretrain", 100_000, 4096),
    ("pretrain", 1_000_000, 4096),
    ("pretrain", 1_000_000, 512),
    ("sft", 1_000_000, 4096),
    ("sft", 10_000_000, 4096),
]


def lengths_of(name: str, n: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    lengths, _ = wide_sets(n)[name]
    return np.ascontiguousarray(lengths, np.int32)


def measure(benchmark: Any, group: str, call: Callable[[], Any], rounds: int) -> Any:
    benchmark.group = group
    return benchmark.pedantic(call, rounds=rounds, warmup_rounds=1)


@pytest.mark.parametrize("whose", ["brimful", "megatron-core"])
@pytest.mark.parametrize(("name", "n", "seq_len"), CASES)
def test_sample_index(benchmark: Any, name: str, n: int, seq_len: int, whose: str) -> None:
    lengths = lengths_of(name, n)
    order = np.random.RandomState(SEED).permutation(n).astype(np.int32)
    tokens = int(lengths.sum(dtype=np.int64))
    samples = (tokens - 1) // seq_len
    if whose == "brimful":

        def index() -> Any:
            return _core.sample_index(lengths, order, samples, seq_len, True, wide=False)
    else:

        def index() -> Any:
            build = megatron_core.helpers.build_sample_idx_int32
            return build(lengths, order, seq_len, 1, tokens, True, 1)

    found = measure(benchmark, f"sample index {name} {n:,} {seq_len}", index, 15)
    assert found.shape == (samples + 1, 2)


@pytest.mark.parametrize("whose", ["brimful", "megatron-core"])
@pytest.mark.parametrize(("name", "n", "seq_len"), CASES)
def test_indices(benchmark: Any, name: str, n: int, seq_len: int, whose: str) -> None:
    lengths = lengths_of(name, n)
    samples = int((EPOCHS - 0.5) * lengths.sum(dtype=np.int64)) // seq_len
    if whose == "brimful":

        def indices() -> Any:
            return bf.megatron_order(lengths, seq_len, samples, SEED)
    else:

        def indices() -> Any:
            return megatron_core.of_lengths(lengths, seq_len, samples, SEED)

    found = measure(benchmark, f"indices {name} {n:,} {seq_len}", indices, 5)
    assert len(found.document_index) == EPOCHS * n


@pytest.mark.parametrize("whose", ["brimful", "megatron-core"])
@pytest.mark.parametrize("sets", [2, 3, 5, 10, 20, 50, 200])
def test_blend(benchmark: Any, sets: int, whose: str) -> None:
    samples = 1_000_000 if sets <= 20 else 200_000
    weights = np.random.RandomState(SEED).uniform(0.1, 3, sets).tolist()
    if whose == "brimful":

        def blend() -> Any:
            return bf.megatron_blend(weights, samples)
    else:

        def blend() -> Any:
            return megatron_core.blend(weights, samples)

    measure(benchmark, f"blend {sets} {samples:,}", blend, 15)
