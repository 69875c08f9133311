"""Lightning's trainer over native loaders: a data module that makes them for the ranks of the
trainer, and keeps the place of training in the trainer's own checkpoints.

A native loader may be handed to `trainer.fit` as it is. What Lightning then leaves undone is done
here: it counts the batches of the first epoch only, where epochs of packed documents differ by one
or two; it takes the end of what is left of an epoch for the end of an epoch; it restores no loader
from the checkpoint of an epoch's end; and it takes mappings apart where a precision converts
inputs. Checked with lightning 2.6.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from brimful._core import PlanError
from brimful.corpus import Corpus
from brimful.extras import require
from brimful.loader import DataLoader

_pytorch = require("lightning.pytorch", "lightning", "brimful.integrations.lightning")

from lightning.pytorch.callbacks import GradientAccumulationScheduler  # noqa: E402
from lightning.pytorch.utilities.model_helpers import is_overridden  # noqa: E402
from torch.utils.data import DataLoader as TorchDataLoader  # noqa: E402

from brimful.integrations.lightning_loaders import (  # noqa: E402
    EvaluationLoader,
    Progress,
    Sealed,
    TrainingLoader,
)

# In place of what training has.
_OF_EVALUATION = {"shuffle": False, "drop_last": False, "accumulate": 1, "skip": ()}


class DataModule(_pytorch.LightningDataModule):  # type: ignore[misc, name-defined]
    """Loaders of packed documents for `trainer.fit(model, datamodule=...)`, and what resumes them.

    Epoch n of the trainer is epoch n of the loader, also after a resume and under
    `limit_train_batches`. A checkpoint holds the loader's state once, in this module's part, and a
    run goes on from it exactly, within an epoch or between two. Save between optimizer steps, as
    ModelCheckpoint does: Lightning keeps no gradients of micro-batches.

    Batches reach `training_step` as `brimful.Batch`, under any precision. Rank and world size are
    those of the trainer's strategy (of its data-parallel dimension), `accumulate` is its
    `accumulate_grad_batches`, so that `batch.num_items_step` is of the optimizer step. Lightning
    averages the losses of micro-batches: return
    `loss_sum / batch.num_items_step * trainer.accumulate_grad_batches` for a mean over the labels.
    The trainer asks for the loader again each epoch (`reload_dataloaders_every_n_epochs=1` unless
    it says otherwise), for that is when it counts batches.

    Args:
        train: what `brimful.open` takes, or a native `brimful.DataLoader` that is used as it is.
        val, test: the same, for evaluation: epoch 0 each time, nothing shuffled, repeated or
            dropped. On several ranks the last batch of one can be a dummy row, without labels.
        eval_settings: settings that differ in evaluation, as batch_size.
        allow_batch_change, allow_mix_change: of `load_state_dict`, for the state in a checkpoint.
        settings: arguments of `brimful.DataLoader` for what is no loader yet.

    Raises:
        PlanError: settings that contradict the trainer's.
        StateError: a checkpoint of another corpus or other settings, when training begins.
    """

    def __init__(
        self,
        train: Any = None,
        *,
        val: Any = None,
        test: Any = None,
        eval_settings: Mapping[str, Any] | None = None,
        allow_batch_change: bool = False,
        allow_mix_change: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._data = {"train": train, "val": val, "test": test}
        self._settings = settings
        self._eval_settings = dict(eval_settings or {})
        self._allowed = {
            "allow_batch_change": allow_batch_change,
            "allow_mix_change": allow_mix_change,
        }
        self._train: TrainingLoader | None = None
        self._state: Mapping[str, Any] | None = None  # of a checkpoint, before there is a loader
        self._evaluations: dict[str, EvaluationLoader] = {}
        # The trainer evaluates on what has such a method of its own.
        if val is not None:
            self.val_dataloader = partial(self._evaluation, "val", "validation_step")
        if test is not None:
            self.test_dataloader = partial(self._evaluation, "test", "test_step")

    def __str__(self) -> str:
        """What there is to train and to evaluate on; no loader is made for it."""
        short = (str, os.PathLike, Corpus, DataLoader)
        found = ", ".join(
            f"{stage} {data if isinstance(data, short) else type(data).__name__}"
            for stage, data in self._data.items()
            if data is not None
        )
        return f"<DataModule: {found}>"

    @property
    def loader(self) -> DataLoader:
        """The loader of training, once the trainer has asked for it: for `stats()` and the like."""
        if self._train is None:
            raise PlanError("there is no loader yet: the trainer asks for it when training begins")
        return self._train.loader

    def setup(self, stage: str) -> None:
        """Lets the trainer count the batches of every epoch."""
        if stage != "fit":
            return
        if any(
            isinstance(found, GradientAccumulationScheduler) for found in self.trainer.callbacks
        ):
            raise PlanError(
                "GradientAccumulationScheduler changes the micro-batches of a step within the run, "
                "and a loader's steps are of one size: give the trainer accumulate_grad_batches"
            )
        if not self.trainer.reload_dataloaders_every_n_epochs:
            self.trainer.reload_dataloaders_every_n_epochs = 1

    def teardown(self, stage: str) -> None:
        """Ends threads; a trainer that goes on begins its next epoch."""
        if self._train is not None:
            self._train.close()
        for evaluation in self._evaluations.values():
            evaluation.loader.close()

    def train_dataloader(self) -> TrainingLoader:
        """What the trainer iterates over; the same object each time."""
        wanted = self._from_trainer() | {"accumulate": self._accumulate()}
        if self._train is None or not _agree(self._train.loader, wanted):
            loader = self._make("train", wanted)
            self._train = TrainingLoader(loader, Progress(self, "training_step"))
        if self._state is not None:
            self._train.resume(self._state, **self._allowed)
            self._state = None
        return self._train

    def state_dict(self) -> dict[str, Any]:
        """The place of training, for the checkpoint; the same on every rank."""
        if self._state is not None:
            return dict(self._state)
        return {} if self._train is None else self._train.place()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes the place of a checkpoint for the fit that begins."""
        if self.trainer is None or self.trainer.state.fn == "fit":
            self._state = state_dict

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Takes a batch out of what kept it together, and converts it as the trainer would have."""
        if isinstance(batch, Sealed):
            batch = batch.batch._with_tensors(self.trainer.precision_plugin.convert_input)
        model = self.trainer.lightning_module
        if is_overridden("on_before_batch_transfer", model):
            return model.on_before_batch_transfer(batch, dataloader_idx)
        return batch

    def _make(self, stage: str, wanted: Mapping[str, Any]) -> DataLoader:
        """The loader of a stage: the user's, or one with the settings and what the trainer says."""
        data = self._data[stage]
        if isinstance(data, TorchDataLoader):
            raise PlanError(
                "the data module has a loader on torch's path, which the trainer serves by itself: "
                "give it to the trainer, or data and settings to the data module"
            )
        if isinstance(data, DataLoader):
            loader = data
        else:
            if data is None:
                raise PlanError("the data module has nothing to train on: give it data or a loader")
            settings = self._settings
            if stage != "train":
                settings = {**settings, **_OF_EVALUATION, **self._eval_settings}
            loader = DataLoader(data, **{**wanted, **settings})
        if not _agree(loader, wanted):
            here = {name: getattr(loader.config, name) for name in wanted}
            raise PlanError(
                f"the loader to {stage} with has {here}, where the trainer says {dict(wanted)}: "
                f"give the data module data and settings instead of a loader, or the trainer's "
                f"numbers to the loader"
            )
        return loader

    def _evaluation(self, stage: str, step: str) -> EvaluationLoader:
        wanted = self._from_trainer()
        found = self._evaluations.get(stage)
        if found is None or not _agree(found.loader, wanted):
            found = self._evaluations[stage] = EvaluationLoader(
                self._make(stage, wanted), Progress(self, step)
            )
        return found

    def _from_trainer(self) -> dict[str, Any]:
        """Data-parallel coordinates, where the trainer's strategy has any."""
        if {"rank", "mesh"} & set(self._settings):
            return {}
        if self.trainer is None:
            return {}
        found = self.trainer.distributed_sampler_kwargs
        if found is None:
            return {"rank": 0, "world_size": 1}
        return {"rank": found["rank"], "world_size": found["num_replicas"]}

    def _accumulate(self) -> int:
        return 1 if self.trainer is None else int(self.trainer.accumulate_grad_batches)


def _agree(loader: DataLoader, wanted: Mapping[str, Any]) -> bool:
    return all(getattr(loader.config, name) == value for name, value in wanted.items())
