"""What a loaded state means to a loader: its place, a fresh start, or an error that says why."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brimful import _core
from brimful import state as state_module
from brimful._core import PlanError, StateError
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.mix_rule import MixHistory, unchanged
from brimful.mix_state import (
    changed_history,
    read_history,
    rule_differences,
    rule_differences_beside,
)
from brimful.native import make_plan, make_skip, make_steps
from brimful.wording import counted


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """Where a state puts a loader; `restarts` says why that is the start, if it is by force.

    `ahead` are losses that the state has counted and that will be counted again.
    """

    cursor: _core.Cursor
    plan: _core.Plan
    mixes: MixHistory
    steps: _core.Steps
    skip: _core.StepSet
    ahead: _core.Delta
    restarts: list[str]


def resume(
    state: Mapping[str, Any],
    *,
    corpus: Corpus,
    own_plan: _core.Plan,
    geometry: _core.Geometry,
    config: LoaderConfig,
    fingerprint: Mapping[str, Any],
    allow_batch_change: bool,
    allow_mix_change: bool,
    force: bool,
) -> Resumed:
    """Checks a state against a loader. Throws StateError as `DataLoader.load_state_dict` says.

    `own_plan` is that of the loader's mix from the beginning.
    """
    state = state_module.check_version(state)
    theirs = state.get("fingerprint")
    if not isinstance(theirs, Mapping):
        raise StateError(f"the state's 'fingerprint' is {theirs!r}; expected a dict")
    different = state_module.differences(theirs, fingerprint, corpus.sources)
    own_mixes = unchanged(corpus.rule)
    rule = own_mixes[0][0]
    if different:
        mixes = own_mixes
        changed = rule_differences_beside(theirs, rule, corpus.sources)
    else:
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
        return Resumed(
            cursor=_core.Cursor(),
            plan=own_plan,
            mixes=own_mixes,
            steps=make_steps(own_plan, geometry),
            skip=make_skip(config),
            ahead=_core.Delta(),
            restarts=different,
        )
    plan = own_plan if mixes == own_mixes else _plan_of_state(corpus, config, mixes)
    cursor = state_module.read_cursor(state)
    bins_per_step = state_module.read_bins_per_step(state)
    if cursor.step_bins >= bins_per_step:
        raise StateError(
            f"the state has delivered {cursor.step_bins} bins of a step of {bins_per_step}; "
            f"a step that is done is none"
        )
    ahead = _core.Delta()
    if bins_per_step != geometry.bins_per_step:
        if not allow_batch_change:
            raise StateError(
                f"bins_per_step: {bins_per_step} in the state, {geometry.bins_per_step} "
                f"here (batch_size {config.batch_size} x world_size {config.world_size} x "
                f"accumulate {config.accumulate}). Keep the global batch, or pass "
                f"allow_batch_change=True"
            )
        place = _core.settled(plan, cursor, bins_per_step)
        ahead = _core.losses_ahead(plan, cursor, place, bins_per_step)
        cursor = place
    _core.check_cursor(plan, cursor)
    if changed:
        at = _core.untouched_window(plan, cursor, geometry.bins_per_step)
        mixes = changed_history(mixes, rule, (at.epoch, at.window))
        plan = make_plan(corpus, config, mixes) if len(mixes) > 1 else own_plan
    numbering = state_module.read_numbering(state)
    steps = _go_on_counting(numbering, plan, geometry, config, cursor, bins_per_step)
    return Resumed(
        cursor=cursor,
        plan=plan,
        mixes=mixes,
        steps=steps,
        skip=_united_skip(state_module.read_skip(state), config, steps, cursor),
        ahead=ahead,
        restarts=[],
    )


def _plan_of_state(corpus: Corpus, config: LoaderConfig, mixes: MixHistory) -> _core.Plan:
    try:
        return make_plan(corpus, config, mixes)
    except PlanError as error:
        raise StateError(f"the state has a mix that cannot be followed: {error}") from error


def _go_on_counting(
    numbering: state_module.Numbering,
    plan: _core.Plan,
    geometry: _core.Geometry,
    config: LoaderConfig,
    cursor: _core.Cursor,
    bins_per_step: int,
) -> _core.Steps:
    """Numbers the steps from a state on; where they are cut anew, from its place on."""
    same = bins_per_step == geometry.bins_per_step and numbering.drop_last == config.drop_last
    theirs = geometry
    if not same:
        theirs = _core.Geometry(
            batch_size=bins_per_step,
            world_size=1,
            rank=0,
            accumulate=1,
            drop_last=numbering.drop_last,
            trim=False,
        )
    steps = _core.Steps(plan, theirs, numbering.origin, numbering.number)
    if numbering.before is not None:
        steps.learn_before(cursor.epoch, numbering.before)
    if same:
        return steps
    origin = _core.Cursor(
        epoch=cursor.epoch,
        window=cursor.window,
        bin=cursor.bin,
        order_step=cursor.order_step,
        order_phase=cursor.order_phase,
        step=cursor.step,
    )
    return _core.Steps(plan, geometry, origin, steps.before(cursor.epoch) + origin.step)


def _united_skip(
    theirs: _core.StepSet, config: LoaderConfig, steps: _core.Steps, cursor: _core.Cursor
) -> _core.StepSet:
    """What the state skips, and of the loader's own `skip=` what is still to come."""
    own = make_skip(config)
    united = _core.StepSet([*theirs.ranges, *own.ranges])
    if united.ranges == theirs.ranges:
        return theirs
    first = steps.before(cursor.epoch) + cursor.step + (1 if cursor.step_bins else 0)
    effective = _core.StepSet([*theirs.ranges, *own.from_step(first).ranges])
    late = united.count(0, 2**62) - effective.count(0, 2**62)
    if late:
        warnings.warn(
            f"skip: {counted(late, 'step')} of it began before the state was taken, at step "
            f"{first}, and cannot be skipped any more",
            stacklevel=4,
        )
    return effective
