"""A profile as JSON lines: one object a batch, for pandas, jq, or whatever reads lines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from brimful.profiling.figures import Profile, ProfiledBatch


def batch_objects(profile: Profile) -> list[dict[str, Any]]:
    """What `write_jsonl` writes, a flat dict a batch. Each has all keys; null is "not measured".

    Keys: `number`, from 0 in the profile; `first`, whether it is the first of a pass; in seconds
    `entered` (since the profile began), `wait`, `step`, `load`, `blocked`, `collate` and
    `starvation`; `stall`, which is the wait, but 0 for a first batch; `queue_depth`; `slots`,
    `tokens`, `effective_tokens`, `documents`, `attention_work` and `num_bytes`; `utilization`,
    tokens / slots. Words mean what they mean in `ProfiledBatch` and `BatchFigures`.
    """
    return [_object(batch) for batch in profile.batches]


def write_jsonl(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Writes the batches that the profile keeps, one line each, as `batch_objects` has them."""
    write_objects(batch_objects(profile), path)


def write_objects(objects: Iterable[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Writes one object a line; numbers that are none become strings, "nan", "inf" and "-inf"."""
    with Path(path).open("w", encoding="utf-8") as file:
        for entry in objects:
            file.write(json.dumps(_plain(entry), allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _object(batch: ProfiledBatch) -> dict[str, Any]:
    figures = batch.figures
    return {
        "number": batch.number,
        "first": batch.first,
        "entered": batch.entered,
        "wait": batch.wait,
        "stall": 0.0 if batch.first else batch.wait,
        "step": batch.step,
        "load": batch.load,
        "blocked": batch.blocked,
        "collate": batch.collate,
        "starvation": batch.starvation,
        "queue_depth": batch.queue_depth,
        "slots": figures.slots,
        "tokens": figures.tokens,
        "effective_tokens": figures.effective_tokens,
        "utilization": figures.utilization,
        "documents": figures.documents,
        "attention_work": figures.attention_work,
        "num_bytes": figures.num_bytes,
    }
