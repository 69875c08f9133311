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
    """Where tokens were not counted a step is drawn plain; nothing where no step is finished."""
    is_counted = any(batch.figures.utilization is not None for batch in batches)
    shown = _last_stretch(batches, is_counted)
    waits = [0.0 if batch.first else batch.wait for batch in shown]
    steps = [batch.step or 0.0 for batch in shown]
    whole = sum(waits) + sum(steps)
    if not whole:
        return Html("")
    marks: list[Html] = []
    x = spent = 0.0
    for batch, wait, step in zip(shown, waits, steps, strict=True):
        filled = _filled(batch)
        level = _HEIGHT * filled
        if wait:
            marks.append(box(x, wait / whole, 0, _HEIGHT, "stall", f"stall {duration(wait)}"))
        x += wait / whole
        held = f"batch {batch.number}: "
        held += f"{percent(filled)} of the slots hold tokens" if is_counted else duration(step)
        if level < _HEIGHT:
            marks.append(box(x, step / whole, 0, _HEIGHT - level, "padding", held))
        marks.append(box(x, step / whole, _HEIGHT - level, level, "work", held))
        x += step / whole
        spent += step * filled
    many = counted(len(shown), "batch", "batches")
    caption = f"The last {many}: {duration(whole)}. Width is time"
    description = f"{many}: {percent(sum(waits) / whole)} of their time went into waiting"
    keys = [("work", "steps"), ("stall", "stall")]
    if is_counted:
        keys = [("work", "tokens"), ("padding", "padding"), ("stall", "stall")]
        caption += ", height is slots: the solid filling went into tokens"
        description += f", {percent(spent / whole)} into tokens, the rest into padding"
    return element(
        "figure",
        chart("vessels", "Batches as vessels", f"{description}.", _HEIGHT, marks),
        legend(keys),
        element("figcaption", f"{caption}."),
        class_="vessels",
    )


def _last_stretch(batches: Sequence[ProfiledBatch], is_counted: bool) -> list[ProfiledBatch]:
    """The last batches whose step is known, and tokens if any are, without a gap between them."""
    known = [
        batch
        for batch in batches
        if batch.step is not None and (batch.figures.utilization is not None or not is_counted)
    ]
    last = known[-_MOST:]
    cut = [k + 1 for k, (one, two) in enumerate(pairwise(last)) if two.number != one.number + 1]
    return last[cut[-1] if cut else 0 :]


def _filled(batch: ProfiledBatch) -> float:
    used = batch.figures.utilization
    return 1.0 if used is None else min(used, 1.0)
