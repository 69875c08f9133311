"""A profile as a trace: steps, and what the consumer did when, one slice each.

Making a batch lies inside the wait of a consumer that makes its own batches. Of threads and
processes a profile knows how long they took, not when: there it is a curve.
"""

from __future__ import annotations

import os
from typing import Any

from brimful.profiling.figures import Profile, ProfiledBatch
from brimful.profiling.tracks import Tracks

_STEPS, _CONSUMER = 1, 2  # tracks, from the top


def trace_events(profile: Profile) -> list[dict[str, Any]]:
    """The events of the trace: dicts of the Trace Event Format, by time."""
    return _tracks(profile).events()


def write_trace(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Writes a `.json` that ui.perfetto.dev and chrome://tracing open, of the batches that the
    profile keeps.
    """
    facts = profile.facts
    about = {"loader": facts.name, "kind": facts.kind, "workers": facts.workers, **facts.settings}
    if facts.simulated_step is not None:
        about["simulated_step_seconds"] = facts.simulated_step
    _tracks(profile).write(path, about)


def _tracks(profile: Profile) -> Tracks:
    tracks = Tracks(f"brimful profile of {profile.facts.name}")
    tracks.name(_STEPS, "steps")
    tracks.name(_CONSUMER, "consumer")
    for batch in profile.batches:
        _add_consumer(tracks, batch)
        _add_making(tracks, batch, by_consumer=profile.facts.workers == 0)
        _add_counters(tracks, batch)
    return tracks


def _add_consumer(tracks: Tracks, batch: ProfiledBatch) -> None:
    """The step as a whole, and its two parts."""
    figures = batch.figures
    begin, wait, step = batch.entered, batch.wait, batch.step
    tracks.slice(
        _STEPS,
        f"step {batch.number}",
        begin,
        wait + (step or 0.0),
        slots=figures.slots,
        tokens=figures.tokens,
        effective_tokens=figures.effective_tokens,
        documents=figures.documents,
        bytes=figures.num_bytes,
        starvation_ms=_ms(batch.starvation),
    )
    tracks.slice(_CONSUMER, "first batch" if batch.first else "stall", begin, wait)
    if step is not None:
        tracks.slice(_CONSUMER, "work", begin + wait, step)


def _add_making(tracks: Tracks, batch: ProfiledBatch, *, by_consumer: bool) -> None:
    if batch.load is None:
        return
    if not by_consumer:
        tracks.counter("load (ms)", batch.entered + batch.wait, {"load": _ms(batch.load)})
        return
    load = min(batch.load, batch.wait)
    tracks.slice(_CONSUMER, "load", batch.entered, load, blocked_ms=_ms(batch.blocked))
    if batch.collate is not None:  # comes last
        collate = min(batch.collate, load)
        tracks.slice(_CONSUMER, "collate", batch.entered + load - collate, collate)


def _add_counters(tracks: Tracks, batch: ProfiledBatch) -> None:
    figures = batch.figures
    tracks.counter("batches ready", batch.entered, {"batches": batch.queue_depth})
    if figures.utilization is not None:
        used = round(100 * figures.utilization, 3)
        tracks.counter("utilization (%)", batch.entered + batch.wait, {"used": used})
    if not batch.first:
        waits = {"stall": _ms(batch.wait), "starvation": _ms(batch.starvation)}
        tracks.counter("waits (ms)", batch.entered + batch.wait, waits)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 6)
