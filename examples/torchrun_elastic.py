"""Training that is killed and goes on where it was, on another number of ranks.

    python examples/torchrun_elastic.py

shows it: two ranks train until one of them is killed, a single process goes on from the last
checkpoint, and the losses are those of a run that nobody stopped. A job of your own is started as

    torchrun --nproc-per-node 2 --max-restarts 3 examples/torchrun_elastic.py --folder checkpoints

as often as need be and with any number of ranks that divides the global batch. The loader is one
entry of the checkpoint: its state is the same on all ranks and speaks of the whole run. (Restarts
within one torchrun, with gloo in torch 2.13: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, or a new
process may look for those that are gone.)
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import brimful as bf

GLOBAL_BATCH = 12  # rows of an optimizer step, over all ranks
VOCABULARY = 64


class Model(nn.Module):
    """A tiny language model that looks one token back."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 16)
        self.out = nn.Linear(16, VOCABULARY)

    def forward(self, input_ids: Tensor) -> Tensor:
        """input_ids [rows, seq_len] -> logits [rows, seq_len, VOCABULARY]."""
        logits: Tensor = self.out(self.tokens(input_ids))
        return logits


class Training:
    """Model and optimizer as one entry of a checkpoint."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )


def corpus() -> bf.Corpus:
    """Made-up documents in which a token is often followed by the next number."""
    rng = np.random.default_rng(7)
    lengths = rng.integers(5, 120, 900)
    return bf.open([(np.arange(n) + rng.integers(0, VOCABULARY)) % VOCABULARY for n in lengths])


def train(steps: int, folder: Path | None, kill_at: int | None) -> dict[int, float]:
    """Trains up to a number of steps, from the newest checkpoint on where there is one.

    Returns the losses of the steps that this call took.
    """
    torch.manual_seed(0)
    world_size = dist.get_world_size()
    assert GLOBAL_BATCH % world_size == 0, f"{world_size} ranks do not divide {GLOBAL_BATCH} rows"
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = bf.DataLoader(
        corpus(),
        batch_size=GLOBAL_BATCH // world_size,
        seq_len=128,
        fields=("input_ids", "shift_labels"),
        shuffle=True,
        seed=17,
        drop_last=True,
    )
    states = {"training": Training(model, optimizer), "loader": loader}
    newest = None if folder is None else newest_checkpoint(folder)
    if newest is not None:
        dcp.load(states, checkpoint_id=newest)

    losses: dict[int, float] = {}
    while True:  # epochs
        for batch in loader:
            if batch.step >= steps:
                return losses
            if batch.step == kill_at and int(os.environ.get("LOCAL_RANK", "0")) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            summed = functional.cross_entropy(
                model(batch["input_ids"]).flatten(0, 1),
                batch["shift_labels"].flatten(),
                ignore_index=-100,
                reduction="sum",
            )
            # DDP averages gradients over ranks: what is divided by the labels of all of them has to
            # be multiplied by their number.
            optimizer.zero_grad()
            (summed * (world_size / max(batch.num_items_step_global, 1))).backward()
            optimizer.step()
            losses[batch.step] = mean_loss(summed.detach(), batch.num_items_step_global)
            if folder is not None:
                save(states, folder, batch.step + 1, losses)


def mean_loss(summed: Tensor, num_items: int) -> float:
    """The loss of a step over all ranks, for people to look at."""
    dist.all_reduce(summed)
    return summed.item() / max(num_items, 1)


def newest_checkpoint(folder: Path) -> Path | None:
    """The last checkpoint that is complete: torch writes `.metadata` at the end."""
    found = {int(p.parent.name.split("-")[1]): p.parent for p in folder.glob("step-*/.metadata")}
    return found[max(found)] if found else None


def save(states: dict[str, Any], folder: Path, step: int, losses: dict[int, float]) -> None:
    """Saves a checkpoint; the first rank writes the loss down and removes older checkpoints."""
    if dist.get_rank() == 0:  # before: a step without a checkpoint is taken, and written, again
        with (folder / "losses.jsonl").open("a") as file:
            file.write(json.dumps([step - 1, dist.get_world_size(), losses[step - 1]]) + "\n")
    dcp.save(states, checkpoint_id=folder / f"step-{step}")
    if dist.get_rank() == 0:
        shutil.rmtree(folder / f"step-{step - 2}", ignore_errors=True)


def launch(ranks: int, *arguments: str) -> int:
    """Runs this file under torchrun; returns its exit status."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), __file__, *arguments]
    quiet = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    return subprocess.run(
        command, env={**os.environ, **quiet}, stderr=subprocess.DEVNULL, check=False
    ).returncode


def show(steps: int) -> None:
    """Kills a job of two ranks, goes on with one, and compares with a run that nobody stopped."""
    with tempfile.TemporaryDirectory() as name:
        how = ["--folder", name, "--steps", str(steps)]
        killed = launch(2, *how, "--kill-at", str(steps // 2))
        assert killed != 0
        print(f"one of two ranks was killed, and torchrun ended with status {killed}; one goes on")
        train(steps, Path(name), None)
        lines = (Path(name) / "losses.jsonl").read_text().splitlines()
    unbroken = train(steps, None, None)
    found = {step: (ranks, loss) for step, ranks, loss in map(json.loads, lines)}
    print(f"{'step':>4} {'ranks':>5} {'loss':>8} {'never stopped':>13}")
    for step, loss in unbroken.items():
        print(f"{step:4} {found[step][0]:5} {found[step][1]:8.4f} {loss:13.4f}")
    difference = max(abs(found[step][1] - loss) for step, loss in unbroken.items())
    print(f"largest difference: {difference:.1e}")
    assert difference < 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--folder", type=Path, default=Path("checkpoints"))
    parser.add_argument("--kill-at", type=int, help="step at which the second rank is killed")
    arguments = parser.parse_args()
    if dist.is_torchelastic_launched():
        dist.init_process_group("gloo")
        arguments.folder.mkdir(parents=True, exist_ok=True)
        train(arguments.steps, arguments.folder, arguments.kill_at)
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        show(arguments.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
