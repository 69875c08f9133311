"""What a loaded state means to a loader: its place, a fresh start, or an error that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brimful import _core
from brimful import state as state_module
from brimful._core import PlanError, StateError
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.mix_rule import MixHistory, unchanged
from brimful.mix_state import changed_history, read_history, rule_differences
from brimful.native import make_plan


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """Where a state puts a loader; `restarts` says why that is the start, if it is by force."""

    cursor: _core.Cursor
    plan: _core.Plan
    mixes: MixHistory
    restarts: list[str]


def resume(
    state: Mapping[str, Any],
    *,
    corpus: Corpus,
    geometry: _core.Geometry,
    config: LoaderConfig,
    fingerprint: Mapping[str, Any],
    allow_batch_change: bool,
    allow_mix_change: bool,
    force: bool,
) -> Resumed:
    """Checks a state against a loader. Throws StateError as `DataLoader.load_state_dict` says."""
    state = state_module.check_version(state)
    theirs = state.get("fingerprint")
    if not isinstance(theirs, Mapping):
        raise StateError(f"the state's 'fingerprint' is {theirs!r}; expected a dict")
    different = state_module.differences(theirs, fingerprint, corpus)
    mixes = unchanged(corpus.rule)
    rule = mixes[0][0]
    changed: list[str] = []
    if not different:
        mixes = read_history(state, corpus.sources)
        changed = rule_differences(mixes[-1][0], rule)
    if changed and not allow_mix_change:
        different += changed
    if different and not force:
        hint = "" if different != changed else ", allow_mix_change=True to go on with another mix"
        raise StateError(
            "the state belongs to another corpus or other settings:\n  "
            + "\n  ".join(different)
            + f"\nUse the corpus and settings it was made with{hint}, or force=True for epoch 0"
        )
    if different:
        mixes = unchanged(corpus.rule)
        return Resumed(
            cursor=_core.Cursor(),
            plan=make_plan(corpus, config, mixes),
            mixes=mixes,
            restarts=different,
        )
    plan = _plan_of_state(corpus, config, mixes)
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
    if changed:
        at = _core.untouched_window(plan, cursor, geometry.bins_per_step)
        mixes = changed_history(mixes, rule, (at.epoch, at.window))
        plan = make_plan(corpus, config, mixes)
    return Resumed(cursor=cursor, plan=plan, mixes=mixes, restarts=[])


def _plan_of_state(corpus: Corpus, config: LoaderConfig, mixes: MixHistory) -> _core.Plan:
    try:
        return make_plan(corpus, config, mixes)
    except PlanError as error:
        raise StateError(f"the state has a mix that cannot be followed: {error}") from error
