"""Two profiles of one loop as one: a program that makes a new loader every epoch has as many."""

from __future__ import annotations

import dataclasses
from itertools import zip_longest
from typing import Any

from brimful.profiling.figures import Profile, ProfiledBatch, ProfileStats
from brimful.records import BatchRecord
from brimful.starvation import Starvation
from brimful.times import add_threads

_OF_THE_END = {"anonymous_bytes", "file_backed_bytes", "worker_bytes"}


def joined(earlier: Profile, later: Profile, *, keep: int = 10_000) -> Profile:
    """The later one as if it had gone on where the earlier one ended; time between does not count.

    Facts are the later one's. Of the batches the last `keep` are kept.
    """
    stats = _joined_stats(earlier.stats, later.stats)
    moved = (
        dataclasses.replace(
            batch,
            number=batch.number + earlier.stats.batches,
            entered=batch.entered + earlier.stats.wall_seconds,
        )
        for batch in later.batches
    )
    batches: tuple[ProfiledBatch, ...] = (*earlier.batches, *moved)
    seconds = earlier.began + earlier.stats.wall_seconds - later.began
    records = (*earlier.records, *(_moved(record, seconds) for record in later.records))
    return Profile(
        facts=later.facts,
        stats=stats,
        batches=batches[-keep:],
        records=records[-keep:],
        began=earlier.began,
    )


def _moved(record: BatchRecord, seconds: float) -> BatchRecord:
    moments = ("leased", "claimed", "filled", "entered", "taken")
    moved = {name: getattr(record, name) + seconds for name in moments}
    return dataclasses.replace(record, **moved)


def _joined_stats(earlier: ProfileStats, later: ProfileStats) -> ProfileStats:
    values: dict[str, Any] = {
        name: getattr(later, name) if name in _OF_THE_END else _sum(getattr(earlier, name), value)
        for name, value in vars(later).items()
        if name not in ("queue_depth", "starvation", "threads", "length_counts")
    }
    counts = zip_longest(earlier.length_counts, later.length_counts, fillvalue=0)
    return ProfileStats(
        **values,
        queue_depth=_mean(earlier, later),
        starvation=_starvation(earlier.starvation, later.starvation),
        threads=(
            None
            if earlier.threads is None and later.threads is None
            else add_threads(earlier.threads or (), later.threads or ())
        ),
        length_counts=tuple(one + other for one, other in counts),
    )


def _sum(one: Any, other: Any) -> Any:
    """None is "not measured": of two such, None."""
    return other if one is None else one if other is None else one + other


def _mean(earlier: ProfileStats, later: ProfileStats) -> float | None:
    measured = [s for s in (earlier, later) if s.queue_depth is not None and s.batches]
    batches = sum(stats.batches for stats in measured)
    depths = sum((stats.queue_depth or 0.0) * stats.batches for stats in measured)
    return depths / batches if batches else None


def _starvation(earlier: Starvation | None, later: Starvation | None) -> Starvation | None:
    if earlier is None or later is None:
        return later if earlier is None else earlier
    sums = {
        name: _sum(getattr(earlier, name), value)
        for name, value in vars(later).items()
        if name not in ("fraction", "headroom_seconds", "pinned_bytes")
    }
    elapsed = sums["elapsed_seconds"]
    return Starvation(
        **sums,
        fraction=sums["seconds"] / elapsed if elapsed else None,
        headroom_seconds=later.headroom_seconds,
        pinned_bytes=later.pinned_bytes,
    )
