"""The tiny Llama under a Trainer, also as ranks: `python -m trainer_runs FOLDER STEPS ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

import tiny_llama
from brimful.integrations.transformers import Trainer


def arguments(folder: Any, **how: Any) -> Any:
    """Of a run without clipping, with every step logged."""
    settings = {
        "per_device_train_batch_size": 2,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "max_grad_norm": 0,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    return transformers.TrainingArguments(str(folder), **(settings | how))


def quiet(trainer: Any) -> Any:
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def trainer(folder: Any, loader: Any, **how: Any) -> Any:
    model = tiny_llama.model()
    adam = tiny_llama.optimizer(model)
    constant = torch.optim.lr_scheduler.ConstantLR(adam, 1.0)
    return quiet(
        Trainer(model, arguments(folder, **how), train_dataset=loader, optimizers=(adam, constant))
    )


def losses(trainer: Any) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def main(folder: str, steps: str, accumulate: str, resume: str = "") -> None:
    """Of a rank: the first one writes its losses."""
    how = {
        "max_steps": int(steps),
        "gradient_accumulation_steps": int(accumulate),
        "save_strategy": "steps",
        "save_steps": 7,
        "per_device_train_batch_size": 1,
        "ddp_backend": "gloo",
    }
    args = arguments(folder, **how)
    assert args.world_size > 1
    loader = tiny_llama.loader(batch_size=1, accumulate=int(accumulate))
    made = trainer(folder, loader, **how)
    made.train(resume_from_checkpoint=resume or None)
    if args.process_index == 0:
        Path(folder, "losses.json").write_text(json.dumps(losses(made)))


if __name__ == "__main__":
    main(*sys.argv[1:])
