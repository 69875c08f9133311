"""torch's arguments one by one, and what becomes of each on either path.

The one source of `explain()` and of the table in `docs/torch_arguments.md`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TorchArgument:
    """An argument of `torch.utils.data.DataLoader`, or of the one that torchdata makes of it.

    Attributes:
        name: as torch has it.
        meaning: what it means in torch.
        native: what becomes of it on the native path.
        delegated: what becomes of it on torch's path.
    """

    name: str
    meaning: str
    native: str
    delegated: str = "delegated"


# In torch's order, behind `dataset`; the first twelve may be given by place. torchdata's is last.
TORCH_ARGUMENTS = (
    TorchArgument(
        "batch_size",
        "samples of a batch; None: samples one by one",
        "rows (bins of seq_len tokens) of a batch; None is refused",
    ),
    TorchArgument(
        "shuffle",
        "another order each epoch",
        'the same, by seed; also "block", which moves blocks of documents',
    ),
    TorchArgument(
        "sampler",
        "draws the indices",
        "SequentialSampler, RandomSampler of everything once and DistributedSampler say shuffle, "
        "seed, rank, world_size and drop_last, and set_epoch the next epoch; others are refused: "
        "the plan draws documents",
    ),
    TorchArgument("batch_sampler", "draws batches of indices", "refused: bins make batches"),
    TorchArgument(
        "num_workers",
        "worker processes; 0: none",
        "threads that fill batches; 0: none. The default, and None, is 2",
        "delegated; None is 0",
    ),
    TorchArgument(
        "collate_fn",
        "makes a batch of samples",
        "gets the documents of a batch (or their pieces) as items of the dataset's kind, in the "
        "thread that asks for batches; what it returns is delivered",
    ),
    TorchArgument(
        "pin_memory",
        "batches in page-locked memory, where there is an accelerator",
        "the same, in memory of torch's",
    ),
    TorchArgument(
        "drop_last",
        "leave out the last, incomplete batch",
        "leave out the last, incomplete step of all ranks, counted",
    ),
    TorchArgument(
        "timeout",
        "seconds to wait for a batch of the workers; 0: for ever",
        "the same; a late batch is a LoaderTimeout. Without workers it has no effect",
    ),
    TorchArgument(
        "worker_init_fn",
        "called in each worker process",
        "without effect: threads run no Python",
    ),
    TorchArgument(
        "multiprocessing_context",
        "how worker processes start",
        "checked, then without effect: threads, not processes",
    ),
    TorchArgument(
        "generator",
        "gives the seeds of order and workers",
        "its initial seed is the seed, where no seed= is given; nothing is drawn from it",
    ),
    TorchArgument(
        "prefetch_factor",
        "batches ready ahead, for each worker",
        "the same: sets depth to prefetch_factor x num_workers",
    ),
    TorchArgument(
        "persistent_workers",
        "workers outlive the epoch",
        "checked, then without effect: threads start at once",
    ),
    TorchArgument(
        "pin_memory_device",
        "the device to pin memory for (torch ignores it by now)",
        "without effect: memory is pinned for torch's accelerator",
    ),
    TorchArgument(
        "in_order",
        "False: batches as they come, from several workers",
        "without effect: batches always come in order",
    ),
    TorchArgument(
        "snapshot_every_n_steps",
        "of torchdata's StatefulDataLoader: how often workers save their state",
        "without effect: a state is exact after any batch",
        "without effect: a state is exact after any batch",
    ),
)

TORCH_NAMES = frozenset(argument.name for argument in TORCH_ARGUMENTS)
