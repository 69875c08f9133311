"""What the ranks of a torchrun job do in tests; each writes down what it was delivered.

Started as `python -m torch.distributed.run ... tests/rank_job.py TASK FOLDER [ARGUMENTS]`. What
comes back is a JSON file of each rank, which tests compare with one process that works alone.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import brimful as bf
from run_ranks import leave_group
from titan import Checkpointer, PerRank, TrainState
from truth import corpus_of, document, mixed

LENGTHS = [5, 30, 2, 8, 8, 13, 1, 0, 16, 9, 4, 40, 11, 7, 3] * 3
GLOBAL_BATCH = 4

# Settings of loaders; `corpus` is a name of CORPORA.
CASES: dict[str, dict[str, Any]] = {
    "rows": {"shuffle": True},
    "in order": {"packing": "best_fit_decreasing"},
    "varlen": {"shuffle": True, "layout": "varlen"},
    "accumulate": {"shuffle": True, "accumulate": 2},
    "drop_last": {"drop_last": True, "accumulate": 2},
    "balance": {"shuffle": True, "balance": "attention", "accumulate": 2},
    "bucket": {"packing": "bucket"},
    "mixture": {"corpus": "mixture", "shuffle": True},
    "loss masks": {"corpus": "masked", "shuffle": True, "accumulate": 2},
    "fewer documents than ranks": {"corpus": "one"},
    "skipped steps": {"skip": (1, range(3, 5)), "shuffle": True},
    "losses": {"overlong": "drop"},
}


def corpus(name: str) -> bf.Corpus:
    if name == "mixture":
        sources = {"a": LENGTHS, "b": [3] * 20, "c": [17, 4] * 10}
        return mixed(sources, weights={"a": 0.5, "b": 0.2, "c": 0.3})
    if name == "masked":  # every third token is no label, also in pieces of documents that are cut
        documents = [document(i, n) for i, n in enumerate(LENGTHS) if n > 1]
        return bf.open([{"input_ids": tokens, "loss_mask": tokens % 3 > 0} for tokens in documents])
    return corpus_of([9] if name == "one" else LENGTHS)


def make(name: str, world_size: int, **how: Any) -> bf.DataLoader:
    """A loader of this process's share; rank and world size are found by the loader itself."""
    settings = {"corpus": "documents", "batch_size": GLOBAL_BATCH // world_size, **CASES[name]}
    settings |= {"seq_len": 16, "window": 11, "seed": 3, **how}
    return bf.DataLoader(corpus(settings.pop("corpus")), **settings)


def rows_of(batch: bf.Batch) -> list[list[list[int]]]:
    """[document, start, length] of the pieces of each row that has any; of varlen all in one."""
    rows: list[list[list[int]]] = [[] for _ in range(len(next(iter(batch.values()))))]
    width = int(batch.cu_seqlens_host[-1]) // len(rows)
    where = zip(batch.documents, batch.starts, batch.lengths, batch.cu_seqlens_host, strict=False)
    for d, s, n, begin in where:
        if d >= 0:
            rows[int(begin) // width].append([int(d), int(s), int(n)])
    return [row for row in rows if row]


def told(batch: bf.Batch) -> dict[str, Any]:
    """What a batch says of itself."""
    names = ("step", "micro_batch", "num_items", "num_tokens", "num_items_step_global")
    return {"rows": rows_of(batch), **{name: getattr(batch, name) for name in names}}


def two_epochs(loader: bf.DataLoader) -> dict[str, Any]:
    """Lengths and batches of two epochs, dummy rows, and the state behind them."""
    lengths, batches = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped tokens
        for _ in range(2):
            lengths.append(len(loader))
            batches.append([told(batch) for batch in loader])
    return {
        "lengths": lengths,
        "epochs": batches,
        "dummy_rows": loader.stats().dummy_rows,
        "state": loader.state_dict(),
    }


def deliver(folder: Path) -> dict[str, Any]:
    """Two epochs of every case, and the labels of each step as all ranks add them up."""
    found = {}
    for name in CASES:
        case = two_epochs(make(name, dist.get_world_size()))
        batches = [batch for epoch in case["epochs"] for batch in epoch]
        steps = Counter({batch["step"]: 0 for batch in batches})
        for batch in batches:
            steps[batch["step"]] += batch["num_items"]
        items = torch.tensor(list(steps.values()))
        numbers: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(numbers, len(items))
        assert len(set(numbers)) == 1, "ranks with other numbers of steps would hang"
        dist.all_reduce(items)
        found[name] = {**case, "added_up": list(zip(steps, items.tolist(), strict=True))}
    return found


def gradient(model: Any, loader: bf.DataLoader, world_size: int) -> list[float]:
    """Of the first optimizer step: a summed loss over labels of all ranks and micro-batches."""
    for batch in loader:
        if batch.step > 0:
            break
        logits = model(batch["input_ids"] % 50)
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1),
            torch.where(batch["labels"] < 0, -100, batch["labels"] % 50)[:, 1:].flatten(),
            reduction="sum",
        )
        # DDP and FSDP average over ranks.
        (loss * (world_size / batch.num_items_step_global)).backward()
    found = next(model.parameters()).grad
    whole = found.full_tensor() if hasattr(found, "full_tensor") else found  # FSDP holds shares
    return [float(value) for value in whole.flatten()[:200]]


def bigrams() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Embedding(50, 50).double()


def checkpoint(folder: Path) -> dict[str, Any]:
    """Saves loaders in the middle, loads them into fresh ones, and goes on with both."""
    world_size = dist.get_world_size()
    found = {}
    for name in ("rows", "mixture", "skipped steps", "accumulate"):
        loader, model = make(name, world_size), torch.nn.Linear(2, 2)
        batches = iter(loader)
        list(islice(batches, 2))
        states = {"model": model, "itself": loader, "per_rank": PerRank(loader)}
        dcp.save(states, checkpoint_id=folder / name)
        rest = [told(batch) for batch in batches]
        same = []
        for key in ("itself", "per_rank"):
            fresh = make(name, world_size, skip=(), num_workers=1)
            wrapped = fresh if key == "itself" else PerRank(fresh)
            dcp.load({"model": model, key: wrapped}, checkpoint_id=folder / name)
            same.append([told(batch) for batch in fresh] == rest)
        found[name] = {"rest": rest, "same": same}
    return found


def meshes(folder: Path) -> dict[str, Any]:
    """What loaders deliver that were given a mesh, and the place of this rank in it."""
    world_size = dist.get_world_size()
    sizes = (world_size // 2, 2) if world_size > 1 else (1, 1)
    found = {}
    for names in (("dp", "cp"), ("dp", "tp"), ("dp_replicate", "dp_shard"), ("tp", "dp")):
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
        loader = make("rows", 1, batch_size=1, mesh=mesh)
        config = loader.config
        found[" ".join(names)] = {
            "place": dict(zip(names, mesh.get_coordinate(), strict=True)),
            "share": [config.rank, config.world_size],
            "cp": [config.cp_rank, config.cp_size],
            "batches": [[told(batch), int(batch["input_ids"].sum())] for batch in loader],
        }
    return found


def evaluation(_: Path) -> list[Any]:
    """The sums that examples/evaluate.py comes to, by batch size."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    recipe = importlib.import_module("evaluate")
    torch.manual_seed(0)
    model, held_out = recipe.Model().double(), recipe.documents(41)
    found = [recipe.evaluate(model, recipe.held_out_loader(held_out, size)) for size in (1, 3)]
    return [[e.loss_sum, e.predicted, e.dummy_rows] for e in found]


def everything(folder: Path) -> dict[str, Any]:
    """All but training, in one start of the processes."""
    world_size = dist.get_world_size()
    models = {"ddp": DistributedDataParallel(bigrams()), "fsdp": fully_shard(bigrams())}
    return {
        "deliver": deliver(folder),
        "gradients": {
            name: gradient(model, make("accumulate", world_size), world_size)
            for name, model in models.items()
        },
        "checkpoint": checkpoint(folder),
        "meshes": meshes(folder),
        "evaluation": evaluation(folder),
    }


def train(folder: Path, accumulate: str, stop: str, kill: str) -> dict[str, Any]:
    """Goes on from the last checkpoint up to step `stop`, saving every step.

    `kill`: "RANK STEP" of a process that ends without a word once it has been given this step, in
    the first attempt of a job; or "". What ranks were given is written down step by step.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    loader = bf.DataLoader(
        corpus("mixture"),
        batch_size=12 // world_size // int(accumulate),
        accumulate=int(accumulate),
        drop_last=True,
        seq_len=16,
        window=11,
        shuffle=True,
        seed=3,
    )
    progress = TrainState()
    states = {"model": torch.nn.Linear(2, 2), "dataloader": loader, "train_state": progress}
    checkpointer = Checkpointer(folder / "checkpoints", states)
    begun = checkpointer.load()
    assert begun == progress.step
    log = folder / f"{world_size}-{attempt}-{rank}.jsonl"
    while True:
        for batch in loader:
            if batch.step == int(stop):
                return {"begun": begun, "state": loader.state_dict()}
            with log.open("a") as file:
                file.write(json.dumps(told(batch)) + "\n")
            if attempt == 0 and kill == f"{rank} {batch.step}":
                os.kill(os.getpid(), signal.SIGKILL)
            items = torch.tensor(batch.num_items)
            dist.all_reduce(items)  # ranks wait for each other, as in a training step
            if batch.micro_batch == int(accumulate) - 1:
                progress.step = batch.step + 1
                checkpointer.save(progress.step)


def main() -> None:
    task, folder, *arguments = sys.argv[1:]
    share = [make("rows", 1).config.rank, make("rows", 1).config.world_size]  # of the environment
    dist.init_process_group("gloo")
    assert share == [dist.get_rank(), dist.get_world_size()]
    found = {"everything": everything, "train": train}[task](Path(folder), *arguments)
    (Path(folder) / f"rank{dist.get_rank()}.json").write_text(json.dumps(found))
    leave_group()


if __name__ == "__main__":
    main()
