"""The tiny Llama under a Trainer, also as ranks: `python -m trainer_runs FOLDER KIND STEPS ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

import tiny_llama
from brimful.integrations.transformers import Trainer
from run_ranks import leave_group
from tiny_tokenizer import tokenizer

# Of a run without clipping, with every step logged.
SETTINGS = {
    "per_device_train_batch_size": 2,
    "logging_steps": 1,
    "save_strategy": "no",
    "report_to": [],
    "max_grad_norm": 0,
    "use_cpu": True,
    "disable_tqdm": True,
}


def arguments(folder: Any, **how: Any) -> Any:
    return transformers.TrainingArguments(str(folder), **(SETTINGS | how))


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


def evaluation() -> Any:
    """Rows for which two ranks have no even number, and batches of unlike many labels."""
    return tiny_llama.loader(batch_size=2, layout="varlen", seed=5)


def sft_trainer(
    folder: Any, train: Any, *, data: Any = None, made: Any = None, collator: Any = None, **how: Any
) -> Any:
    """TRL's, in float32. `data` is for evaluation, `made` has settings of loaders made for it."""
    # Imported here, for it takes long and most runs do without.
    import trl

    from brimful.integrations.trl import SFTTrainer

    model = tiny_llama.model()
    adam = tiny_llama.optimizer(model)
    return quiet(
        SFTTrainer(
            model,
            trl.SFTConfig(str(folder), **(SETTINGS | {"bf16": False} | how)),
            data_collator=collator,
            train_dataset=train,
            eval_dataset=data,
            processing_class=tokenizer(),
            optimizers=(adam, torch.optim.lr_scheduler.ConstantLR(adam, 1.0)),
            loader=made,
        )
    )


def main(folder: str, kind: str, steps: str, accumulate: str, resume: str = "") -> None:
    """Of a rank: the first one writes its losses."""
    how = {
        "max_steps": int(steps),
        "gradient_accumulation_steps": int(accumulate),
        "save_strategy": "steps",
        "save_steps": 7,
        "per_device_train_batch_size": 1,
        "ddp_backend": "gloo",
    }
    torch.set_num_threads(1)
    world_size = arguments(folder, **how).world_size
    assert world_size > 1
    loader = tiny_llama.loader(batch_size=1, accumulate=int(accumulate))
    make = sft_trainer if kind == "trl" else trainer
    run = make(folder, loader, **how)
    run.train(resume_from_checkpoint=resume or None)
    eval_loss = run.evaluate(evaluation())["eval_loss"]
    if run.args.process_index == 0:
        Path(folder, "found.json").write_text(
            json.dumps({"losses": losses(run), "eval_loss": eval_loss})
        )
    leave_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
