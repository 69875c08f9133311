"""Profiles on their way from the program that was watched to the command that tells about them: a
file of JSON for each process, renewed while it runs.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brimful._core import FormatError
from brimful.profiling.figures import (
    BatchFigures,
    LoaderFacts,
    Profile,
    ProfiledBatch,
    ProfileStats,
)
from brimful.records import BatchRecord, BatchStarvation
from brimful.starvation import Starvation
from brimful.times import ThreadTimes

SUFFIX = ".profile.json"


@dataclass(frozen=True, kw_only=True)
class SavedProfile:
    """What one loop of one process drew.

    Attributes:
        place: where the loop stands in the program, "train.py:42".
        rank: of the process, where its environment says one.
        process: its id.
        finished: False of a profile that was written while the program ran, without batches.
    """

    place: str
    rank: int | None
    process: int
    finished: bool
    profile: Profile


def save(folder: Path, profiles: list[SavedProfile]) -> None:
    """Writes the profiles of this process, all of them, in the place of those before."""
    rows = [
        {
            "place": saved.place,
            "rank": saved.rank,
            "process": saved.process,
            "finished": saved.finished,
            "facts": vars(saved.profile.facts),
            "stats": _plain_stats(saved.profile.stats),
            "batches": [_plain_batch(batch) for batch in saved.profile.batches],
            "records": [_plain_record(record) for record in saved.profile.records],
            "began": saved.profile.began,
        }
        for saved in profiles
    ]
    part = folder / f"{os.getpid()}.part"
    part.write_text(json.dumps(rows, default=str), encoding="utf-8")
    part.rename(folder / f"{os.getpid()}{SUFFIX}")  # a reader sees the whole of it or the last one


def read_saved(folder: Path) -> list[SavedProfile]:
    """All that processes have written so far, by rank and process.

    Raises:
        FormatError: a file that another version of brimful wrote.
    """
    found = []
    for file in folder.glob(f"*{SUFFIX}"):
        try:
            rows = json.loads(file.read_text(encoding="utf-8"))
            found += [_restored(row) for row in rows]
        except (TypeError, KeyError, ValueError) as error:
            raise FormatError(
                f"{file.name} holds no profile of this version of brimful ({error}); "
                "use the one that is installed beside the program"
            ) from error
    return sorted(found, key=lambda saved: (saved.rank or 0, saved.process))


def _plain_stats(stats: ProfileStats) -> dict[str, Any]:
    threads = stats.threads
    return {
        **vars(stats),
        "starvation": None if stats.starvation is None else vars(stats.starvation),
        "threads": None if threads is None else [vars(thread) for thread in threads],
    }


def _plain_batch(batch: ProfiledBatch) -> dict[str, Any]:
    return {**vars(batch), "figures": vars(batch.figures)}


def _plain_record(record: BatchRecord) -> dict[str, Any]:
    starvation = record.starvation
    return {**vars(record), "starvation": None if starvation is None else vars(starvation)}


def _restored_record(row: dict[str, Any]) -> BatchRecord:
    starvation = row["starvation"]
    restored = None if starvation is None else BatchStarvation(**starvation)
    return BatchRecord(**{**row, "starvation": restored})


def _restored(row: dict[str, Any]) -> SavedProfile:
    stats = dict(row["stats"])
    starvation, threads = stats["starvation"], stats["threads"]
    stats["starvation"] = None if starvation is None else Starvation(**starvation)
    stats["threads"] = None if threads is None else tuple(ThreadTimes(**t) for t in threads)
    stats["length_counts"] = tuple(stats["length_counts"])
    return SavedProfile(
        place=row["place"],
        rank=row["rank"],
        process=row["process"],
        finished=row["finished"],
        profile=Profile(
            facts=LoaderFacts(**row["facts"]),
            stats=ProfileStats(**stats),
            batches=tuple(_restored_batch(batch) for batch in row["batches"]),
            records=tuple(_restored_record(record) for record in row["records"]),
            began=row["began"],
        ),
    )


def _restored_batch(row: dict[str, Any]) -> ProfiledBatch:
    figures = dict(row["figures"])
    if figures["lengths"] is not None:
        figures["lengths"] = tuple(figures["lengths"])
    return ProfiledBatch(**{**row, "figures": BatchFigures(**figures)})
