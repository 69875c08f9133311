"""The last steps of a run, each with what it held, what it waited for and what was logged."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from brimful._core import PlanError
from brimful.profiling.beside import Beside, Series, changes, score_of
from brimful.profiling.jsonl import write_objects
from brimful.profiling.timeline_rows import TimelineStep
from brimful.profiling.trace import write_timeline_trace
from brimful.records import BatchRecord
from brimful.steps import StepDocuments
from brimful.wording import counted

_RELATIVE = 0.01  # changes of a figure by less than a hundredth are of no interest
_SHARE = 0.01  # likewise of a share
_TICK = 1e-4  # seconds; and of a time


class Timeline(Sequence[TimelineStep]):
    """The last steps of a loader, oldest first, as they stood when it was asked for them.

    Those of its last 10,000 batches. Exposure and documents speak of all ranks, and come from the
    plan when they are asked for; everything else is what this rank measured.
    """

    def __init__(
        self,
        rows: Sequence[TimelineStep],
        *,
        records: Sequence[BatchRecord] = (),
        documents: Callable[[int], StepDocuments] | None = None,
    ) -> None:
        self._rows = tuple(rows)
        self._records = records
        self._documents = documents
        self._asked: dict[int, StepDocuments] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> TimelineStep: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[TimelineStep, ...]: ...
    def __getitem__(self, place: int | slice) -> TimelineStep | tuple[TimelineStep, ...]:
        """By place, as in a tuple; `at()` finds a step by its number."""
        return self._rows[place]

    def __repr__(self) -> str:
        numbers = [row.step for row in self._rows if row.step is not None]
        of = f", {min(numbers)} to {max(numbers)}" if numbers else ""
        return f"<brimful timeline: {counted(len(self), 'step')}{of}>"

    def at(self, step: int) -> TimelineStep:
        """The step of this number; where it was delivered more than once, the last time.

        Raises:
            PlanError: it is not among the last ones.
        """
        return self._rows[self._place(step)]

    def _place(self, step: int) -> int:
        for place in range(len(self) - 1, -1, -1):
            if self._rows[place].step == step:
                return place
        raise PlanError(f"step {step} is not in the timeline: {self!r}")

    def documents(self, step: int) -> StepDocuments:
        """The documents of a step, over all ranks: `loader.documents(step)`.

        Raises:
            PlanError: on torch's path, which knows no documents.
        """
        if self._documents is None:
            raise PlanError("torch's path hands batches through and knows no documents of them")
        if step not in self._asked:
            self._asked[step] = self._documents(step)
        return self._asked[step]

    def exposure(self, step: int) -> dict[str, dict[str, int]]:
        """Documents begun and tokens of a step by source, over all ranks; as `Stats.exposure`."""
        held = self.documents(step)
        exposure = {}
        for source in np.unique(held.sources).tolist():
            of_source = held.sources == source
            exposure[source] = {
                "documents": int(np.sum(held.starts[of_source] == 0)),
                "tokens": int(held.lengths[of_source].sum()),
            }
        return exposure

    def spikes(self, name: str = "loss", *, score: float = 6.0, window: int = 64) -> list[int]:
        """Steps at which a logged number rose far above the `window` steps before, or was none.

        Of steps in a row the first is named. A score is explained at `beside`.
        """
        found: list[int] = []
        values: list[float | None] = []
        spiking = False
        for row in self._rows:
            value = row.logged.get(name)
            if value is None or row.step is None:
                continue
            scored = score_of(value, values[-window:], _RELATIVE, relative=True)
            was, spiking = spiking, scored is not None and scored[1] >= score
            if spiking and not was:
                found.append(row.step)
            values.append(value)
        return found

    def beside(self, step: int, *, lead: int = 3, window: int = 64) -> Beside:
        """What changed at a step or up to `lead` steps before it, furthest from usual first.

        Looks at everything that was logged, at stall, starvation, making, utilization, labels and
        attention work, and, from the plan, at each source's share of tokens and the documents'
        lengths. What is usual is the median of the `window` steps before those.

        Raises:
            PlanError: for a step that is not in the timeline, and one with fewer than eight steps
                before those that are looked at.
        """
        place = self._place(step)
        begin = max(0, place - lead)
        usual = self._rows[max(0, begin - window) : begin]
        if len(usual) < 8:
            raise PlanError(
                f"step {step} has {counted(len(usual), 'step')} before it and its lead of {lead} "
                f"in the timeline; what is usual takes 8"
            )
        looked_at = [row for row in self._rows[begin : place + 1] if row.step is not None]
        rows = [*usual, *looked_at]
        steps = tuple(row.step for row in looked_at if row.step is not None)
        series = _measured(rows) + (_planned(rows, self) if self._documents is not None else [])
        return Beside(step, steps, len(usual), changes(series, steps))

    def as_dicts(self) -> list[dict[str, Any]]:
        """A dict a step, for pandas or any logger: the fields of `TimelineStep`."""
        return [row.as_dict() for row in self._rows]

    def write_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Writes these dicts, one line each. A logged number that is none is a string, "nan" or
        "inf", for JSON has no other word for it.
        """
        write_objects(self.as_dicts(), path)

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a `.json` for ui.perfetto.dev and chrome://tracing: steps, the consumer's waits,
        logged numbers as curves, and, of a native loader, its threads and slots.
        """
        write_timeline_trace(self._rows, self._records, path)


def _measured(rows: Sequence[TimelineStep]) -> list[Series]:
    """What this rank measured, and what was logged."""
    seconds = sorted(row.seconds for row in rows if row.seconds is not None)
    tick = max(_TICK, _RELATIVE * seconds[len(seconds) // 2] if seconds else 0.0)
    starved = [None if row.starvation is None else row.starvation.seconds for row in rows]
    labels = [None if not row.tokens else (row.effective_tokens or 0) / row.tokens for row in rows]
    names = dict.fromkeys(name for row in rows for name in row.logged)
    return [
        *(Series(name, [row.logged.get(name) for row in rows], 1e-3, True) for name in names),
        Series("stall seconds", [row.stall_seconds for row in rows], tick),
        Series("starvation seconds", starved, tick),
        Series("seconds of making", [row.load_seconds for row in rows], tick),
        Series("utilization", [row.utilization for row in rows], _SHARE),
        Series("share of tokens with a label", labels, _SHARE),
        Series("attention work", [row.attention_work for row in rows], _RELATIVE, True),
    ]


def _planned(rows: Sequence[TimelineStep], timeline: Timeline) -> list[Series]:
    """What the plan knows of the steps' documents; a step without a number is left out."""
    held = [None if row.step is None else _filled(timeline.documents(row.step)) for row in rows]
    sources = sorted({name for step in held if step is not None for name in step.sources.tolist()})
    series = [
        Series(f"share of {name}", [_share(step, name) for step in held], _SHARE)
        for name in sources
        if len(sources) > 1
    ]
    means = [None if step is None else float(np.mean(step.lengths)) for step in held]
    longest = [None if step is None else float(np.max(step.lengths)) for step in held]
    return [
        *series,
        Series("mean length of pieces", means, _RELATIVE, True),
        Series("longest piece", longest, _RELATIVE, True),
    ]


def _filled(step: StepDocuments) -> StepDocuments | None:
    return step if len(step.lengths) else None


def _share(step: StepDocuments | None, source: str) -> float | None:
    if step is None:
        return None
    return float(step.lengths[step.sources == source].sum() / step.lengths.sum())
