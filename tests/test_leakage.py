"""Packed documents do not see each other: a real transformer gives each the logits it has alone."""

import numpy as np
import pytest
import torch
import transformers

import brimful as bf

SEQ_LEN = 24


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    config._attn_implementation = "sdpa"
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def documents():
    generator = np.random.default_rng(1)
    return [generator.integers(1, 97, n) for n in (9, 5, 12, 7, 3, 20, 1, 11)]


def worst_difference(model, documents, batch, logits):
    flat = logits.reshape(-1, logits.shape[-1])
    worst, seen = 0.0, 0
    for s, number in enumerate(batch.documents):
        if number < 0:
            continue
        begin, end = int(batch.cu_seqlens[s]), int(batch.cu_seqlens[s + 1])
        alone = model(input_ids=torch.from_numpy(documents[number])[None], use_cache=False).logits[
            0
        ]
        worst = max(worst, (flat[begin:end] - alone).abs().max().item())
        seen += 1
    return worst, seen


@pytest.mark.parametrize("layout", ["rows", "varlen"])
@torch.no_grad()
def test_c14_logits_packed_equal_logits_alone(model, documents, layout):
    loader = bf.DataLoader(bf.open(documents), batch_size=4, seq_len=SEQ_LEN, layout=layout)
    seen = 0
    for batch in loader:
        worst, count = worst_difference(
            model, documents, batch, model(**batch, use_cache=False).logits
        )
        assert worst < 1e-5
        seen += count
    assert seen == len(documents)


@torch.no_grad()
def test_the_bare_call_with_a_cache_leaks(model, documents):
    """transformers skips its detection of packed rows when it makes a key-value cache."""
    loader = bf.DataLoader(bf.open(documents), batch_size=4, seq_len=SEQ_LEN)
    worst = max(
        worst_difference(model, documents, batch, model(**batch).logits)[0] for batch in loader
    )
    assert worst > 1e-2


@torch.no_grad()
def test_the_loss_is_that_of_the_documents_alone(model, documents):
    (batch,) = bf.DataLoader(bf.open(documents), batch_size=8, seq_len=SEQ_LEN, layout="varlen")
    packed = model(**batch, use_cache=False, num_items_in_batch=batch.num_items).loss
    alone = sum(
        torch.nn.functional.cross_entropy(
            model(input_ids=ids[None], use_cache=False).logits[0, :-1], ids[1:], reduction="sum"
        )
        for ids in map(torch.from_numpy, documents)
        if len(ids) > 1
    )
    assert batch.num_items == sum(len(d) - 1 for d in documents)
    torch.testing.assert_close(packed, alone / batch.num_items)
