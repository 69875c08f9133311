"""The state of a loader: a place in the plan, what plan it is, and the counts so far.

A state is a small dict of plain numbers, strings and lists, the same on every rank. It speaks of
batches delivered, never of batches made ahead, and of all ranks together.

Its dicts have the same keys in every state, and no list holds a dict: torch.distributed.checkpoint
loads by the keys of the state that it is to fill, and writes into the dicts and lists of that one,
so they belong to nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import StateError
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.mix_state import FIELDS as RULE_FIELDS
from brimful.mix_state import rule_fields
from brimful.source_columns import pack, unpack
from brimful.source_prints import source_differences, source_prints
from brimful.telemetry import EXPOSURE_FIELDS, TALLY_FIELDS

VERSION = 3

_CURSOR_FIELDS = ("epoch", "window", "bin", "step_bins", "order_step", "order_phase", "step")
_MAX = 2**63 - 1


def fingerprint(corpus: Corpus, config: LoaderConfig) -> dict[str, Any]:
    """What fixes the order of a run: the corpus's shape and the settings of the plan.

    Not in it: paths, and everything that only deals the same bins in another way (batch_size,
    world_size, accumulate, threads, depth, layout, fields, shares of context parallelism). Carried
    labels change no order, but every count of labels.
    """
    return {
        "seed": config.seed,
        "seq_len": config.seq_len,
        "packing": config.packing,
        "overlong": config.overlong,
        "buffer": config.buffer if config.packing == "streaming" else None,
        "max_segments": config.max_segments,
        "window": config.window,
        "shuffle": config.shuffle,
        "shuffle_block": config.shuffle_block if config.shuffle == "block" else None,
        "balance": config.balance,
        "align": config.align,
        "carry_label": config.carry_label,
        "order": None if config.megatron is None else config.megatron.settings(),
        "num_samples": config.num_samples,
        **rule_fields(corpus.rule, corpus.sources),
        "sources": source_prints(corpus),
    }


def make_state(
    *,
    cursor: _core.Cursor,
    steps: _core.Steps,
    skip: _core.StepSet,
    bins_per_step: int,
    drop_last: bool,
    fingerprint: dict[str, Any],
    mix_changes: list[list[Any]],
    counts: _core.Counts,
) -> dict[str, Any]:
    """The state of a loader at `cursor`.

    `step` is the number of the step there; None where nobody has counted the epochs before it, as
    after a loop that left one early. It is then counted when somebody asks for it.
    """
    before = steps.known_before(cursor.epoch)
    tally = counts.all_ranks
    return {
        "version": VERSION,
        "cursor": cursor_dict(cursor),
        "step": None if before is None else before + cursor.step,
        "bins_per_step": bins_per_step,
        "numbered_from": {
            "step": steps.number,
            "cursor": cursor_dict(steps.origin),
            "drop_last": drop_last,
        },
        "skip": [list(ends) for ends in skip.ranges],
        "fingerprint": {name: _copied(value) for name, value in fingerprint.items()},
        "mix_changes": _copied(mix_changes),
        "all_ranks": {name: getattr(tally, name) for name in TALLY_FIELDS},
        "exposure": {name: pack(column) for name, column in counts.exposure.items()},
    }


def _copied(value: Any) -> Any:
    """Lists of a state's own; copy.deepcopy takes five times as long."""
    return [_copied(entry) for entry in value] if isinstance(value, list) else value


def cursor_dict(cursor: _core.Cursor) -> dict[str, int]:
    """A place as a state has it."""
    return {name: getattr(cursor, name) for name in _CURSOR_FIELDS}


def differences(
    state: Mapping[str, Any], here: Mapping[str, Any], sources: Sequence[str]
) -> list[str]:
    """One line for each field of two fingerprints that differs, but for the rule of the mixture.

    `sources` are the names of the sources here.
    """
    lines = []
    for field in here:
        if field == "sources":
            lines += source_differences(state.get("sources"), here["sources"], sources)
        elif field in RULE_FIELDS:
            continue
        elif field not in state:
            lines.append(f"{field}: missing in the state, here {here[field]!r}")
        elif state[field] != here[field]:
            lines.append(f"{field}: {state[field]!r} in the state, {here[field]!r} here")
    return lines


def read_cursor(state: Mapping[str, Any]) -> _core.Cursor:
    """The place of a state. Throws StateError for anything that is not one."""
    cursor = _mapping(state, "cursor")
    return _core.Cursor(**{name: _count(cursor, name, "cursor") for name in _CURSOR_FIELDS})


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """How the steps of a state are numbered.

    Attributes:
        origin: the beginning of step `number` of the run; steps are cut as now from there on.
        drop_last: whether epochs end without their incomplete step.
        before: steps of the run before the state's epoch, where they were counted.
    """

    number: int
    origin: _core.Cursor
    drop_last: bool
    before: int | None


def read_numbering(state: Mapping[str, Any]) -> Numbering:
    """How the steps of a state are numbered. Throws StateError where it contradicts itself."""
    cursor = read_cursor(state)
    found = _mapping(state, "numbered_from")
    number = _count(found, "step", "numbered_from")
    origin = read_cursor(found)
    drop_last = found.get("drop_last")
    if not isinstance(drop_last, bool):
        raise StateError(f"the state's numbered_from.drop_last is {drop_last!r}; expected a bool")
    before = None
    if state.get("step") is not None:
        before = _count(state, "step", "state") - cursor.step
    place = (cursor.epoch, cursor.window, cursor.bin, cursor.step)
    begun = (origin.epoch, origin.window, origin.bin, origin.step)
    least = number - origin.step
    in_order = place >= begun and least >= 0
    if before is not None and cursor.epoch == origin.epoch:
        in_order = in_order and before == least
    elif before is not None:
        in_order = in_order and before >= number
    if not in_order:
        raise StateError(
            f"the state stands at step {state.get('step')!r}, {cursor.step} of epoch "
            f"{cursor.epoch}, and numbers its steps from {number}, {origin.step} of epoch "
            f"{origin.epoch}, on; these cannot be of one run"
        )
    _check_bins(cursor, origin, read_bins_per_step(state))
    return Numbering(number=number, origin=origin, drop_last=drop_last, before=before)


def _check_bins(cursor: _core.Cursor, origin: _core.Cursor, bins_per_step: int) -> None:
    """Bins and steps must tell the same place, as far as one window shows both."""
    base = origin if cursor.epoch == origin.epoch else _core.Cursor(cursor.epoch)
    steps = cursor.step - base.step
    if cursor.window == base.window and cursor.bin - base.bin != steps * bins_per_step:
        raise StateError(
            f"the state stands at bin {cursor.bin} of window {cursor.window} and at step "
            f"{cursor.step} of epoch {cursor.epoch}; with {bins_per_step} bins a step, from bin "
            f"{base.bin} and step {base.step} on, these are not one place. Take the state as "
            f"state_dict() returned it"
        )


def read_skip(state: Mapping[str, Any]) -> _core.StepSet:
    """The steps that a state's run skips."""
    entries = state.get("skip")
    if not isinstance(entries, (list, tuple)):
        raise StateError(f"the state's 'skip' is {entries!r}; expected a list of ranges")
    ranges = []
    for entry in entries:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise StateError(f"the state's skip has an entry {entry!r}; expected two step numbers")
        begin, end = (_checked_count(value, "skip") for value in entry)
        if end < begin:
            raise StateError(f"the state's skip has a range {entry!r} that ends before it begins")
        ranges.append((begin, end))
    return _core.StepSet(ranges)


def read_counts(
    state: Mapping[str, Any], num_sources: int
) -> tuple[_core.Tally, dict[str, npt.NDArray[np.int64]]]:
    """The counts of a state: of all ranks, and those of each source in columns."""
    all_ranks = _mapping(state, "all_ranks")
    tally = _core.Tally()
    for name in TALLY_FIELDS:
        setattr(tally, name, _count(all_ranks, name, "all_ranks"))
    exposure = _mapping(state, "exposure")
    columns = {
        name: unpack(exposure.get(name), np.int64, num_sources, f"exposure.{name}")
        for name in EXPOSURE_FIELDS
    }
    return tally, columns


def read_bins_per_step(state: Mapping[str, Any]) -> int:
    """Bins of a step of the run that the state is of."""
    bins = _count(state, "bins_per_step", "state")
    if not 1 <= bins <= 2**31:
        raise StateError(f"the state's bins_per_step is {bins}; expected 1 to 2**31")
    return bins


def check_version(state: object) -> Mapping[str, Any]:
    """The state as a mapping, if it is one that this version wrote."""
    if not isinstance(state, Mapping):
        raise StateError(
            f"the state is a {type(state).__name__}; expected the dict that state_dict() returned"
        )
    if state.get("loader") == "torch":
        raise StateError(
            "the state is one of a loader on torch's path, and this one is native (explain() tells "
            "why); make the loader as it was, without settings of brimful's own"
        )
    if state.get("version") != VERSION:
        raise StateError(
            f"the state's version is {state.get('version')!r}; this brimful reads {VERSION}. "
            f"Load it with the brimful that wrote it, or start anew"
        )
    return state


def _mapping(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = state.get(name)
    if not isinstance(value, Mapping):
        raise StateError(f"the state's {name!r} is {value!r}; expected a dict")
    return value


def _count(mapping: Mapping[str, Any], name: str, where: str) -> int:
    if name not in mapping:
        raise StateError(f"the state's {where!r} lacks {name!r}")
    return _checked_count(mapping[name], f"{where}.{name}")


def _checked_count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX:
        raise StateError(f"the state's {where} is {value!r}; expected a count from 0 up")
    return value
