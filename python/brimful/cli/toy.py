"""A tiny transformer in plain torch, trained for a few steps: the batch as a training loop sees it.

Attention stays inside documents: a token sees the earlier tokens of its row with the same document
id. Token ids of a large vocabulary are folded into few classes, so that a CPU can follow.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

FIELDS = ("input_ids", "labels", "position_ids", "document_ids")  # what the toy reads of a batch


@dataclass(frozen=True)
class ToyConfig:
    """Sizes of the transformer; `classes` counts the folded vocabulary."""

    classes: int = 1024
    seq_len: int = 512
    width: int = 128
    heads: int = 4
    layers: int = 2
    learning_rate: float = 3e-3


@dataclass(frozen=True)
class Training:
    """Losses in nats a predicted token, one a step; the time of all steps in seconds."""

    losses: list[float]
    tokens: int
    seconds: float


def fold_vocabulary(counts: NDArray[np.int64], classes: int) -> tuple[Tensor, float]:
    """Class of each token id, int64 [ids]: the most frequent ids keep a class, the others share 0.

    counts: occurrences of each id [ids]. Also returns the share of tokens with an own class.
    """
    kept = np.argsort(-counts, kind="stable")[: classes - 1]
    table = np.zeros(len(counts), np.int64)
    table[kept] = np.arange(1, len(kept) + 1)
    return torch.from_numpy(table), float(counts[kept].sum() / max(counts.sum(), 1))


def document_mask(document_ids: Tensor) -> Tensor:
    """True where attention is allowed, bool [rows, 1, seq_len, seq_len]: same document, not later.

    document_ids: [rows, seq_len]; -1 on a row's unused end, which then sees only itself.
    """
    same = document_ids[:, :, None] == document_ids[:, None, :]
    mask: Tensor = same.tril()[:, None]
    return mask


class Block(nn.Module):
    """Pre-norm attention and feed-forward of one layer."""

    def __init__(self, config: ToyConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(2))
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.feed = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, length, width = x.shape
        qkv = self.qkv(self.norms[0](x)).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        result: Tensor = x + self.feed(self.norms[1](x))
        return result


class TinyTransformer(nn.Module):
    """Decoder with learned positions, counted inside documents, and tied embeddings."""

    def __init__(self, config: ToyConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.classes, config.width)
        self.positions = nn.Embedding(config.seq_len, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, input_ids: Tensor, position_ids: Tensor, document_ids: Tensor) -> Tensor:
        """Logits [rows, seq_len, classes] of the next token. All inputs are [rows, seq_len]."""
        mask = document_mask(document_ids)
        x = self.tokens(input_ids) + self.positions(position_ids)
        for block in self.blocks:
            x = block(x, mask)
        logits: Tensor = self.norm(x) @ self.tokens.weight.T
        return logits


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum of the losses of all labelled tokens: labels stand under their own token, -100 = none."""
    return functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100, reduction="sum"
    )


def train(
    batches: Iterable[Mapping[str, Any]],
    classes: Tensor,
    config: ToyConfig,
    *,
    steps: int,
    seed: int,
) -> Training:
    """Trains a fresh TinyTransformer on so many batches of FIELDS in layout "rows".

    On one thread: matrices this small gain little from more, and lose much on a busy machine.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _train(batches, classes, config, steps, seed)
    finally:
        torch.set_num_threads(threads)


def _train(
    batches: Iterable[Mapping[str, Any]],
    classes: Tensor,
    config: ToyConfig,
    steps: int,
    seed: int,
) -> Training:
    torch.manual_seed(seed)
    model = TinyTransformer(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    losses: list[float] = []
    tokens = 0
    began = time.perf_counter()
    for batch in itertools.islice(batches, steps):
        labels = batch["labels"]
        labels = torch.where(labels == -100, labels, classes[labels.clamp(min=0)])
        logits = model(classes[batch["input_ids"]], batch["position_ids"], batch["document_ids"])
        items = int((labels != -100).sum())
        loss = next_token_loss(logits, labels) / max(items, 1)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
        tokens += items
    return Training(losses, tokens, time.perf_counter() - began)
