"""Loaders for transformers' trainers: made after their arguments, or checked against them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any

from brimful._core import PlanError
from brimful.integrations.trainer_rows import KNOWN_MASKS, documents_of
from brimful.loader import DataLoader

# Settings of a loader that the trainer has words of its own for.
_OF_THE_TRAINER = {
    "batch_size": "per_device_train_batch_size",
    "accumulate": "gradient_accumulation_steps",
    "rank": "the number of processes",
    "world_size": "the number of processes",
    "mesh": "parallelism_config",
}


def make_loader(
    data: Any,
    trainer: Any,
    settings: Mapping[str, Any] | None,
    lengths: str | None,
    *,
    training: bool,
) -> DataLoader:
    """A loader of `data` as the trainer's arguments say, and `settings` where they say nothing."""
    args = trainer.args
    rank, world_size = _coordinates(trainer)
    how = {
        "seed": args.seed if args.data_seed is None else args.data_seed,
        "shuffle": getattr(args, "train_sampling_strategy", "random") != "sequential",
        "drop_last": args.dataloader_drop_last,
        "num_workers": args.dataloader_num_workers or None,
        **(settings or {}),
        "batch_size": trainer._train_batch_size if training else args.eval_batch_size,
        "accumulate": args.gradient_accumulation_steps if training else 1,
        "rank": rank,
        "world_size": world_size,
    }
    if not training:
        how |= {"shuffle": False, "drop_last": False, "skip": ()}
    # TRL's trainer may be told not to go by the mask of completions.
    everything = getattr(trainer, "completion_only_loss", True) is False
    masks = [name for name in KNOWN_MASKS if not (everything and name == "completion_mask")]
    return checked_loader(DataLoader(documents_of(data, lengths, masks), **how), trainer)


def checked_loader(loader: DataLoader, trainer: Any) -> DataLoader:
    """The loader, if the trainer can run on it. PlanError where the two disagree."""
    config = loader.config
    rank, world_size = _coordinates(trainer)
    if (config.rank, config.world_size) != (rank, world_size):
        raise PlanError(
            f"the loader is for rank {config.rank} of {config.world_size}, and the trainer is "
            f"rank {rank} of {world_size} of data parallelism: make the loader after "
            f"torch.distributed is set up, or with rank={rank}, world_size={world_size}"
        )
    if trainer.args.n_gpu > 1:
        raise PlanError(
            f"one process trains on {trainer.args.n_gpu} GPUs, which would cut packed batches "
            f"apart: start one process a GPU, with torchrun or accelerate launch"
        )
    if loader.collate_fn is not None:
        raise PlanError(
            "collate_fn makes batches of its own kind, which the trainer would know no counts "
            "of: leave it out, and change what the model gets in model_inputs()"
        )
    if config.cp_size > 1:
        raise PlanError(
            f"cp_size is {config.cp_size}, and the trainer cuts sequences by itself "
            f"(parallelism_config): leave cp_size out"
        )
    if config.positions == "continue" and not by_cu_seqlens(trainer.model):
        raise PlanError(
            'positions="continue" lets boundaries of documents go unseen, since this model '
            "looks for them in position_ids: leave it out, or use flash-attention"
        )
    shifted = "shift_labels" in config.fields and "labels" not in config.fields
    if shifted and not _loss_takes_shifted(trainer):
        raise PlanError(
            f'fields has "shift_labels" and no "labels", and the loss that '
            f"{type(trainer.model).__name__} is trained with would shift them once more: ask for "
            f'"labels"'
        )
    return loader


def by_cu_seqlens(model: Any) -> bool:
    """Whether the model's attention goes by cu_seqlens."""
    config = getattr(model, "config", None)
    return "flash" in (getattr(config, "_attn_implementation", None) or "")


def check_collator_is_used(natives: Iterable[bool]) -> None:
    """PlanError where all loaders, for training and evaluation, are native ones."""
    if all(natives):
        raise PlanError(
            "data_collator is given, and loaders of brimful collate by themselves: leave it out, "
            "or change what the model gets in model_inputs()"
        )


def checked_settings(loader: Any) -> dict[str, Any]:
    """What is given as `loader=`, if it is that."""
    if not isinstance(loader, Mapping):
        raise PlanError(
            f"loader is {loader!r}; give settings by name, as {{'seq_len': 4096}}, and a loader "
            f"that exists as train_dataset or eval_dataset"
        )
    for name, instead in _OF_THE_TRAINER.items():
        if name in loader:
            raise PlanError(f"{name} of a loader made for a trainer follows from {instead}")
    return dict(loader)


def _loss_takes_shifted(trainer: Any) -> bool:
    """Whether the loss is one of transformers' that knows labels which are shifted already."""
    if trainer.label_smoother is not None or trainer.compute_loss_func is not None:
        return False
    loss = getattr(trainer.model, "loss_function", None)
    return callable(loss) and "shift_labels" in inspect.signature(loss).parameters


def _coordinates(trainer: Any) -> tuple[int, int]:
    """Rank and world size of data parallelism alone."""
    names = ("get_tp_size", "get_cp_size", "get_sp_size")  # older trainers lack some of them
    alike = math.prod(getattr(trainer, name)() for name in names if hasattr(trainer, name))
    accelerator = trainer.accelerator
    return accelerator.process_index // alike, accelerator.num_processes // alike
