"""The last batches as vessels side by side: width is time, height is slots, the filling tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from brimful.profiling.figures import ProfiledBatch
from brimful.profiling.report.elements import Html, box, chart, element, legend
from brimful.wording import counted, duration, percent

_HEIGHT = 150.0
_MOST = 36  # more would be too narrow to see on a small page


def vessels(batches: Sequence[ProfiledBatch]) -> Html:
    """Nothing where the profile holds no finished step whose slots were counted."""
    shown = _last_stretch(batches)
    whole = sum((0.0 if batch.first else batch.wait) + (batch.step or 0.0) for batch in shown)
    if not whole:
        return Html("")
    marks: list[Html] = []
    x = 0.0
    for batch in shown:
        wait = 0.0 if batch.first else batch.wait / whole
        step = (batch.step or 0.0) / whole
        filled = _filled(batch)
        level = _HEIGHT * filled
        marks.append(box(x, wait, 0, _HEIGHT, "stall", f"stall {duration(batch.wait)}"))
        x += wait
        held = f"batch {batch.number}: {percent(filled)} of the slots hold tokens"
        marks.append(box(x, step, 0, _HEIGHT - level, "padding", held))
        marks.append(box(x, step, _HEIGHT - level, level, "work", held))
        x += step
    waited = sum(0.0 if batch.first else batch.wait for batch in shown)
    tokens = sum((batch.step or 0.0) * _filled(batch) for batch in shown)
    description = (
        f"{counted(len(shown), 'batch', 'batches')}. Of their time {percent(tokens / whole)} went "
        f"into tokens, {percent(waited / whole)} into waiting, the rest into padding."
    )
    caption = (
        f"The last {counted(len(shown), 'batch', 'batches')}: {duration(whole)}. "
        "Width is time, height is slots: the solid filling went into tokens."
    )
    return element(
        "figure",
        chart("vessels", "Batches as vessels", description, _HEIGHT, marks),
        legend([("work", "tokens"), ("padding", "padding"), ("stall", "stall")]),
        element("figcaption", caption),
        class_="vessels",
    )


def _last_stretch(batches: Sequence[ProfiledBatch]) -> list[ProfiledBatch]:
    """The last batches that have a step and a count, without a gap between them."""
    known = [batch for batch in batches if batch.step is not None and batch.figures.slots]
    last = known[-_MOST:]
    cut = [k + 1 for k, (one, two) in enumerate(pairwise(last)) if two.number != one.number + 1]
    return last[cut[-1] if cut else 0 :]


def _filled(batch: ProfiledBatch) -> float:
    slots, tokens = batch.figures.slots, batch.figures.tokens
    return 1.0 if not slots or tokens is None else min(tokens / slots, 1.0)
