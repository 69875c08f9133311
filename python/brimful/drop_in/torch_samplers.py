"""What the samplers of a loader on torch's path tell of the order that they draw."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import data


def samplers_of(loader: data.DataLoader[Any]) -> dict[str, Any]:
    """The samplers behind a loader, by name, each once."""
    batch_sampler = loader.batch_sampler
    found = {
        "sampler": loader.sampler,
        "batch_sampler": batch_sampler,
        "inner_sampler": getattr(batch_sampler, "sampler", None),
    }
    if batch_sampler is not None and loader.batch_size is None:
        del found["sampler"]  # torch puts one there that nothing draws from
    named: dict[str, Any] = {}
    for name, sampler in found.items():
        if sampler is not None and not any(sampler is other for other in named.values()):
            named[name] = sampler
    return named


def generators_of(
    loader: data.DataLoader[Any], samplers: Mapping[str, Any]
) -> dict[str, torch.Generator]:
    """Generators that a loader's order or its workers' seeds are drawn from, each once."""
    found = {"loader": loader.generator}
    found |= {name: getattr(one, "generator", None) for name, one in samplers.items()}
    named: dict[str, torch.Generator] = {}
    for name, generator in found.items():
        if isinstance(generator, torch.Generator) and not any(
            generator is other for other in named.values()
        ):
            named[name] = generator
    return named


def draw_from_anywhere(loader: data.DataLoader[Any], samplers: Mapping[str, Any]) -> bool:
    """Whether code of users draws the order, perhaps from Python's or numpy's generator."""
    if isinstance(loader.dataset, data.IterableDataset):
        return True
    kinds = (type(sampler).__module__ for sampler in samplers.values())
    return not all(kind.startswith(("torch.", "builtins")) for kind in kinds)


def is_stateful(thing: Any) -> bool:
    """Whether it has `state_dict` and `load_state_dict`."""
    methods = (getattr(thing, name, None) for name in ("state_dict", "load_state_dict"))
    return all(map(callable, methods))


def take_states(samplers: Mapping[str, Any]) -> dict[str, Any]:
    """By name, where a sampler has it: its own state, or its number of the epoch."""
    states: dict[str, Any] = {}
    for name, sampler in samplers.items():
        if is_stateful(sampler):
            states[name] = {"state": copy.deepcopy(sampler.state_dict())}
        elif has_epoch(sampler):
            states[name] = {"epoch": int(sampler.epoch)}
    return states


def has_epoch(sampler: Any) -> bool:
    """Whether its order goes by a number that `set_epoch` sets, as DistributedSampler's does."""
    epoch = getattr(sampler, "epoch", None)
    return isinstance(epoch, int) and callable(getattr(sampler, "set_epoch", None))


def checksum(index: Any) -> int | None:
    """Of the indices of a batch, whatever integers they are; None where they are none."""
    try:
        numbers = [int(i) for i in index] if hasattr(index, "__iter__") else [int(index)]
    except (TypeError, ValueError):
        return None
    return zlib.crc32(repr(numbers).encode())
