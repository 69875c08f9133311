"""Rows of a timeline: what batches of an optimizer step tell, put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from brimful.profiling.notes import Note
from brimful.records import BatchRecord, BatchStarvation
from brimful.telemetry import utilization


@dataclass(frozen=True, kw_only=True)
class TimelineStep:
    """One optimizer step on this rank, as far as its micro-batches were delivered.

    Times are host seconds unless they say otherwise. None means not measured: on torch's path that
    is whatever is in a batch, and `step` counts batches there.

    Attributes:
        step: its number in the run; None where a change of the global batch has taken it away.
        epoch: the epoch it belongs to.
        batches: micro-batches delivered.
        first: whether it begins an iteration, whose first wait is no stall.
        entered: when `next()` was called for its first micro-batch, by `time.perf_counter()`.
        taken: when the last one was returned.
        seconds: from `entered` until the next step is asked for; None for the last step of an
            iteration.
        stall_seconds: in `next()`, all micro-batches together.
        load_seconds: making them, in whatever thread.
        starvation: of the device, all micro-batches together, headroom being the smallest; None
            where it was not measured for all of them but an iteration's first.
        queue_depth: batches ready when `next()` was called; the fewest.
        slots, tokens, effective_tokens, attention_work: sums, of this rank.
        logged: numbers given to `loader.log()`.
    """

    step: int | None
    epoch: int | None
    batches: int
    first: bool
    entered: float
    taken: float
    seconds: float | None
    stall_seconds: float
    load_seconds: float | None = None
    starvation: BatchStarvation | None = None
    queue_depth: int | None = None
    slots: int | None = None
    tokens: int | None = None
    effective_tokens: int | None = None
    attention_work: int | None = None
    logged: Mapping[str, float] = field(default_factory=dict)

    @property
    def utilization(self) -> float | None:
        """tokens / slots; None where either is unknown, and for dummy rows."""
        return utilization(self.tokens, self.slots)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain numbers and dicts, for any logger."""
        return {**dataclasses.asdict(self), "utilization": self.utilization}


def rows_of_records(
    records: Sequence[BatchRecord],
    number_of: Callable[[BatchRecord], int | None],
    notes: Iterable[Note],
) -> list[TimelineStep]:
    """Rows of a native loader; `number_of` gives the number of a record's step in the run."""
    groups: list[list[BatchRecord]] = []
    newest: dict[tuple[int, int], list[BatchRecord]] = {}  # by step: iterators may take turns
    for record in records:
        place = (record.epoch, record.step)
        group = newest.get(place)
        if group is None or group[-1].micro_batch >= record.micro_batch:
            group = newest[place] = []
            groups.append(group)
        group.append(record)
    rows = [_row(group, number_of(group[0])) for group in groups]
    row_of = {record.number: i for i, group in enumerate(groups) for record in group}
    return finished(rows, row_of, notes)


def finished(
    rows: list[TimelineStep], row_of: Mapping[int, int], notes: Iterable[Note]
) -> list[TimelineStep]:
    """Rows with what was logged and how long they took; `row_of` finds the row of a batch."""
    logged: dict[int, dict[str, float]] = {}
    places: dict[int, list[int]] = {}  # of rows, by step
    for i, row in enumerate(rows):
        if row.step is not None:
            places.setdefault(row.step, []).append(i)
    for note in notes:
        place = row_of.get(note.batch)
        if note.step is not None:
            until = len(rows) if place is None else place
            before = [i for i in places.get(note.step, ()) if i <= until]
            place = before[-1] if before else None
        if place is not None:
            logged.setdefault(place, {}).update(note.numbers)
    ends = [None if row.first else row.entered for row in rows[1:]]
    return [
        dataclasses.replace(
            row,
            logged=logged.get(i, {}),
            seconds=None if end is None else end - row.entered,
        )
        for i, (row, end) in enumerate(zip(rows, [*ends, None], strict=False))
    ]


def _row(group: Sequence[BatchRecord], step: int | None) -> TimelineStep:
    return TimelineStep(
        step=step,
        epoch=group[0].epoch,
        batches=len(group),
        first=group[0].first,
        entered=group[0].entered,
        taken=group[-1].taken,
        seconds=None,
        stall_seconds=sum(r.stall_seconds for r in group),
        load_seconds=sum(r.plan_seconds + r.read_seconds + r.fill_seconds for r in group),
        starvation=_sum(group),
        queue_depth=min(r.queue_depth for r in group),
        slots=sum(r.slots for r in group),
        tokens=sum(r.tokens for r in group),
        effective_tokens=sum(r.effective_tokens for r in group),
        attention_work=sum(r.attention_work for r in group),
    )


def _sum(group: Sequence[BatchRecord]) -> BatchStarvation | None:
    found = [r.starvation for r in group if not r.first]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return BatchStarvation(
        load_seconds=sum(one.load_seconds for one in known),
        ring_seconds=sum(one.ring_seconds for one in known),
        copy_seconds=sum(one.copy_seconds for one in known),
        handoff_seconds=sum(one.handoff_seconds for one in known),
        headroom_seconds=min(one.headroom_seconds for one in known),
    )
