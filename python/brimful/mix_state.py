"""What a state says about the mixture: the rule in force, and the changes that the run has seen."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brimful._core import StateError
from brimful.mix_rule import MixHistory, MixRule, Schedule
from brimful.source_columns import MOST_LISTED, pack, unpack

FIELDS = ("weights", "unit", "when_dry", "max_passes", "epoch_tokens")


def rule_fields(rule: MixRule | None, sources: Sequence[str]) -> dict[str, Any]:
    """A rule as a state holds it, its numbers in source order."""
    rule = rule or MixRule(None)

    def column(by_name: Mapping[str, float]) -> list[Any] | str:
        return pack(np.array([by_name[name] for name in sources], np.float64))

    return {
        "weights": [[start, column(weights)] for start, weights in rule.schedule],
        "unit": rule.unit,
        "when_dry": rule.when_dry,
        "max_passes": None if rule.max_passes is None else column(rule.max_passes),
        "epoch_tokens": rule.epoch_tokens,
    }


def read_rule(fields: Mapping[str, Any], sources: Sequence[str]) -> MixRule:
    """The rule again. Throws StateError for anything that is none."""

    def by_name(column: object, what: str) -> dict[str, float]:
        numbers = unpack(column, np.float64, len(sources), what)
        return dict(zip(sources, numbers.tolist(), strict=True))

    stretches = fields.get("weights")
    if not isinstance(stretches, (list, tuple)):
        raise StateError(f"the state's weights are {stretches!r}; expected a list of stretches")
    schedule: list[tuple[int, dict[str, float]]] = []
    for stretch in stretches:
        if not isinstance(stretch, (list, tuple)) or len(stretch) != 2:
            raise StateError(f"the state's weights have an entry {stretch!r}; expected two things")
        start = _whole(stretch[0], "weights")
        schedule.append((start, by_name(stretch[1], "weights")))
    weights: dict[str, float] | Schedule | None = tuple(schedule) or None
    if len(schedule) == 1 and schedule[0][0] == 0:
        weights = schedule[0][1]
    for name in ("unit", "when_dry"):
        if not isinstance(fields.get(name), str):
            raise StateError(f"the state's {name} is {fields.get(name)!r}; expected a word")
    passes, tokens = fields.get("max_passes"), fields.get("epoch_tokens")
    return MixRule(
        weights,
        fields["unit"],
        fields["when_dry"],
        None if passes is None else by_name(passes, "max_passes"),
        None if tokens is None else _whole(tokens, "epoch_tokens"),
    )


def rule_differences(theirs: MixRule, ours: MixRule) -> list[str]:
    """One line for each argument of `brimful.mix` that differs."""
    lines = []
    for field in FIELDS:
        a, b = getattr(theirs, field), getattr(ours, field)
        if a == b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            changed = [name for name in b if a[name] != b[name]]
            named = ", ".join(
                f"{name!r} {a[name]:g} in the state, {b[name]:g} here"
                for name in changed[:MOST_LISTED]
            )
            more = len(changed) - MOST_LISTED
            lines.append(f"{field}: {named}" + (f", and {more:,} more" if more > 0 else ""))
        else:
            lines.append(f"{field}: {_brief(a)} in the state, {_brief(b)} here")
    return lines


def rule_differences_beside(
    fields: Mapping[str, Any], ours: MixRule, sources: Sequence[str]
) -> list[str]:
    """The same of a rule as a state holds it, which is refused for other fields anyway."""
    try:
        return rule_differences(read_rule(fields, sources), ours)
    except StateError:  # of another number of sources, whose weights nothing here compares with
        return [
            f"{name}: {_brief(fields.get(name))} in the state, {_brief(getattr(ours, name))} here"
            for name in ("unit", "when_dry", "epoch_tokens")
            if fields.get(name) != getattr(ours, name)
        ]


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def history_entries(history: MixHistory, sources: Sequence[str]) -> list[list[Any]]:
    """The changes of a run, each `[epoch, window, rule before it]`, a rule as its `FIELDS`."""
    return [
        [epoch, window, list(rule_fields(before, sources).values())]
        for (before, _, _), (_, epoch, window) in itertools.pairwise(history)
    ]


def read_history(state: Mapping[str, Any], sources: Sequence[str]) -> MixHistory:
    """The rules of the run that a state is of, the last one that of its fingerprint."""
    entries = state.get("mix_changes")
    if not isinstance(entries, (list, tuple)):
        raise StateError(f"the state's mix_changes are {entries!r}; expected a list")
    history = []
    place = (0, 0)
    for entry in entries:
        if not _is_list(entry, 3) or not _is_list(entry[2], len(FIELDS)):
            raise StateError(f"the state's mix_changes have an entry {entry!r}; expected a change")
        epoch, window, before = entry
        history.append((read_rule(dict(zip(FIELDS, before, strict=True)), sources), *place))
        place = (_whole(epoch, "mix_changes"), _whole(window, "mix_changes"))
    history.append((read_rule(state["fingerprint"], sources), *place))
    return tuple(history)


def changed_history(history: MixHistory, rule: MixRule, place: tuple[int, int]) -> MixHistory:
    """The history with another rule from a place on; changes planned for later never come."""
    kept = [entry for entry in history if entry[1:] < place]
    if kept and kept[-1][0] == rule:
        return tuple(kept)
    return (*kept, (rule, *place))


def _is_list(value: object, count: int) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == count


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise StateError(f"the state's {where} has {value!r} where a count belongs")
    return value
