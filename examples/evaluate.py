"""The loss of a model over held-out documents: every token once, on any number of ranks.

    python examples/evaluate.py
    torchrun --nproc-per-node 2 examples/evaluate.py --batch-size 3

print the same loss. What makes it so: the epoch is fixed, so that every evaluation sees the same
rows; nothing is dropped (`drop_last=False`) or repeated; losses are summed, not averaged by batch,
and divided once by the number of predicted tokens of all ranks. A rank that has no row left gets a
dummy row. It has no labels and adds nothing, but the model runs on it as well: ranks that share a
model (FSDP, tensor parallelism) have to take part in every forward pass.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

import brimful as bf

VOCABULARY = 64


@dataclass(frozen=True)
class Evaluation:
    """Sums over all ranks: the loss in nats, predicted tokens, rows that were none."""

    loss_sum: float
    predicted: int
    dummy_rows: int

    @property
    def loss(self) -> float:
        return self.loss_sum / max(self.predicted, 1)

    @property
    def perplexity(self) -> float:
        return math.exp(self.loss)


@torch.no_grad()
def evaluate(model: nn.Module, loader: bf.DataLoader) -> Evaluation:
    """One pass over the loader's epoch 0; the same result on every rank.

    The loader has shift_labels: the label of a place is the next token. With carry_label=True the
    places where a document was cut have theirs too, so that all tokens are predicted but the first
    ones of documents.
    """
    model.eval()
    loader.set_epoch(0)
    sums = torch.zeros(3, dtype=torch.float64)
    for batch in loader:
        logits = model(batch)
        loss = functional.cross_entropy(
            logits.flatten(0, -2).double(),
            batch["shift_labels"].flatten(),
            ignore_index=-100,
            reduction="sum",
        )
        found = [loss.item(), batch.num_items, batch.num_tokens == 0]
        sums += torch.tensor(found, dtype=torch.float64)
    if dist.is_initialized():
        dist.all_reduce(sums)
    return Evaluation(sums[0].item(), int(sums[1]), int(sums[2]))


def held_out_loader(corpus: bf.Corpus, batch_size: int) -> bf.DataLoader:
    """Rows of up to 128 tokens; rank and world size are those of torch.distributed."""
    return bf.DataLoader(
        corpus,
        batch_size=batch_size,
        seq_len=128,
        fields=("input_ids", "shift_labels", "position_ids"),
        carry_label=True,
    )


class Model(nn.Module):
    """A small attention layer between two tables, in place of yours."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, batch: bf.Batch) -> Tensor:
        """Logits [rows, seq_len, VOCABULARY]; tokens see earlier ones of their document alone."""
        hidden = self.tokens(batch["input_ids"])
        query, key, value = self.mix(hidden)[:, None].chunk(3, -1)
        attended = functional.scaled_dot_product_attention(query, key, value, **batch.sdpa())
        logits: Tensor = self.out(hidden + attended[:, 0])
        return logits


def documents(count: int, seed: int = 5) -> bf.Corpus:
    """Made-up documents of 1 to 400 tokens, some longer than a row."""
    rng = np.random.default_rng(seed)
    return bf.open([rng.integers(0, VOCABULARY, n) for n in rng.integers(1, 400, count)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=101)
    parser.add_argument("--batch-size", type=int, default=4)
    arguments = parser.parse_args()
    if dist.is_torchelastic_launched():
        dist.init_process_group("gloo")
    torch.manual_seed(0)  # the same model on every rank, as a checkpoint would give it
    corpus = documents(arguments.documents)
    found = evaluate(Model(), held_out_loader(corpus, arguments.batch_size))
    assert found.predicted == corpus.num_tokens - len(corpus)
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    if ranks == 1 or dist.get_rank() == 0:
        print(
            f"loss {found.loss:.6f}, perplexity {found.perplexity:.4f} over {found.predicted:,} of "
            f"{corpus.num_tokens:,} tokens; {found.dummy_rows} dummy rows; number of ranks: {ranks}"
        )
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
