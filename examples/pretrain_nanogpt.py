"""Pretrains a GPT of nanoGPT's shape, in miniature, from Megatron shards; it resumes exactly.

    python examples/pretrain_nanogpt.py

writes shards of bytes from the source files of Python's standard library, trains, takes a
checkpoint on the way, builds everything anew from the checkpoint and takes the rest of the steps
again: the losses are the same. With --folder the shards and the checkpoint stay, and the next call
with more --steps goes on from there.
"""

from __future__ import annotations

import argparse
import math
import os
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import brimful as bf

VOCABULARY = 256  # the bytes of UTF-8
SEQ_LEN = 192
ACCUMULATE = 2  # micro-batches of an optimizer step
PEAK_RATE = 3e-3


@dataclass(frozen=True)
class Shape:
    """nanoGPT's smallest has 12 layers, 12 heads and a width of 768."""

    layers: int = 2
    heads: int = 4
    width: int = 64


class Block(nn.Module):
    """Attention and a feed-forward part, each behind a LayerNorm and added to what comes in."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.heads = shape.heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, bias=False) for _ in range(2))
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """hidden [rows, length, width], mask [rows, 1, length, length] -> like hidden."""
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.mix(self.norms[0](hidden)).chunk(3, -1)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        hidden = hidden + self.out(seen.transpose(1, 2).flatten(2))
        spread: Tensor = self.down(functional.gelu(self.up(self.norms[1](hidden))))
        return hidden + spread


class GPT(nn.Module):
    """Embeddings of tokens and places, blocks, and the token table again as the head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, shape.width)
        self.places = nn.Embedding(SEQ_LEN, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, batch: bf.Batch) -> Tensor:
        """The summed loss of a batch. Tokens see earlier ones of their own document alone."""
        mask = batch.dense_mask()
        hidden = self.tokens(batch["input_ids"]) + self.places(batch["position_ids"])
        for block in self.blocks:
            hidden = block(hidden, mask)
        logits = functional.linear(self.norm(hidden), self.tokens.weight)
        labels = batch["shift_labels"].flatten()
        return functional.cross_entropy(logits.flatten(0, 1), labels, reduction="sum")


class Training:
    """All that a run consists of, made anew or from a checkpoint."""

    def __init__(self, shards: Path, steps: int, checkpoint: Path | None = None) -> None:
        torch.manual_seed(0)
        self.steps = steps
        self.model = GPT(Shape())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), PEAK_RATE, (0.9, 0.95))
        self.loader = bf.DataLoader(
            shards,
            batch_size=4,
            seq_len=SEQ_LEN,
            accumulate=ACCUMULATE,
            fields=("input_ids", "shift_labels", "position_ids"),
            carry_label=True,
            vocab_size=VOCABULARY,
            shuffle=True,
            seed=1337,
            drop_last=True,
        )
        if checkpoint is not None:
            saved = torch.load(checkpoint, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.loader.load_state_dict(saved["loader"])

    def save(self, checkpoint: Path) -> None:
        """Writes a checkpoint between two steps; one that is not complete never has its name."""
        parts = {
            name: getattr(self, name).state_dict() for name in ("model", "optimizer", "loader")
        }
        unfinished = checkpoint.with_suffix(".unfinished")
        torch.save(parts, unfinished)
        os.replace(unfinished, checkpoint)

    def run(self, save_at: int | None, checkpoint: Path) -> dict[int, float]:
        """Takes the steps that are left; returns the loss of each by its number."""
        losses: dict[int, float] = {}
        began = time.perf_counter()
        while True:  # epochs
            for batch in self.loader:
                if batch.step >= self.steps:
                    return losses
                loss = self.model(batch) / max(batch.num_items_step_global, 1)
                loss.backward()
                losses[batch.step] = losses.get(batch.step, 0.0) + loss.item()
                if batch.micro_batch < ACCUMULATE - 1:
                    continue
                self.take_step(batch.step)
                done = batch.step + 1
                if done % 5 == 0:
                    seconds = time.perf_counter() - began
                    print(f"step {done:4}  loss {losses[batch.step]:.4f}  {seconds:5.1f} s")
                if done == save_at:
                    self.save(checkpoint)

    def take_step(self, step: int) -> None:
        """One step of AdamW, at a rate that rises for 10 steps and falls along a cosine."""
        along = min(step / max(self.steps, 1), 1.0)
        rate = PEAK_RATE * min((step + 1) / 10, 0.55 + 0.45 * math.cos(math.pi * along))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


def write_shards(folder: Path, files: int) -> None:
    """A document for each of the first source files of the standard library."""
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:files]
    with bf.ShardWriter(folder, dtype="uint16", tokenizer={"kind": "bytes"}) as writer:
        for source in sources:
            writer.add(list(source.read_bytes()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="keep shards and checkpoint, and go on")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # threads would only wait for each other in a model as small
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        shards, checkpoint = folder / "shards", folder / "checkpoint.pt"
        if not shards.exists():
            write_shards(shards, files=60)
        training = Training(shards, arguments.steps, checkpoint if checkpoint.exists() else None)
        corpus = training.loader.corpus
        parameters = sum(p.numel() for p in training.model.parameters())
        print(f"{corpus.num_tokens:,} bytes of {len(corpus)} files; {parameters:,} parameters")
        if arguments.folder is not None:
            training.run(arguments.steps, checkpoint)
            return
        losses = training.run(arguments.steps // 2, checkpoint)
        print(training.loader.stats().summary())
        print(f"again from the checkpoint of step {arguments.steps // 2}:")
        again = Training(shards, arguments.steps, checkpoint).run(None, checkpoint)
    difference = max(abs(losses[step] - loss) for step, loss in again.items())
    print(f"largest difference over {len(again)} losses: {difference:.1e}")
    assert difference < 1e-4


if __name__ == "__main__":
    main()
