"""FlexAttention over packed rows: each document attends to itself, by a mask made of lengths.

    python examples/flex_attention.py
    python examples/flex_attention.py --eager

compares what flex_attention gives for whole rows with the attention of each document alone. Only
compiled it skips the blocks that a mask leaves out, and it is compiled once, although documents lie
elsewhere in every batch. --eager shows the same numbers without a compiler, at the cost of all
pairs of tokens: for machines that have none, and for a look with a debugger.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

import brimful as bf

VOCABULARY, WIDTH, HEADS, SEQ_LEN = 512, 64, 4, 1024
BLOCK = 128


class Heads(nn.Module):
    """Queries, keys and values of tokens; attention itself is what this file is about."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, ...]:
        """[rows, length] -> three of [rows, heads, length, width of a head]."""
        parts = self.mix(self.tokens(input_ids)).chunk(3, -1)
        return tuple(part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)


def loader() -> bf.DataLoader:
    """Two rows of made-up documents a batch, of 20 to 600 tokens each."""
    rng = np.random.default_rng(0)
    documents = [rng.integers(0, VOCABULARY, n) for n in rng.integers(20, 600, 200)]
    return bf.DataLoader(
        documents,
        batch_size=2,
        seq_len=SEQ_LEN,
        packing="best_fit_decreasing",
        fields=("input_ids", "position_ids"),
        shuffle=True,
        seed=5,
    )


def largest_difference(batch: bf.Batch, found: Tensor, heads: tuple[Tensor, ...]) -> float:
    """Between attention over rows and that of each document alone, in any place."""
    differences = []
    for begin, end in pairwise(batch.cu_seqlens.tolist()):
        row, first = divmod(begin, SEQ_LEN)
        part = (slice(row, row + 1), slice(None), slice(first, first + end - begin))
        query, key, value = (head[part] for head in heads)
        alone = scaled_dot_product_attention(query, key, value, is_causal=True)
        differences.append((found[part] - alone).abs().max().item())
    return max(differences)


def blocks_of(mask: BlockMask) -> int:
    """Blocks that are computed, of all rows."""
    full = 0 if mask.full_kv_num_blocks is None else mask.full_kv_num_blocks.sum().item()
    return int(mask.kv_num_blocks.sum().item() + full)


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--eager", action="store_true", help="do without a compiler")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = Heads()
    torch.set_num_threads(1)  # threads would only wait for each other over rows as short
    attend: Any = flex_attention if arguments.eager else torch.compile(flex_attention)
    causal = SEQ_LEN // BLOCK * (SEQ_LEN // BLOCK + 1) // 2
    for batch in islice(loader(), arguments.batches):
        heads = model(batch["input_ids"])
        began = time.perf_counter()
        found = attend(*heads, **batch.flex(BLOCK))
        seconds = time.perf_counter() - began
        difference = largest_difference(batch, found, heads)
        print(
            f"{batch.num_segments:3} segments: {blocks_of(batch.block_mask(BLOCK)):3} of "
            f"{len(batch['input_ids']) * causal} causal blocks, largest difference "
            f"{difference:.0e}, {seconds:6.3f} s"
        )
        assert difference < 1e-5
    if not arguments.eager:
        print(f"compiled for {counters['stats']['unique_graphs']} graph")


if __name__ == "__main__":
    main()
