"""What each step waited, took, starved and held, over the profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brimful.profiling.figures import ProfiledBatch
from brimful.profiling.report.axis import beside, left_axis, ticks
from brimful.profiling.report.elements import (
    Html,
    box,
    chart,
    element,
    line,
    section,
)
from brimful.wording import count, duration, percent

_HEIGHT = 92.0
_TOP = 8.0  # room for half a letter of the topmost label
_COLUMNS = 120

Measure = Callable[[ProfiledBatch], float | None]


@dataclass(frozen=True)
class _Track:
    """One chart: what it shows, of which batches, and how its numbers are written."""

    name: str
    title: str
    note: str
    colour: str
    measure: Measure
    words: Callable[[float], str]
    most: float | None = None
    shows_largest: bool = True


_TRACKS = (
    _Track(
        "stall", "Stall", "host time in next(), first batches left out", "stall",
        lambda batch: None if batch.first else batch.wait, duration,
    ),
    _Track(
        "starvation", "Starvation", "device time without a batch", "starve",
        lambda batch: None if batch.first else batch.starvation, duration,
    ),
    _Track("step", "Step", "what the consumer did with the batch", "work",
           lambda batch: batch.step, duration),
    _Track(
        "load", "Load", "making the batch, hidden or not", "run",
        lambda batch: None if batch.first else batch.load, duration,
    ),
    _Track(
        "utilization", "Utilization", "tokens of slots", "work",
        lambda batch: batch.figures.utilization, percent, most=1.0, shows_largest=False,
    ),
)  # fmt: skip


def over_steps(batches: Sequence[ProfiledBatch]) -> Html:
    """A chart for each measure that the batches have, all with the same steps."""
    if not batches:
        return Html("")
    groups = _columns(batches)
    drawn = [_drawn(track, groups) for track in _TRACKS]
    each = -(-len(batches) // _COLUMNS)
    lead = "Batches from left to right."
    if each > 1:
        lead += f" A column is {each} batches: solid their mean, pale the longest time."
    numbers = (batches[0].number, batches[-1].number)
    foot = element(
        "div",
        element("span", f"batch {count(numbers[0])}"),
        element("span", f"{count(numbers[1])}"),
        class_="ends",
    )
    return section("Over the steps", lead, *(track for track in drawn if track), foot)


def _columns(batches: Sequence[ProfiledBatch]) -> list[Sequence[ProfiledBatch]]:
    each = -(-len(batches) // _COLUMNS)
    return [batches[i : i + each] for i in range(0, len(batches), each)]


def _drawn(track: _Track, groups: Sequence[Sequence[ProfiledBatch]]) -> Html:
    values = [[v for v in map(track.measure, group) if v is not None] for group in groups]
    known = [v for group in values for v in group]
    if not known:
        return Html("")
    scale = ticks(track.most if track.most is not None else max(known), 2)
    most = track.most or scale[-1]

    def height(value: float) -> float:
        return (_HEIGHT - _TOP) * min(value / most, 1.0)

    marks = [line(0, 1, _HEIGHT - height(v), _HEIGHT - height(v), "grid") for v in scale]
    width = 1 / len(groups)
    for i, group in enumerate(values):
        if not group:
            continue
        mean, largest = sum(group) / len(group), max(group)
        number = groups[i][0].number
        if track.shows_largest and largest > mean:
            marks.append(_column(i, width, height(largest), f"{track.colour} pale"))
        tip = f"batch {number}: {track.words(mean)}"
        marks.append(_column(i, width, height(mean), track.colour, tip))
    mean = sum(known) / len(known)
    told = f"mean {track.words(mean)}, most {track.words(max(known))}"
    drawing = chart(f"over-{track.name}", track.title, f"{track.note}: {told}.", _HEIGHT + 1, marks)
    labels = [(_HEIGHT - height(v), _label(track, v)) for v in scale]
    head = element(
        "p",
        element("strong", track.title),
        f" {track.note} ",
        element("span", told, class_="value"),
        class_="track",
    )
    return element("figure", head, beside(left_axis(labels, _HEIGHT + 6), drawing))


def _label(track: _Track, value: float) -> str:
    if track.most is not None:
        return f"{100 * value:g} %"
    return track.words(value) if value else "0"


def _column(place: int, width: float, height: float, colour: str, tip: str = "") -> Html:
    return box(place * width, width * 0.86, _HEIGHT - height, height, colour, tip)
