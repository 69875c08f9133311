"""The order of a run is a promise: a state that was saved yesterday must mean the same place today.

Whoever changes an order on purpose raises `VERSION` in brimful/state.py, so that older states are
refused, and renews the hashes here: `python tests/test_golden.py` prints them.
"""

import hashlib
from typing import Any

import numpy as np
import pytest

import brimful as bf
from brimful import state
from truth import corpus_of, mixed

LENGTHS = [1 + (i * 7919 % 1009) ** 3 // 1_000_000 for i in range(3000)]  # 1 .. 1,025
SETTINGS: dict[str, dict[str, Any]] = {
    "streaming": {},
    "streaming, shuffled": {"shuffle": True, "seed": 5},
    "best_fit_decreasing, shuffled": {"packing": "best_fit_decreasing", "shuffle": True},
    "first_fit_decreasing": {"packing": "first_fit_decreasing", "overlong": "drop"},
    "best_fit": {"packing": "best_fit", "overlong": "truncate"},
    "concat, varlen": {"packing": "concat", "layout": "varlen", "shuffle": True},
    "pad": {"packing": "pad"},
    "bucket": {"packing": "bucket", "shuffle": True, "world_size": 2, "rank": 1},
    "balance": {"balance": "attention", "world_size": 2, "rank": 1, "accumulate": 2},
    "at most 3 documents": {"max_segments": 3, "shuffle": True},
    "mixture": {"shuffle": True, "seed": 2**63},
    "scheduled mixture": {"shuffle": True, "packing": "best_fit_decreasing"},
    "capped mixture": {"shuffle": True, "world_size": 2, "rank": 0},
    "mixture that drops": {"packing": "concat", "shuffle": True},
    "shuffled blocks": {"shuffle": "block", "shuffle_block": 64},
}
GOLDEN = {
    "streaming": "e2205356757c458a",
    "streaming, shuffled": "94d8aad9bd2b43fa",
    "best_fit_decreasing, shuffled": "5158a9770255da66",
    "first_fit_decreasing": "45fcec9e56ea7b70",
    "best_fit": "9c5d70af3bdf876d",
    "concat, varlen": "4b821154636acb55",
    "pad": "fcdab6d361580e93",
    "bucket": "3ead886a2e1ed2b5",
    "balance": "3a9f2b47f55870b5",
    "at most 3 documents": "1666a2c9fd1d8189",
    "mixture": "972734a6416cb4fc",
    "scheduled mixture": "34c1409a04e393b3",
    "capped mixture": "1030e8e8f948cc75",
    "mixture that drops": "23667cdf14bec33a",
    "shuffled blocks": "bf9bf308c83817be",
}
VERSION = 3


MIXES: dict[str, dict[str, Any]] = {
    "mixture": {"weights": [0.5, 0.2, 0.3]},
    "scheduled mixture": {
        "weights": [
            (0, {"a": 1, "b": 2, "c": 0}),
            (200_000, {"a": 1, "b": 1, "c": 1}),
            (900_000, {"a": 0, "b": 1, "c": 3}),
        ],
        "epoch_tokens": 500_000,
    },
    "capped mixture": {
        "weights": [3, 1, 1],
        "unit": "documents",
        "max_passes": {"a": 0.75, "c": 2.5},
    },
    "mixture that drops": {"weights": [5, 1, 1], "when_dry": "drop"},
}


def corpus(name: str) -> bf.Corpus:
    if name not in MIXES:
        return corpus_of(LENGTHS)
    sources = {"a": LENGTHS[:1500], "b": LENGTHS[1500:2700], "c": LENGTHS[2700:]}
    return mixed(sources, **MIXES[name])


def stream_hash(name: str) -> str:
    """Of the pieces of two epochs, in order, with the bounds of batches and rows."""
    settings: dict[str, Any] = {"batch_size": 3, "seq_len": 512, "window": 700, "num_workers": 2}
    loader = bf.DataLoader(corpus(name), **(settings | SETTINGS[name]))
    found = hashlib.sha256()
    for _ in range(2):
        for batch in loader:
            bounds = np.asarray(batch.cu_seqlens)[: batch.num_segments + 1]
            for column in (batch.documents, batch.starts, bounds):
                found.update(np.ascontiguousarray(column, "<i8").tobytes())
    return found.hexdigest()[:16]


@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
@pytest.mark.parametrize("name", SETTINGS)
def test_the_order_of_a_run_is_that_of_this_version(name: str) -> None:
    assert state.VERSION == VERSION, "renew the hashes with the version of the state"
    assert stream_hash(name) == GOLDEN[name]


if __name__ == "__main__":
    for name in SETTINGS:
        print(f'    "{name}": "{stream_hash(name)}",')
