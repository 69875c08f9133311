"""A mixture whose weights change over the run, and a resume in the middle of it.

    python examples/mixture_curriculum.py

takes three sources out of Python's standard library: docstrings, functions of modules, and those of
packages. It begins with much prose and ends with little. Printed are the tokens delivered of each
source, as shares of every stretch of the run, beside the shares that were asked for. Then all is
built anew from a state of the second phase, and the rest of the run comes as it came before.
"""

from __future__ import annotations

import argparse
import ast
import json
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import brimful as bf

Losses = dict[int, float]
PHASES = (
    {"prose": 0.7, "modules": 0.2, "packages": 0.1},
    {"prose": 0.3, "modules": 0.5, "packages": 0.2},
    {"prose": 0.1, "modules": 0.2, "packages": 0.7},
)


def sources() -> dict[str, bf.Corpus]:
    """Documents of bytes: docstrings and functions of modules, and functions of packages."""
    library = Path(sysconfig.get_paths()["stdlib"])
    packages = ("json", "logging", "email", "unittest")
    modules = sorted(library.glob("*.py"))[:40]
    texts = {
        "prose": [text for file in modules for text in docstrings(file)],
        "modules": [text for file in modules for text in functions(file)],
        "packages": [
            text
            for name in packages
            for file in sorted((library / name).glob("*.py"))
            for text in functions(file)
        ],
    }
    return {
        name: bf.open([np.frombuffer(text.encode(), np.uint8) for text in own])
        for name, own in texts.items()
    }


def docstrings(file: Path) -> list[str]:
    """Of a module, its classes and its functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, kinds))
    return [text for node in nodes if (text := ast.get_docstring(node))]


def functions(file: Path) -> list[str]:
    """The text of each function and method."""
    source = file.read_bytes()
    lines = source.decode().splitlines(keepends=True)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    return ["".join(lines[node.lineno - 1 : node.end_lineno]) for node in nodes]


def make_loader(tokens: int) -> bf.DataLoader:
    """Rows of 512 bytes, for a run of three phases of equal length."""
    schedule = [(tokens * i // len(PHASES), weights) for i, weights in enumerate(PHASES)]
    return bf.DataLoader(
        bf.mix(sources(), weights=schedule),
        batch_size=8,
        seq_len=512,
        fields=("input_ids", "shift_labels"),
        # Rows are shuffled within windows of so many documents: short ones keep phases apart.
        window=64,
        shuffle=True,
        seed=11,
    )


class Run:
    """A model that looks one byte back, its optimizer and its loader."""

    def __init__(self, tokens: int, state: dict[str, Any] | None = None) -> None:
        torch.manual_seed(0)
        self.tokens = tokens
        self.model = nn.Sequential(nn.Embedding(256, 32), nn.Linear(32, 256))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        self.loader = make_loader(tokens)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.loader.load_state_dict(json.loads(state["loader"]))

    def state(self) -> dict[str, Any]:
        """All that is needed to go on; the loader's part is text of a few hundred bytes."""
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        copies: dict[str, Any] = torch.utils._pytree.tree_map(
            lambda part: part.clone() if isinstance(part, torch.Tensor) else part, parts
        )
        return {**copies, "loader": json.dumps(self.loader.state_dict())}

    def train(self, stretches: int, save_in: int | None) -> tuple[Losses, dict[str, Any] | None]:
        """Trains up to the number of tokens; says after each stretch what it was made of."""
        losses: Losses = {}
        saved = None
        before = self.exposure()
        while True:  # epochs: sources go on over their ends
            for batch in self.loader:
                logits = self.model(batch["input_ids"])
                loss = functional.cross_entropy(
                    logits.flatten(0, 1), batch["shift_labels"].flatten(), ignore_index=-100
                )
                self.optimizer.zero_grad()
                torch.autograd.backward(loss)
                self.optimizer.step()
                losses[batch.step] = loss.item()
                now = self.exposure()
                done = sum(now.values())
                if (
                    done * stretches // self.tokens
                    == sum(before.values()) * stretches // self.tokens
                ):
                    continue
                self.tell(before, now, losses[batch.step])
                before = now
                if done * stretches // self.tokens == save_in:
                    saved = self.state()
                if done >= self.tokens:
                    return losses, saved

    def exposure(self) -> dict[str, int]:
        """Tokens delivered of each source since the run began, on all ranks."""
        return {name: own["tokens"] for name, own in self.loader.stats().exposure.items()}

    def tell(self, before: dict[str, int], now: dict[str, int], loss: float) -> None:
        """One line on a stretch: the share of each source in it, and what was asked for."""
        tokens = {name: now[name] - before[name] for name in now}
        total = sum(tokens.values())
        middle = (sum(before.values()) + sum(now.values())) // 2
        asked = PHASES[min(middle * len(PHASES) // self.tokens, len(PHASES) - 1)]
        shares = "  ".join(
            f"{name} {count / total:4.0%} of {asked[name]:4.0%}" for name, count in tokens.items()
        )
        print(f"{sum(now.values()):9,} tokens  {shares}  loss {loss:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=360_000)
    parser.add_argument("--stretches", type=int, default=9, help="lines to print")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stretches = arguments.stretches
    losses, state = Run(arguments.tokens).train(stretches, save_in=stretches // 2)
    assert state is not None
    print("(a line is a few long documents, so shares come near what was asked for over several)")
    print(f"again from a state of {len(state['loader']):,} bytes and the model's:")
    again, _ = Run(arguments.tokens, state).train(stretches, save_in=None)
    difference = max(abs(losses[step] - loss) for step, loss in again.items())
    print(f"largest difference over {len(again)} losses: {difference:.1e}")
    assert again.keys() == set(range(min(again), max(losses) + 1))
    assert difference < 1e-5


if __name__ == "__main__":
    main()
