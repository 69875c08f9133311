"""Profiles and timelines as traces: what the consumer and the makers of batches did when.

Making a batch lies inside the wait of a consumer that makes its own batches. Threads of brimful's
own have tracks, and so have slots. Of other makers a profile knows how long they took, not when:
there it is a curve.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from brimful.profiling.figures import Profile, ProfiledBatch
from brimful.profiling.maker_tracks import add_makers
from brimful.profiling.timeline_rows import TimelineStep
from brimful.profiling.tracks import Tracks
from brimful.records import BatchRecord

_STEPS, _CONSUMER = 1, 2  # tracks, from the top


def trace_events(profile: Profile) -> list[dict[str, Any]]:
    """The events of a profile's trace: dicts of the Trace Event Format, by time."""
    return _of_profile(profile).events()


def write_trace(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Writes a `.json` that ui.perfetto.dev and chrome://tracing open, of the batches that the
    profile keeps.
    """
    facts = profile.facts
    about = {"loader": facts.name, "kind": facts.kind, "workers": facts.workers, **facts.settings}
    if facts.simulated_step is not None:
        about["simulated_step_seconds"] = facts.simulated_step
    _of_profile(profile).write(path, about)


def write_timeline_trace(
    rows: Sequence[TimelineStep], records: Sequence[BatchRecord], path: str | os.PathLike[str]
) -> None:
    """The same of the steps of a timeline, and of the records that they were made of."""
    tracks = Tracks("brimful timeline")
    tracks.name(_STEPS, "steps")
    origin = min((row.entered for row in rows), default=0.0)
    for row in rows:
        _add_row(tracks, row, origin)
    if records:
        _add_waits(tracks, records, origin)
        add_makers(tracks, records, origin)
    tracks.write(path, {})


def _of_profile(profile: Profile) -> Tracks:
    tracks = Tracks(f"brimful profile of {profile.facts.name}")
    tracks.name(_STEPS, "steps")
    tracks.name(_CONSUMER, "consumer")
    by_consumer = profile.facts.workers == 0
    for batch in profile.batches:
        _add_batch(tracks, batch)
        if not profile.records:
            _add_making(tracks, batch, by_consumer=by_consumer)
        _add_counters(tracks, batch)
    add_makers(tracks, profile.records, profile.began)
    return tracks


def _add_batch(tracks: Tracks, batch: ProfiledBatch) -> None:
    """The step as a whole, and its two parts."""
    figures = batch.figures
    begin, wait, step = batch.entered, batch.wait, batch.step
    tracks.slice(
        _STEPS,
        f"step {batch.number}",
        begin,
        wait + (step or 0.0),
        {
            "slots": figures.slots,
            "tokens": figures.tokens,
            "effective_tokens": figures.effective_tokens,
            "documents": figures.documents,
            "bytes": figures.num_bytes,
            "starvation_ms": _ms(batch.starvation),
        },
    )
    blocked = {"blocked_ms": _ms(batch.blocked)} if batch.load is None else None
    tracks.slice(_CONSUMER, "first batch" if batch.first else "stall", begin, wait, blocked)
    if step is not None:
        tracks.slice(_CONSUMER, "work", begin + wait, step)


def _add_making(tracks: Tracks, batch: ProfiledBatch, *, by_consumer: bool) -> None:
    if batch.load is None:
        return
    if not by_consumer:
        tracks.counter("load (ms)", batch.entered + batch.wait, {"load": _ms(batch.load)})
        return
    load = min(batch.load, batch.wait)
    begin = batch.entered + batch.wait - load  # behind what `iter()` took, in a first wait
    tracks.slice(_CONSUMER, "load", begin, load, {"blocked_ms": _ms(batch.blocked)})
    if batch.collate is not None:  # comes last
        collate = min(batch.collate, load)
        tracks.slice(_CONSUMER, "collate", begin + load - collate, collate)


def _add_counters(tracks: Tracks, batch: ProfiledBatch) -> None:
    figures = batch.figures
    tracks.counter("batches ready", batch.entered, {"batches": batch.queue_depth})
    _add_utilization(tracks, batch.entered + batch.wait, figures.utilization)
    if not batch.first:
        waits = {"stall": _ms(batch.wait), "starvation": _ms(batch.starvation)}
        tracks.counter("waits (ms)", batch.entered + batch.wait, waits)


def _add_row(tracks: Tracks, row: TimelineStep, origin: float) -> None:
    begin, returned = row.entered - origin, row.taken - origin
    starvation = None if row.starvation is None else row.starvation.seconds
    tracks.slice(
        _STEPS,
        f"batch of epoch {row.epoch}" if row.step is None else f"step {row.step}",
        begin,
        row.taken - row.entered if row.seconds is None else row.seconds,
        {
            "epoch": row.epoch,
            "micro_batches": row.batches,
            "slots": row.slots,
            "tokens": row.tokens,
            "effective_tokens": row.effective_tokens,
            "logged": _finite(row.logged) or None,
        },
    )
    tracks.counter("batches ready", begin, {"batches": row.queue_depth})
    _add_utilization(tracks, returned, row.utilization)
    if not row.first:
        waits = {"stall": _ms(row.stall_seconds), "starvation": _ms(starvation)}
        tracks.counter("waits (ms)", returned, waits)
    for name, value in _finite(row.logged).items():
        tracks.counter(name, returned, {name: value})


def _add_waits(tracks: Tracks, records: Sequence[BatchRecord], origin: float) -> None:
    tracks.name(_CONSUMER, "consumer")
    for record in records:
        begin, wait = record.entered - origin, record.taken - record.entered
        tracks.slice(_CONSUMER, "first batch" if record.first else "stall", begin, wait)


def _add_utilization(tracks: Tracks, time: float, utilization: float | None) -> None:
    used = None if utilization is None else round(100 * utilization, 3)
    tracks.counter("utilization (%)", time, {"used": used})


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    """Numbers that a curve can show."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 6)
