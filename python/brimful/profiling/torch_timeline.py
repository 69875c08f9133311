"""The timeline of a loader on torch's path, where a step is a batch and nobody looks into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brimful.profiling.notes import Notes
from brimful.profiling.timeline import Timeline
from brimful.profiling.timeline_rows import TimelineStep, finished

if TYPE_CHECKING:
    from brimful.drop_in.torch_stats import Clock, Moment


def timeline_of(clock: Clock, notes: Notes) -> Timeline:
    """The timeline as it stands."""
    moments = list(clock.last)
    numbers = range(clock.batches - len(moments), clock.batches)
    rows = [_row(number, moment) for number, moment in zip(numbers, moments, strict=True)]
    row_of = {number: place for place, number in enumerate(numbers)}
    return Timeline(finished(rows, row_of, notes.read()))


def _row(number: int, moment: Moment) -> TimelineStep:
    return TimelineStep(
        step=number,
        epoch=None,
        batches=1,
        first=moment.first,
        entered=moment.entered,
        taken=moment.taken,
        seconds=None,
        stall_seconds=0.0 if moment.first else moment.taken - moment.entered,
    )
