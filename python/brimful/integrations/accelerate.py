"""Accelerate beside native loaders: batches on its device, the end of an epoch told to its gradient
accumulation, and the loader's state in its checkpoints.

`Accelerator.prepare` hands a native loader back as it is, for its ranks are dealt already. What
else it does for loaders of torch is done by `prepare` here. Checked with accelerate 1.15.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from torch.utils.data import DataLoader as TorchDataLoader

from brimful._core import PlanError
from brimful.batch import Batch
from brimful.extras import require
from brimful.loader import DataLoader

_data_loader: Any = require(
    "accelerate.data_loader", "accelerate", "brimful.integrations.accelerate"
)
_operations: Any = require(
    "accelerate.utils.operations", "accelerate", "brimful.integrations.accelerate"
)
_state: Any = require("accelerate.state", "accelerate", "brimful.integrations.accelerate")


def prepare(accelerator: Any, loader: DataLoader, *, checkpoint: bool = True) -> PreparedLoader:
    """A native loader for training and evaluation under `accelerator`.

    Args:
        accelerator: an `accelerate.Accelerator`. Its `gradient_accumulation_steps` are the loader's
            `accumulate`, so that a step of the one is a step of the other.
        loader: a native loader of the accelerator's rank and number of processes.
        checkpoint: `save_state` and `load_state` save and load the loader's state, too, as
            `register_for_checkpointing` arranges it: prepare the same loaders in the same order
            before loading. False for evaluation, and for loaders whose states are kept elsewhere.

    Raises:
        PlanError: the loader deals for other ranks, or counts other micro-batches a step.
        TypeError: not a native loader; `Accelerator.prepare` is for loaders of torch.
    """
    if isinstance(loader, TorchDataLoader) or not isinstance(loader, DataLoader):
        raise TypeError(
            f"loader is a {type(loader).__name__}; a native brimful.DataLoader is expected, and "
            f"Accelerator.prepare serves loaders of torch"
        )
    config = loader.config
    rank, world_size = (
        number // _sharing(accelerator)
        for number in (accelerator.process_index, accelerator.num_processes)
    )
    if (config.rank, config.world_size) != (rank, world_size):
        raise PlanError(
            f"the loader is for rank {config.rank} of {config.world_size}, and this process is "
            f"rank {rank} of {world_size} of data parallelism: make the loader after the "
            f"Accelerator, or with rank={rank}, world_size={world_size}"
        )
    if checkpoint and config.accumulate != accelerator.gradient_accumulation_steps:
        raise PlanError(
            f"accumulate is {config.accumulate} in the loader, and the accelerator's "
            f"gradient_accumulation_steps is {accelerator.gradient_accumulation_steps}: both say "
            f"how many micro-batches a step has"
        )
    if checkpoint:
        accelerator.register_for_checkpointing(loader)
    return PreparedLoader(accelerator, loader)


class PreparedLoader(_data_loader.DataLoaderStateMixin):  # type: ignore[misc]
    """Batches of a native loader on the accelerator's device, an epoch an iteration.

    Attributes:
        loader: the native loader.
        end_of_dataloader: the batch in hand is the last one of its epoch; the accelerator then
            synchronizes gradients though a step is incomplete.
        remainder: -1: no rank repeats anything to fill up, so that nothing is to be taken off what
            `gather_for_metrics` gathers. A dummy row on a rank has no labels.
    """

    end_of_dataloader: bool
    remainder: int

    def __init__(self, accelerator: Any, loader: DataLoader) -> None:
        self.loader = loader
        self.gradient_state = _state.GradientState()
        self._device = accelerator.device
        steps, processes = accelerator.gradient_accumulation_steps, accelerator.num_processes
        self._divided_by = steps * processes // _sharing(accelerator)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.loader)
        left = len(self.loader)  # of the epoch that runs now; so that no batch is taken too early
        self.begin()
        try:
            for batch in batches:
                left -= 1
                self.end_of_dataloader = left == 0
                yield _operations.send_to_device(batch, self._device, non_blocking=True)
        finally:
            self.end()

    def num_items_in_batch(self, batch: Batch) -> float:
        """What the summed loss of a micro-batch is divided by, for a step to have the mean over
        the labels of all its micro-batches on all ranks: give it to models of transformers as the
        argument of this name.

        It makes up for what comes after: `Accelerator.backward` divides by the micro-batches of a
        step, and gradients are averaged over ranks.
        """
        return float(max(batch.num_items_step_global, 1) / self._divided_by)

    def set_epoch(self, epoch: int) -> None:
        """As `DataLoader.set_epoch`."""
        self.loader.set_epoch(epoch)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{name!r} is not of a prepared native loader, see its .loader. (It goes on where its "
            f"state was taken: after load_state there is nothing for skip_first_batches to skip.)"
        )


def _sharing(accelerator: Any) -> int:
    """How many processes work on the same batches: those of tensor, context and sequence
    parallelism.
    """
    parallelism = getattr(accelerator, "parallelism_config", None)  # since accelerate 1.10
    return 1 if parallelism is None else int(parallelism.non_data_parallel_size)
