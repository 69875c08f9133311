"""transformers' Trainer over native loaders: packed batches with documents apart, counts of labels
without communication, and the loader's state in the trainer's own checkpoints.

Everything hangs on what transformers leaves open: `get_train_dataloader`, `get_eval_dataloader`,
`get_batch_samples` and a callback whose state the trainer saves. Checked with transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchDataLoader

from brimful._core import PlanError
from brimful.batch import Batch
from brimful.drop_in.path import choose_path
from brimful.extras import require
from brimful.integrations.evaluation_loader import EvaluationLoader
from brimful.integrations.step_loader import StepLoader
from brimful.integrations.trainer_loaders import (
    by_cu_seqlens,
    check_collator_is_used,
    checked_loader,
    checked_settings,
    make_loader,
)
from brimful.integrations.trainer_state import LoaderState
from brimful.loader import DataLoader

transformers: Any = require("transformers", "transformers", "brimful.integrations.transformers")


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

    # The trainer's own.
    model: Any
    args: Any
    accelerator: Any
    train_dataset: Any
    eval_dataset: Any
    model_accepts_loss_kwargs: bool
    compute_loss_func: Any
    _train_batch_size: int

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
        self._settings = None if loader is None else checked_settings(loader)
        if lengths is not None and loader is None:
            raise PlanError(f"lengths={lengths!r} is for loaders made here: give loader= as well")
        self._lengths = lengths
        self._step_loader: StepLoader | None = None
        self._evaluation: EvaluationLoader | None = None  # that runs
        self._eval_loaders: dict[int, tuple[Any, DataLoader]] = {}
        if data_collator is not None:
            given = (train_dataset, eval_dataset)
            check_collator_is_used(self._is_native(data) for data in given if data is not None)
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
        data = self.train_dataset
        if isinstance(data, TorchDataLoader):
            return self.accelerator.prepare(data)
        if data is None or not self._is_native(data):
            return super().get_train_dataloader()  # type: ignore[misc]
        if isinstance(data, DataLoader):
            loader = checked_loader(data, self)
            if self.args.auto_find_batch_size:
                raise PlanError(
                    "auto_find_batch_size=True makes loaders of smaller and smaller batches, and "
                    "this one is given: give what it reads, and loader= with its settings"
                )
            self._train_batch_size = loader.config.batch_size
        else:
            loader = make_loader(data, self, self._settings, self._lengths, training=True)
        if loader.config.accumulate != self.args.gradient_accumulation_steps:
            raise PlanError(
                f"accumulate is {loader.config.accumulate} in the loader, and "
                f"gradient_accumulation_steps is {self.args.gradient_accumulation_steps}: both "
                f"say how many micro-batches a step has"
            )
        self._step_loader = StepLoader(loader)
        return self._step_loader

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """A loader of evaluation; a native one delivers the same epoch each time."""
        data = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(eval_dataset, str) and isinstance(self.eval_dataset, Mapping):
            data = self.eval_dataset[eval_dataset]
        own = self._evaluation_loader(data)
        return super().get_eval_dataloader(eval_dataset) if own is None else own  # type: ignore[misc]

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """As `get_eval_dataloader`, for `predict`."""
        own = self._evaluation_loader(test_dataset)
        return super().get_test_dataloader(test_dataset) if own is None else own  # type: ignore[misc]

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, *device: Any
    ) -> tuple[list[Any], Any]:
        """The micro-batches of a step, and the labels that its loss is divided by: those of all
        ranks, known from the plan. They are what transformers gathers from all ranks, too, or
        those of this rank alone with `average_tokens_across_devices=False`.
        """
        if self._step_loader is None:
            return super().get_batch_samples(epoch_iterator, num_batches, *device)  # type: ignore[misc,no-any-return]
        batches: list[Batch] = list(islice(epoch_iterator, num_batches))
        inputs = [self.model_inputs(batch) for batch in batches]
        if not batches:
            return inputs, None
        if not (self.model_accepts_loss_kwargs or self.compute_loss_func is not None):
            if not all(batch.num_items for batch in batches):
                raise PlanError(
                    f"step {batches[0].step} has a micro-batch without a label, whose mean loss is "
                    f"no number, and {type(self.model).__name__} takes no num_items_in_batch to "
                    f"divide a sum by: leave incomplete steps out with drop_last=True"
                )
            return inputs, None
        across = self.args.average_tokens_across_devices
        items = batches[0].num_items_step_global if across else batches[0].num_items_step
        return inputs, torch.tensor(max(items, 1), device=self.args.device)

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, *more: Any, **kwargs: Any
    ) -> Any:
        """As the trainer's; of a native loader's batch the loss is noted with its labels."""
        found = super().prediction_step(model, inputs, prediction_loss_only, *more, **kwargs)  # type: ignore[misc]
        if self._evaluation is not None and found[0] is not None:
            self._evaluation.note(found[0], of_all_ranks=self._scales_losses())
        return found

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: Any = None,
        metric_key_prefix: str = "eval",
    ) -> Any:
        """As the trainer's, with a loss that is the mean over all labels where the loader is a
        native one. The trainer's own mean is one over batches, whatever is in them.
        """
        native = isinstance(dataloader, EvaluationLoader)
        self._evaluation = dataloader if native else None
        try:
            output = super().evaluation_loop(  # type: ignore[misc]
                dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
            )
            name = f"{metric_key_prefix}_loss"
            if self._evaluation is not None and name in output.metrics:
                output.metrics[name] = self._evaluation.mean_loss(self.accelerator)
            return output
        finally:
            self._evaluation = None

    def _scales_losses(self) -> bool:
        """Whether losses of evaluation are shares in the mean over all ranks, else rank's own."""
        divides = self.model_accepts_loss_kwargs or self.compute_loss_func is not None
        return bool(divides and self.args.average_tokens_across_devices)

    def model_inputs(self, batch: Batch) -> dict[str, Any]:
        """What the model gets of a batch, as a plain dict. Override it for another view.

        Under flash-attention `batch.transformers()`; else columns as they are with
        `use_cache=False`, because with a cache models look for no documents.

        Raises:
            PlanError: no `position_ids`, without which models take all documents of a row for one.
        """
        inputs = batch.transformers()  # which checks that there are positions
        if not by_cu_seqlens(self.model):
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
        if isinstance(data, DataLoader) or self._settings is not None:
            return True
        return choose_path(data, {}).native

    def _evaluation_loader(self, data: Any) -> Any:
        """None where the trainer makes it."""
        if isinstance(data, TorchDataLoader):
            return self.accelerator.prepare(data)
        if data is None or not self._is_native(data):
            return None
        if isinstance(data, DataLoader):
            if data is self.train_dataset:
                raise PlanError(
                    "one loader is given for training and evaluation, which would move each "
                    "other's place: make another one for evaluation"
                )
            return EvaluationLoader(checked_loader(data, self), self.model_inputs)
        if id(data) not in self._eval_loaders:  # the data is kept as long as its number is
            self._eval_loaders[id(data)] = (
                data,
                make_loader(data, self, self._settings, self._lengths, training=False),
            )
        return EvaluationLoader(self._eval_loaders[id(data)][1], self.model_inputs)


class Trainer(LoaderMixin, transformers.Trainer):  # type: ignore[misc]
    """transformers' Trainer that also trains and evaluates on native loaders: see `LoaderMixin`.

    A trainer's epoch has the batches of the loader's first one, in whole steps; what later epochs
    have more or fewer of moves over the boundary, and nothing is left out.
    """
