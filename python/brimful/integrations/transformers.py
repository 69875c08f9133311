"""transformers' Trainer over native loaders: packed batches with documents apart, counts of labels
without communication, and the loader's state in the trainer's own checkpoints.

Everything hangs on what transformers leaves open: `get_train_dataloader`, `get_eval_dataloader`,
`get_batch_samples` and a callback whose state the trainer saves. Checked with transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchDataLoader

from brimful._core import PlanError
from brimful.batch import Batch
from brimful.extras import require
from brimful.integrations.packed_rows import documents_of
from brimful.integrations.step_loader import StepLoader
from brimful.integrations.trainer_state import LoaderState
from brimful.loader import DataLoader

transformers: Any = require("transformers", "transformers", "brimful.integrations.transformers")

# Settings of a loader that the trainer has words of its own for.
_OF_THE_TRAINER = {
    "batch_size": "per_device_train_batch_size",
    "accumulate": "gradient_accumulation_steps",
    "rank": "the number of processes",
    "world_size": "the number of processes",
    "mesh": "parallelism_config",
}


class LoaderMixin:
    """What a trainer needs to run on native loaders: name it before the trainer's own class.

    Args:
        train_dataset, eval_dataset: a `brimful.DataLoader`, used as it is; or, with `loader`, what
            `brimful.DataLoader` takes. Else they are the trainer's affair, as ever.
        loader: settings of the loaders made here, such as `{"seq_len": 4096}`. Batch size,
            micro-batches and ranks are the trainer's, and so are seed, `drop_last` and threads
            where they are not given here (`dataloader_num_workers=0`, its default, means
            brimful's). Loaders for evaluation are not shuffled and leave nothing out.
        lengths: name of the column that has the lengths of the documents in each row, for datasets
            of rows packed elsewhere; None: "seq_lengths" where there is such a column.

    Raises:
        PlanError: settings that contradict the trainer's.
        FormatError: the column of lengths is not there.
    """

    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        *more: Any,
        loader: Mapping[str, Any] | None = None,
        lengths: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._settings = None if loader is None else _checked_settings(loader)
        if lengths is not None and loader is None:
            raise PlanError(f"lengths={lengths!r} is for loaders made here: give loader= as well")
        self._lengths = lengths
        self._step_loader: StepLoader | None = None
        self._eval_loaders: dict[int, tuple[Any, DataLoader]] = {}
        if data_collator is not None and all(
            data is None or self._is_native(data) for data in (train_dataset, eval_dataset)
        ):
            raise PlanError(
                "data_collator is given, and loaders of brimful collate by themselves: leave it "
                "out, or change what the model gets in model_inputs()"
            )
        super().__init__(  # type: ignore[call-arg]  # the trainer's
            model, args, data_collator, train_dataset, eval_dataset, *more, **kwargs
        )
        self.add_callback(LoaderState())  # type: ignore[attr-defined]

    @property
    def train_loader(self) -> DataLoader | None:
        """The native loader of the training that runs or ran last, for its `stats()`."""
        return None if self._step_loader is None else self._step_loader.loader

    # What the trainer asks for

    def get_train_dataloader(self) -> Any:
        """The loader of training: over whole optimizer steps where it is a native one."""
        self._step_loader = None
        trainer: Any = self
        data = trainer.train_dataset
        if isinstance(data, TorchDataLoader):
            return trainer.accelerator.prepare(data)
        if not self._is_native(data):
            return super().get_train_dataloader()  # type: ignore[misc]
        if isinstance(data, DataLoader):
            loader = self._checked(data)
            if trainer.args.auto_find_batch_size:
                raise PlanError(
                    "auto_find_batch_size=True makes loaders of smaller and smaller batches, and "
                    "this one is given: give what it reads, and loader= with its settings"
                )
            trainer._train_batch_size = loader.config.batch_size
        else:
            loader = self._make(data, training=True)
        if loader.config.accumulate != trainer.args.gradient_accumulation_steps:
            raise PlanError(
                f"accumulate is {loader.config.accumulate} in the loader, and "
                f"gradient_accumulation_steps is {trainer.args.gradient_accumulation_steps}: both "
                f"say how many micro-batches a step has"
            )
        self._step_loader = StepLoader(loader)
        return self._step_loader

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """A loader of evaluation; a native one delivers the same epoch each time."""
        trainer: Any = self
        data = trainer.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(eval_dataset, str) and isinstance(trainer.eval_dataset, Mapping):
            data = trainer.eval_dataset[eval_dataset]
        own = self._evaluation(data)
        return super().get_eval_dataloader(eval_dataset) if own is None else own  # type: ignore[misc]

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """As `get_eval_dataloader`, for `predict`."""
        own = self._evaluation(test_dataset)
        return super().get_test_dataloader(test_dataset) if own is None else own  # type: ignore[misc]

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: Any
    ) -> tuple[list[Any], Any]:
        """The micro-batches of a step, and the labels that its loss is divided by: those of all
        ranks, known from the plan. They are what transformers gathers from all ranks, too, or
        those of this rank alone with `average_tokens_across_devices=False`.
        """
        if self._step_loader is None:
            return super().get_batch_samples(epoch_iterator, num_batches, device)  # type: ignore[misc,no-any-return]
        batches: list[Batch] = list(islice(epoch_iterator, num_batches))
        inputs = [self.model_inputs(batch) for batch in batches]
        trainer: Any = self
        if not batches:
            return inputs, None
        if not (trainer.model_accepts_loss_kwargs or trainer.compute_loss_func is not None):
            if not all(batch.num_items for batch in batches):
                raise PlanError(
                    f"step {batches[0].step} has a micro-batch without a label, whose mean loss is "
                    f"no number, and {type(trainer.model).__name__} takes no num_items_in_batch to "
                    f"divide a sum by: leave incomplete steps out with drop_last=True"
                )
            return inputs, None
        across = trainer.args.average_tokens_across_devices
        items = batches[0].num_items_step_global if across else batches[0].num_items_step
        return inputs, torch.tensor(max(items, 1), device=device)

    def model_inputs(self, batch: Batch) -> dict[str, Any]:
        """What the model gets of a batch, as a plain dict. Override it for another view.

        Under flash-attention `batch.transformers()`; else columns as they are with
        `use_cache=False`, because with a cache models look for no documents.

        Raises:
            PlanError: no `position_ids`, without which models take all documents of a row for one.
        """
        inputs = batch.transformers()  # which checks that there are positions
        if not self._by_cu_seqlens():
            columns = ("input_ids", "labels", "shift_labels", "position_ids")
            inputs = {name: batch[name] for name in columns if name in batch}
            inputs["use_cache"] = False
        if "labels" not in inputs and "shift_labels" in inputs:
            inputs["labels"] = inputs["shift_labels"]  # models make no loss without this name
        return inputs

    # Loaders

    def _is_native(self, data: Any) -> bool:
        if isinstance(data, Mapping):  # several sets for evaluation, by name
            return all(self._is_native(one) for one in data.values())
        if isinstance(data, TorchDataLoader):
            return False
        return isinstance(data, DataLoader) or self._settings is not None

    def _evaluation(self, data: Any) -> _EvaluationLoader | None:
        if data is None or not self._is_native(data):
            return None
        trainer: Any = self
        if isinstance(data, DataLoader):
            if data is trainer.train_dataset:
                raise PlanError(
                    "one loader is given for training and evaluation, which would move each "
                    "other's place: make another one for evaluation"
                )
            return _EvaluationLoader(self._checked(data), self.model_inputs)
        if id(data) not in self._eval_loaders:  # the data is kept as long as its number is
            self._eval_loaders[id(data)] = (data, self._make(data, training=False))
        return _EvaluationLoader(self._eval_loaders[id(data)][1], self.model_inputs)

    def _make(self, data: Any, *, training: bool) -> DataLoader:
        trainer: Any = self
        args = trainer.args
        rank, world_size = self._coordinates()
        settings = {
            "seed": args.seed if args.data_seed is None else args.data_seed,
            "shuffle": getattr(args, "train_sampling_strategy", "random") != "sequential",
            "drop_last": args.dataloader_drop_last,
            "num_workers": args.dataloader_num_workers or None,
            **(self._settings or {}),
            "batch_size": trainer._train_batch_size if training else args.eval_batch_size,
            "accumulate": args.gradient_accumulation_steps if training else 1,
            "rank": rank,
            "world_size": world_size,
        }
        if not training:
            settings |= {"shuffle": False, "drop_last": False, "skip": ()}
        return self._checked(DataLoader(documents_of(data, self._lengths), **settings))

    def _checked(self, loader: DataLoader) -> DataLoader:
        trainer: Any = self
        config = loader.config
        rank, world_size = self._coordinates()
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
        if config.positions == "continue" and not self._by_cu_seqlens():
            raise PlanError(
                'positions="continue" lets boundaries of documents go unseen, since this model '
                "looks for them in position_ids: leave it out, or use flash-attention"
            )
        return loader

    def _coordinates(self) -> tuple[int, int]:
        """Rank and world size of data parallelism alone."""
        trainer: Any = self
        alike = trainer.get_tp_size() * trainer.get_cp_size() * trainer.get_sp_size()
        accelerator = trainer.accelerator
        return accelerator.process_index // alike, accelerator.num_processes // alike

    def _by_cu_seqlens(self) -> bool:
        """Whether the model's attention goes by cu_seqlens."""
        config = getattr(self.model, "config", None)  # type: ignore[attr-defined]
        return "flash" in (getattr(config, "_attn_implementation", None) or "")


class Trainer(LoaderMixin, transformers.Trainer):  # type: ignore[misc]
    """transformers' Trainer that also trains and evaluates on native loaders: see `LoaderMixin`.

    A trainer's epoch has the batches of the loader's first one, in whole steps; what later epochs
    have more or fewer of moves over the boundary, and nothing is left out.
    """


class _EvaluationLoader:
    """One epoch of a native loader, the same each time, as inputs of the model."""

    def __init__(self, loader: DataLoader, convert: Callable[[Batch], dict[str, Any]]) -> None:
        self.dataset = loader.corpus
        self._loader = loader
        self._convert = convert
        loader.set_epoch(0)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self._convert, self._loader)


def _checked_settings(loader: Any) -> dict[str, Any]:
    if not isinstance(loader, Mapping):
        raise PlanError(
            f"loader is {loader!r}; give settings by name, as {{'seq_len': 4096}}, and a loader "
            f"that exists as train_dataset or eval_dataset"
        )
    for name, instead in _OF_THE_TRAINER.items():
        if name in loader:
            raise PlanError(f"{name} of a loader made for a trainer follows from {instead}")
    return dict(loader)
