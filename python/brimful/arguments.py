"""The arguments of a loader: torch's and brimful's own, checked, and turned into settings."""

from __future__ import annotations

import dataclasses
import difflib
import multiprocessing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from typing import Any

from brimful._core import PlanError
from brimful.config import LoaderConfig, whole_number
from brimful.drop_in.samplers import Drawing, drawing_of, seed_of


def refuse_unknown(settings: Mapping[str, object], *, own: Iterable[str]) -> None:
    """Throws TypeError for a setting that is neither the loader's own nor one of LoaderConfig."""
    known = {*own, *(field.name for field in dataclasses.fields(LoaderConfig))} - {"settings"}
    for name in settings.keys() - known:
        alike = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"; did you mean {alike[0]}?" if alike else ""
        raise TypeError(f"DataLoader: unexpected keyword argument {name!r}{hint}")


@dataclass(frozen=True, kw_only=True)
class TorchArguments:
    """Arguments of torch's that are no settings of brimful's, as they were given."""

    dataset: Any
    sampler: Any
    batch_sampler: Any
    collate_fn: Any
    worker_init_fn: Any
    multiprocessing_context: Any
    generator: Any
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory_device: str
    in_order: bool


def resolve(
    given: TorchArguments, settings: dict[str, Any], rank: int | None, world_size: int | None
) -> tuple[dict[str, Any], int | None, int | None]:
    """Settings of LoaderConfig, rank and world size, with what torch's arguments ask for in them.

    Args:
        settings: those that were given, and batch_size, shuffle, num_workers and drop_last.

    Raises:
        PlanError: torch refuses these arguments with a ValueError, or brimful cannot follow them.
        TypeError: torch refuses them with a TypeError.
    """
    for name in ("shuffle", "pin_memory"):
        settings[name] = as_flag(settings[name])
    if settings["num_workers"] is None:
        settings["num_workers"] = LoaderConfig.num_workers
    if given.persistent_workers and settings["num_workers"] == 0:
        raise PlanError("persistent_workers=True needs num_workers of at least 1")
    checked_context(given.multiprocessing_context, settings["num_workers"])
    if given.prefetch_factor is not None:
        if "depth" in settings:
            raise PlanError("prefetch_factor and depth say the same thing; give one of them")
        settings["depth"] = depth_of(given.prefetch_factor, settings["num_workers"])
    drawing = _drawing(given, settings)
    if given.sampler is not None:
        settings["shuffle"] = drawing.shuffle
        settings["drop_last"] = settings["drop_last"] or drawing.drop_last
    if drawing.seed is not None:
        settings.setdefault("seed", drawing.seed)
    if given.collate_fn is not None:
        check_collate_fn(given.collate_fn)
        # All that is read of a batch then; unused ends are not even written.
        settings.setdefault("fields", ("input_ids",))
        settings.setdefault("layout", "varlen")
    if rank is None:
        return settings, drawing.rank, drawing.world_size or world_size
    if drawing.rank is not None and (rank, world_size) != (drawing.rank, drawing.world_size):
        raise PlanError(
            f"rank={rank} and world_size={world_size}, and the sampler is one for rank "
            f"{drawing.rank} of {drawing.world_size}; leave one of them out"
        )
    return settings, rank, world_size


def _drawing(given: TorchArguments, settings: Mapping[str, Any]) -> Drawing:
    """The order of the sampler, with the generator's seed where it has none."""
    if given.batch_sampler is not None:
        raise PlanError(
            f"batch_sampler is a {type(given.batch_sampler).__name__}; with packing, a batch is as "
            "many documents as fill batch_size rows. Give batch_size=, drop_last= and its sampler="
        )
    seed = seed_of(given.generator)
    if given.sampler is None:
        return Drawing(shuffle=False, seed=seed)
    if settings["shuffle"]:
        raise PlanError("sampler and shuffle exclude each other: a sampler decides about the order")
    drawing = drawing_of(given.sampler)
    return drawing if drawing.seed is not None else dataclasses.replace(drawing, seed=seed)


def as_flag(value: Any) -> Any:
    """0, 1 and None as bools, as torch takes them and scripts pass them; all else as it is."""
    return bool(value) if value is None or (type(value) is int and value in (0, 1)) else value


def depth_of(prefetch_factor: int, num_workers: int) -> int:
    """Batches ready ahead, as torch counts them: `prefetch_factor` for each worker."""
    factor = whole_number("prefetch_factor", prefetch_factor)
    if num_workers == 0:
        raise PlanError("prefetch_factor needs num_workers of at least 1")
    if factor < 1:
        raise PlanError(f"prefetch_factor is {factor}; it must be at least 1")
    return factor * num_workers


def check_collate_fn(collate_fn: Any) -> None:
    """Throws TypeError for what cannot be called."""
    if not callable(collate_fn):
        raise TypeError(f"collate_fn is {collate_fn!r}; expected a function of a list of documents")


def checked_context(context: Any, num_workers: int) -> BaseContext | None:
    """A multiprocessing context as torch takes it: a start method, a context or None."""
    if context is None:
        return None
    if num_workers == 0:
        raise PlanError("multiprocessing_context needs num_workers of at least 1")
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise PlanError(
                f"multiprocessing_context is {context!r}; choose one of {', '.join(methods)}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            f"multiprocessing_context is {context!r}; expected a start method or a context"
        )
    return context
