"""The state of a native loader in the checkpoints of transformers' Trainer."""

from __future__ import annotations

from typing import Any

from brimful._core import StateError
from brimful.extras import require
from brimful.integrations.step_loader import StepLoader

_callbacks: Any = require(
    "transformers.trainer_callback", "transformers", "brimful.integrations.transformers"
)


class LoaderState(_callbacks.TrainerCallback, _callbacks.ExportableState):  # type: ignore[misc]
    """Keeps a loader's state in `trainer_state.json`, and takes it from there on resume.

    The state is the same on every rank, so that the file, which one rank writes, serves all. It
    stands behind the last step that was trained, as the model does: a checkpoint can be asked for
    while the batches of the next one are in hand.
    """

    def __init__(self) -> None:
        self.loader_state: dict[str, Any] | None = None
        self._source: StepLoader | None = None
        self._progress: Any = None  # the trainer's, which counts steps
        self._first_step = 0

    def state(self) -> dict[str, Any]:
        """What the trainer saves."""
        if self._source is not None:
            trained = self._progress.global_step - self._first_step
            self.loader_state = self._source.state_behind(trained)
        return {"args": {}, "attributes": {"loader_state": self.loader_state}}

    def on_train_begin(
        self, args: Any, state: Any, control: Any, *, train_dataloader: Any = None, **_: Any
    ) -> None:
        """Puts the loader where the checkpoint was saved, which costs nothing."""
        if not isinstance(train_dataloader, StepLoader):
            return
        name = type(self).__name__
        if state.global_step > 0 and not args.ignore_data_skip:
            saved = state.stateful_callbacks.get(name, {}).get("attributes", {}).get("loader_state")
            if saved is None:
                raise StateError(
                    f"the checkpoint of step {state.global_step} has no state of a brimful loader, "
                    f"so nobody knows what was delivered before it. Resume from a checkpoint that "
                    f"this trainer saved, or begin the data anew with ignore_data_skip=True"
                )
            train_dataloader.loader.load_state_dict(saved)
        self._source, self._progress = train_dataloader, state
        self._first_step = state.global_step
        state.stateful_callbacks[name] = self.state()  # the trainer looks for the name as it saves

    def on_train_end(
        self, args: Any, state: Any, control: Any, *, train_dataloader: Any = None, **_: Any
    ) -> None:
        """Ends the loader's threads."""
        if isinstance(train_dataloader, StepLoader):
            train_dataloader.close()
