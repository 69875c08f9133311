"""The state of a loader: a place in the plan, what plan it is, and the counts so far.

A state is a small dict of plain numbers, strings and lists, the same on every rank. It speaks of
batches delivered, never of batches made ahead, and of all ranks together.
"""

from __future__ import annotations

from collections.abc import Mapping
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

VERSION = 2

_CURSOR_FIELDS = ("epoch", "window", "bin", "step_bins", "order_step", "order_phase")
_MAX = 2**63 - 1


def fingerprint(corpus: Corpus, config: LoaderConfig) -> dict[str, Any]:
    """What fixes the order of a run: the corpus's shape and the settings of the plan.

    Not in it: paths, and everything that only deals the same bins in another way (batch_size,
    world_size, accumulate, threads, depth, layout, fields).
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
        **rule_fields(corpus.rule, corpus.sources),
        "sources": source_prints(corpus),
    }


def make_state(
    *,
    cursor: _core.Cursor,
    bins_per_step: int,
    fingerprint: dict[str, Any],
    mix_changes: list[dict[str, Any]],
    counts: _core.Counts,
) -> dict[str, Any]:
    """The state of a loader at `cursor`."""
    all_ranks = {name: getattr(counts.all_ranks, name) for name in TALLY_FIELDS}
    return {
        "version": VERSION,
        "cursor": {name: getattr(cursor, name) for name in _CURSOR_FIELDS},
        "bins_per_step": bins_per_step,
        "fingerprint": fingerprint,
        "mix_changes": mix_changes,
        "all_ranks": all_ranks,
        "exposure": {name: pack(column) for name, column in counts.exposure.items()},
    }


def differences(state: Mapping[str, Any], here: Mapping[str, Any], corpus: Corpus) -> list[str]:
    """One line for each field of two fingerprints that differs, but for the rule of the mixture."""
    lines = []
    for field in here:
        if field == "sources":
            lines += source_differences(state.get("sources"), corpus)
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
    return _core.Cursor(*(_count(cursor, name, "cursor") for name in _CURSOR_FIELDS))


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
