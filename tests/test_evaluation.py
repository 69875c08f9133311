"""The evaluation of docs/ranks.md with a transformers model: each document once, on any ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers

import brimful as bf

DOCUMENTS = [np.random.default_rng(n).integers(1, 97, n) for n in (9, 5, 12, 7, 3, 20, 1, 11, 2)]


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    return transformers.LlamaForCausalLM(config).double().eval()


@pytest.mark.parametrize("layout", ["rows", "varlen"])
@torch.no_grad()
def test_c70_sums_over_batches_and_ranks_are_those_over_documents(model: Any, layout: str) -> None:
    alone = 0.0
    for document in map(torch.from_numpy, DOCUMENTS):
        logits = model(input_ids=document[None], use_cache=False).logits[0]
        loss = torch.nn.functional.cross_entropy(logits[:-1], document[1:], reduction="sum")
        alone += loss.item()
    flagged = 0
    for world_size, batch_size in ((1, 1), (1, 3), (2, 2), (3, 1), (4, 2)):
        summed, predicted = 0.0, 0
        for rank in range(world_size):
            held_out = bf.DataLoader(
                bf.open(DOCUMENTS),
                batch_size=batch_size,
                seq_len=24,
                layout=layout,
                rank=rank,
                world_size=world_size,
            )
            held_out.set_epoch(0)
            for batch in held_out:
                loss = model(**batch, num_items_in_batch=1, use_cache=False).loss.item()
                assert batch.num_tokens > 0 or loss == 0
                flagged += batch.num_tokens == 0
                summed += loss
                predicted += batch.num_items
        assert predicted == sum(map(len, DOCUMENTS)) - len(DOCUMENTS)
        assert summed == pytest.approx(alone, rel=1e-6)  # of float32, as transformers sums
    assert flagged > 0
