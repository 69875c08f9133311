"""What saving costs: a state, an epoch with a state after every batch, and a checkpoint of torch's.

    pytest bench/bench_state.py

The corpus is sparse: 10,000,000 documents of 64 tokens, in one source or in 64.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed.checkpoint as dcp

import brimful as bf

DOCUMENTS, TOKENS, BATCHES = 10_000_000, 64, 300


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("tokens") / "tokens.bin"
    with path.open("wb") as file:
        file.truncate(DOCUMENTS * TOKENS * 2)
    return np.memmap(path, np.uint16, "r").reshape(DOCUMENTS, TOKENS)


def loader(tokens: Any, sources: int) -> bf.DataLoader:
    parts = np.array_split(tokens, sources)
    corpus = bf.mix({f"source-{s}": bf.open(part) for s, part in enumerate(parts)})
    return bf.DataLoader(corpus, batch_size=8, seq_len=4096, shuffle=True)


@pytest.mark.parametrize("sources", [1, 64])
def test_state(benchmark: Any, tokens: Any, sources: int) -> None:
    made = loader(tokens, sources)
    iterator = iter(made)
    next(iterator)
    made.state_dict()  # the first one hashes all lengths
    benchmark.group = "state_dict()"
    benchmark.extra_info["bytes"] = len(json.dumps(benchmark(made.state_dict)))


@pytest.mark.parametrize("every_step", [False, True])
def test_batches(benchmark: Any, tokens: Any, every_step: bool) -> None:
    """300 batches of 8 x 4,096, alone or each followed by `state_dict()`."""
    made = loader(tokens, 1)
    iterator = iter(made)
    next(iterator)
    made.state_dict()

    def take() -> None:
        for _ in islice(iterator, BATCHES):
            if every_step:
                made.state_dict()

    benchmark.group = f"{BATCHES} batches"
    benchmark.pedantic(take, rounds=20, warmup_rounds=2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("direction", ["save", "load"])
def test_checkpoint(benchmark: Any, tokens: Any, tmp_path: Path, direction: str) -> None:
    """torch.distributed.checkpoint of a loader alone, in one process."""
    states = {"loader": loader(tokens, 1)}
    dcp.save(states, checkpoint_id=tmp_path)
    benchmark.group = "torch.distributed.checkpoint"
    benchmark(dcp.save if direction == "save" else dcp.load, states, checkpoint_id=tmp_path)
