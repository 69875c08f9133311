"""Scales of charts: round numbers that people can read a height or a place by."""

from __future__ import annotations

import math
from collections.abc import Sequence

from brimful.profiling.report.elements import Html, element


def ticks(most: float, wanted: int = 3) -> list[float]:
    """Round numbers from 0 to the first that is not below `most`, about `wanted` steps of it."""
    rough = most / wanted
    if not 0 < rough < math.inf:
        return [0.0, 1.0]
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough * (1 - 1e-9))
    count = math.ceil(most / step * (1 - 1e-8))
    return [step * k for k in range(count + 1)]


def left_axis(labels: list[tuple[float, str]], height: float) -> Html:
    """Labels at heights in pixels, in a column of their own left of a chart."""
    marks = [
        element("text", words, class_="label", x="100%", y=f"{y + 4:.1f}", text_anchor="end")
        for y, words in labels
    ]
    return element(
        "svg", *marks, class_="axis", aria_hidden="true", width="100%", height=f"{height:g}"
    )


def beside(axis: Html, drawing: Html) -> Html:
    """A chart with its left axis."""
    return element("div", axis, drawing, class_="plot")


def span(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """Lowest and highest of a scale that need not begin at 0, and round numbers between."""
    low, high = max(min(values), -_WIDEST), min(max(values), _WIDEST)
    size = max(abs(low), abs(high))
    if high - low <= max(1e-12 * size, 1 / _WIDEST):  # one number
        room = size / 2 if size > 1 / _WIDEST else 0.5
        low, high = low - room, high + room
    step = ticks(high - low, 3)[1]
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return low, high, [step * k for k in range(first, last + 1)]


_WIDEST = 1e300  # of numbers that have a distance
