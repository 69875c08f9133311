"""Copies of a loader and pickles of it: torch's loader can be copied, and so can a native one.

A copy is a loader made by the same call that stands at the same place: its next iteration delivers
what the next one of the original would. Files are opened again, and a dataset that was read once is
read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from brimful import _core
from brimful.state import cursor_dict

if TYPE_CHECKING:
    from brimful.loader import DataLoader

# Attributes that may have been set since the call, in an order in which they can be: settings, and
# arguments that are kept as they were given.
_SETTINGS = ("num_workers", "prefetch_factor", "timeout", "pin_memory")
_GIVEN = (
    "collate_fn",
    "worker_init_fn",
    "multiprocessing_context",
    "pin_memory_device",
    "in_order",
)


def reduced(
    loader: DataLoader, args: tuple[Any, ...], arguments: Mapping[str, Any]
) -> tuple[Callable[..., DataLoader], tuple[Any, ...]]:
    """What `__reduce__` of a loader returns that was made with these arguments."""
    place = loader._place
    state = None
    begin = cursor_dict(place.next_cursor())
    # A loader at its beginning fits any ranks: they may be others where the copy is made.
    if begin != cursor_dict(_core.Cursor()) or loader._mix_changes:
        state = loader.state_dict() | {"cursor": begin, "step": None}
    values = {name: getattr(loader, name) for name in _SETTINGS}
    values |= {name: getattr(loader._torch, name) for name in _GIVEN}
    return _again, (
        type(loader), args, dict(arguments), values, state, place.loaded, place.pinned_epoch,
    )  # fmt: skip


def _again(
    kind: type[DataLoader],
    args: tuple[Any, ...],
    arguments: dict[str, Any],
    values: dict[str, Any],
    state: dict[str, Any] | None,
    loaded: bool,
    epoch: int | None,
) -> DataLoader:
    loader = kind(*args, **arguments)
    for name, value in values.items():
        if getattr(loader if name in _SETTINGS else loader._torch, name) != value:
            setattr(loader, name, value)
    if state is not None:
        loader.load_state_dict(state)
        loader._place.loaded, loader._place.ignored = loaded, False
    if epoch is not None:
        loader.set_epoch(epoch)
    return loader
