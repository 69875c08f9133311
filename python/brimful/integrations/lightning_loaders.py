"""What Lightning's trainer iterates over: a native loader that keeps to the trainer's epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lightning.pytorch.plugins.precision import Precision
from lightning.pytorch.utilities.signature_utils import is_param_in_hook_signature

from brimful import _core
from brimful._core import StateError
from brimful.batch import Batch
from brimful.loader import DataLoader
from brimful.state import cursor_dict, read_cursor


class Progress:
    """What a trainer has done so far, as far as a data module that may have none can tell."""

    def __init__(self, module: Any, step: str) -> None:
        self._module = module
        self._step = step  # the method of the model that takes a batch

    def epoch(self) -> int | None:
        """The epoch that a pass is of; the same one where the trainer is to overfit."""
        trainer = self._module.trainer
        if trainer is None:
            return None
        return 0 if trainer.overfit_batches else int(trainer.current_epoch)

    def has_ended(self, epoch: int) -> bool:
        """Whether the trainer was saved behind the last batch that it wanted of an epoch."""
        trainer = self._module.trainer
        return trainer is not None and trainer.fit_loop.epoch_progress.current.processed > epoch

    def finished(self) -> int | None:
        """Batches of the running epoch that are trained on, where the trainer knows."""
        trainer = self._module.trainer
        if trainer is None or self._fetches(trainer.lightning_module):
            return None
        return int(trainer.fit_loop.epoch_loop.batch_progress.current.processed)

    def takes_apart(self) -> bool:
        """Whether the trainer rebuilds a mapping that it is given, to convert what is in it."""
        trainer = self._module.trainer
        if trainer is None or trainer.lightning_module is None:
            return False
        if type(trainer.precision_plugin).convert_input is Precision.convert_input:
            return False
        return not self._fetches(trainer.lightning_module)

    def _fetches(self, model: Any) -> bool:
        """Whether the step takes batches out of an iterator by itself, past all hooks."""
        taken = getattr(model, self._step)
        return bool(is_param_in_hook_signature(taken, "dataloader_iter", explicit=True))


class TrainingLoader:
    """What the trainer trains on: one pass is what is left of the epoch that the trainer is in.

    The trainer makes passes as it likes; one begins when it is asked for a batch. `len` is of the
    whole epoch, of which a state may have delivered a part, for so the trainer counts.
    """

    def __init__(self, loader: DataLoader, progress: Progress) -> None:
        self.loader = loader
        self._progress = progress
        self._epoch: int | None = None  # begun last, or that a loaded state stands in
        self._delivered = 0  # batches of it
        self._before: dict[str, Any] | None = None  # the loader's state before the last of them
        self._resumed: dict[str, Any] | None = None  # a state that no pass has begun from
        self._lengths: dict[int, int] = {}  # of one epoch: the last that was asked for

    def resume(self, state: Mapping[str, Any], **allowed: bool) -> None:
        """Puts the loader where a checkpoint was saved. Throws StateError as it does."""
        if set(state) != {"loader", "epoch", "batches"}:
            raise StateError(
                f"the data module's part of the checkpoint holds {', '.join(sorted(state))}, where "
                f"loader, epoch and batches are expected: it is of another data module"
            )
        self.loader.load_state_dict(state["loader"], **allowed)
        self._resumed = self.loader.state_dict()
        cursor = read_cursor(self._resumed)
        self._epoch = cursor.epoch
        self._delivered = state["batches"] if cursor.epoch == state["epoch"] else 0
        self._lengths = {cursor.epoch: self._delivered + self.loader._count_batches(cursor)}

    def place(self) -> dict[str, Any]:
        """The loader's state, and the batches that were delivered of the epoch begun last. A batch
        that the trainer is at work on, as when an exception or a signal makes it save, comes again.
        """
        unfinished = self._before is not None and self._progress.finished() == self._delivered - 1
        return {
            "loader": self._before if unfinished else self.loader.state_dict(),
            "epoch": -1 if self._epoch is None else self._epoch,
            "batches": self._delivered - unfinished,
        }

    def close(self) -> None:
        """Ends threads. A state that came when the run was over has had its effect."""
        self.loader.close()
        self.loader._place.ignored = False

    def state_dict(self) -> dict[str, Any]:
        """Nothing: it is in the data module's part of a checkpoint. But it says to the trainer that
        training can go on in the middle of an epoch."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes the state of a loader that was handed to the trainer itself in an earlier run."""
        if not state_dict:
            return
        cursor = read_cursor(state_dict)
        count = self.loader._count_batches
        done = count(_core.Cursor(cursor.epoch)) - count(cursor)
        self.resume({"loader": state_dict, "epoch": cursor.epoch, "batches": done})

    def __len__(self) -> int:
        epoch = self._epoch_of_trainer()
        if epoch not in self._lengths:
            self._lengths = {epoch: self.loader._count_batches(_core.Cursor(epoch))}
        return self._lengths[epoch]

    def __iter__(self) -> Iterator[Any]:
        epoch = self._epoch_of_trainer()
        if self._is_over(epoch):
            return
        if epoch != self._epoch:
            if self._resumed is not None:
                self.loader.load_state_dict(_beginning(self._resumed, epoch))
            elif behind := self._progress.finished():
                raise StateError(
                    f"the checkpoint stands behind batch {behind} of epoch {epoch} and holds no "
                    f"state of a loader, so that these batches would come again: go on from one "
                    f"that was saved under this data module, or at the end of an epoch"
                )
            self._epoch, self._delivered = epoch, 0
        elif self._resumed is None:
            self._delivered = 0
        self._resumed = None
        self.loader.set_epoch(epoch)
        seals = self._progress.takes_apart()
        batches = iter(self.loader)
        while True:
            self._before = self.loader.state_dict()
            batch = next(batches, None)
            if batch is None:
                self._before = None
                return
            self._delivered += 1
            yield Sealed(batch) if seals else batch

    def _is_over(self, epoch: int) -> bool:
        """Whether nothing is left of an epoch: a trainer that counts steps asks once more for the
        one that it was saved at the end of."""
        if self._resumed is None or epoch != self._epoch:
            return False
        return self._progress.has_ended(epoch) or self._delivered == len(self)

    def _epoch_of_trainer(self) -> int:
        epoch = self._progress.epoch()
        if epoch is not None:
            return epoch
        return 0 if self._epoch is None else self._epoch + (self._resumed is None)


class EvaluationLoader:
    """What the trainer evaluates on: epoch 0, whole, each time."""

    def __init__(self, loader: DataLoader, progress: Progress) -> None:
        self.loader = loader
        self._progress = progress

    def __len__(self) -> int:
        self.loader.set_epoch(0)
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        self.loader.set_epoch(0)
        seals = self._progress.takes_apart()
        for batch in self.loader:
            yield Sealed(batch) if seals else batch


class Sealed:
    """A batch that the trainer takes for one thing, until it hands it to the data module."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch


def _beginning(state: Mapping[str, Any], epoch: int) -> dict[str, Any]:
    """The state of the same run at the beginning of an epoch."""
    return {**state, "cursor": cursor_dict(_core.Cursor(epoch)), "step": None}
