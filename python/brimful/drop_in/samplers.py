"""torch's samplers on the native path: what they ask for, as settings of brimful's own.

The plan draws documents, so a sampler is never iterated. Those of torch whose order has a name are
understood; any other order is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brimful._core import PlanError
from brimful.torch_module import torch_if_installed


@dataclass(frozen=True)
class Drawing:
    """What a sampler asks for.

    Attributes:
        shuffle: another order each epoch.
        seed: of that order; None where the sampler does not tell.
        rank, world_size: the share of it that this process gets; None where it does not tell.
        drop_last: leave out what not all ranks get.
    """

    shuffle: bool
    seed: int | None = None
    rank: int | None = None
    world_size: int | None = None
    drop_last: bool = False


def drawing_of(sampler: Any) -> Drawing:
    """What a sampler of torch's asks for: a SequentialSampler, a RandomSampler of everything once,
    or a DistributedSampler; or one of a derived class that draws as these do.

    Raises:
        PlanError: it draws in some other way.
    """
    torch = torch_if_installed()
    draws = getattr(type(sampler), "__iter__", None)
    if torch is not None:
        data = torch.utils.data
        if draws is data.SequentialSampler.__iter__:
            return Drawing(shuffle=False)
        if draws is data.RandomSampler.__iter__:
            size = len(sampler.data_source)
            if sampler.replacement or sampler.num_samples != size:
                raise PlanError(
                    f"sampler is a RandomSampler of {sampler.num_samples} out of {size} documents, "
                    f"replacement={sampler.replacement}; a packed epoch is every document once. "
                    f"{_ADVICE}"
                )
            return Drawing(shuffle=True, seed=seed_of(sampler.generator))
        if draws is data.DistributedSampler.__iter__:
            return Drawing(
                shuffle=sampler.shuffle,
                seed=sampler.seed,
                rank=sampler.rank,
                world_size=sampler.num_replicas,
                drop_last=sampler.drop_last,
            )
    raise PlanError(
        f"sampler is a {type(sampler).__name__}; with packing, documents are drawn by the plan, "
        "which knows the orders of torch's SequentialSampler, RandomSampler and "
        f"DistributedSampler. {_ADVICE}"
    )


_ADVICE = (
    "Give shuffle=, seed=, rank= and world_size=, or a mixture (brimful.mix) for weights; for an "
    "order of your own write documents in it with brimful.ShardWriter and load with shuffle=False"
)


def seed_of(generator: Any) -> int | None:
    """The seed that a torch.Generator was given; None for no generator.

    Raises:
        TypeError: it is something else.
    """
    if generator is None:
        return None
    if not hasattr(generator, "initial_seed"):
        raise TypeError(f"generator is {generator!r}; expected a torch.Generator")
    return int(generator.initial_seed())


class SamplerEpoch:
    """The epoch that is set on a user's sampler, where it has one: `set_epoch` of a
    DistributedSampler says which one its next iteration delivers.

    Raises:
        PlanError: the sampler draws from a dataset of another size than the loader's.
    """

    def __init__(self, sampler: Any, documents: int) -> None:
        self._sampler = sampler
        self._seen = 0  # what it is where nobody has set one
        if sampler is None:
            return
        source = sampler.dataset if hasattr(sampler, "dataset") else sampler.data_source
        if len(source) != documents:
            raise PlanError(
                f"sampler is of a dataset of {len(source)} items, and the loader's has {documents} "
                "documents; a packed epoch is every document of the loader's dataset once"
            )

    def changed(self) -> int | None:
        """The epoch that was set since the last call; None where nobody set another one."""
        epoch: int = getattr(self._sampler, "epoch", 0)
        if epoch == self._seen:
            return None
        self._seen = epoch
        return epoch
