"""A tiny Llama on documents of one arithmetic rule, and the plain loop that trainers must equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import transformers

import brimful as bf

VOCAB = 64
SEQ_LEN = 64


def documents(count: int = 70, seed: int = 3) -> list[np.ndarray]:
    """Documents that count on by a stride of their own, some longer than a row."""
    generator = np.random.default_rng(seed)
    starts, strides, lengths = (generator.integers(1, n, count) for n in (VOCAB, 5, 90))
    return [
        (start + stride * np.arange(2 + length)) % VOCAB
        for start, stride, length in zip(starts, strides, lengths, strict=True)
    ]


def loader(**settings: Any) -> Any:
    """Two rows of packed documents a batch, in another order each epoch."""
    how = {"batch_size": 2, "seq_len": SEQ_LEN, "shuffle": True, "seed": 7, "num_workers": 1}
    return bf.DataLoader(bf.open(documents()), **(how | settings))


def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=SEQ_LEN,
        attn_implementation="sdpa",
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
    )
    return transformers.LlamaForCausalLM(config)


def optimizer(model: Any) -> Any:
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def plain_losses(batches: Any, steps: int) -> list[float]:
    """The loss of each step of a loop without a trainer: summed, over the labels of the step."""
    trained = model()
    adam = optimizer(trained)
    losses = []
    loss_of_step, items = 0.0, 0
    for batch in endless(batches):
        loss = trained(
            **batch, use_cache=False, num_items_in_batch=batch.num_items_step_global
        ).loss
        loss.backward()
        loss_of_step += loss.item()
        items += batch.num_items
        if items == batch.num_items_step:  # the last micro-batch of the step
            adam.step()
            adam.zero_grad()
            losses.append(loss_of_step)
            if len(losses) == steps:
                return losses
            loss_of_step, items = 0.0, 0
    raise AssertionError("an endless loop ended")


def endless(batches: Any) -> Iterator[Any]:
    """Epoch after epoch."""
    while True:
        yield from batches
