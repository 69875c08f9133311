"""What a loaded state means to a loader: its place, a fresh start, or an error that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brimful import _core
from brimful import state as state_module
from brimful._core import StateError
from brimful.config import LoaderConfig


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """Where a state puts a loader; `restarts` says why that is the start, if it is by force."""

    cursor: _core.Cursor
    restarts: list[str]


def resume(
    state: Mapping[str, Any],
    *,
    plan: _core.Plan,
    geometry: _core.Geometry,
    config: LoaderConfig,
    fingerprint: Mapping[str, Any],
    allow_batch_change: bool,
    force: bool,
) -> Resumed:
    """Checks a state against a loader. Throws StateError as `DataLoader.load_state_dict` says."""
    state = state_module.check_version(state)
    theirs = state.get("fingerprint")
    if not isinstance(theirs, Mapping):
        raise StateError(f"the state's 'fingerprint' is {theirs!r}; expected a dict")
    different = state_module.differences(theirs, fingerprint)
    if different and not force:
        raise StateError(
            "the state belongs to another corpus or other settings:\n  "
            + "\n  ".join(different)
            + "\nUse the corpus and settings it was made with, or force=True for epoch 0"
        )
    if different:
        return Resumed(cursor=_core.Cursor(), restarts=different)
    cursor = state_module.read_cursor(state)
    bins_per_step = state_module.read_bins_per_step(state)
    if cursor.step_bins >= bins_per_step:
        raise StateError(
            f"the state has delivered {cursor.step_bins} bins of a step of {bins_per_step}; "
            f"a step that is done is none"
        )
    if bins_per_step != geometry.bins_per_step:
        if not allow_batch_change:
            raise StateError(
                f"bins_per_step: {bins_per_step} in the state, {geometry.bins_per_step} "
                f"here (batch_size {config.batch_size} x world_size {config.world_size} x "
                f"accumulate {config.accumulate}). Keep the global batch, or pass "
                f"allow_batch_change=True"
            )
        cursor = _core.settled(plan, cursor, bins_per_step)
    _core.check_cursor(plan, cursor)
    return Resumed(cursor=cursor, restarts=[])
