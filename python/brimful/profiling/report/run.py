"""The timeline of a run: what was logged at each step, the mix, and what came with spikes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from brimful._core import PlanError
from brimful.profiling.report.axis import beside, left_axis, span
from brimful.profiling.report.elements import (
    Html,
    box,
    chart,
    element,
    joined,
    legend,
    line,
    section,
)
from brimful.profiling.timeline import Timeline
from brimful.wording import count, counted

_HEIGHT, _TOP = 110.0, 8.0
_COLUMNS = 120
_MOST_NUMBERS = 6  # curves; who logs more has a logger of his own
_MOST_SPIKES = 3
_MIX = ("work", "good", "first", "starve", "collate", "rest")  # of the sources, most first


def over_run(timeline: Timeline | None) -> Html:
    """Curves of what was logged, the sources' shares, and spikes; nothing where nothing was."""
    if timeline is None or len(timeline) < 2:
        return Html("")
    logged = list(dict.fromkeys(name for row in timeline for name in row.logged))
    names = logged[:_MOST_NUMBERS]
    spikes = {name: timeline.spikes(name) for name in names}
    curves = [_curve(timeline, i, name, spikes[name]) for i, name in enumerate(names)]
    mix = _mix(timeline)
    if not names and not mix:
        return Html("")
    numbers = [row.step for row in timeline if row.step is not None]
    foot = element(
        "div",
        element("span", f"step {count(numbers[0])}" if numbers else "first step"),
        element("span", count(numbers[-1]) if numbers else "last step"),
        class_="ends",
    )
    lead = f"{counted(len(timeline), 'optimizer step')} from left to right, with what was logged"
    lead += (
        f"; {counted(len(logged) - len(names), 'more number')} not shown."
        if names != logged
        else "."
    )
    return section("The run", lead, *curves, mix, foot, *_explained(timeline, spikes))


def _curve(timeline: Timeline, place: int, name: str, spikes: Sequence[int]) -> Html:
    """A logged number over the steps; a spike is marked, and so is a value that is no number."""
    points = [(i, row.logged[name]) for i, row in enumerate(timeline) if name in row.logged]
    finite = [value for _, value in points if math.isfinite(value)]
    low, high, labels = span(finite or [0.0])
    last = max(len(timeline) - 1, 1)

    def height(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return _HEIGHT - (_HEIGHT - _TOP) * share

    marks = [line(0, 1, height(v), height(v), "grid") for v in labels]
    for i, row in enumerate(timeline):
        if row.step is not None and row.step in spikes:
            marks.append(line(i / last, i / last, 0, _HEIGHT, "spike"))
    marks += [
        box(i / last, 0.004, 0, _HEIGHT, "stall", f"no number at step {timeline[i].step}")
        for i, value in points
        if not math.isfinite(value)
    ]
    for stretch in _stretches(points):
        places = [f"{1000 * i / last:.1f},{height(v):.2f}" for i, v in stretch]
        if len(places) == 1:
            places *= 2  # a dot
        marks.append(_polyline(" ".join(places)))
    told = f"{finite[0]:.4g} first, {finite[-1]:.4g} last" if finite else "no numbers"
    if spikes:
        told += f", {counted(len(spikes), 'spike')}"
    drawing = chart(f"run-{place}", name, f"{told}.", _HEIGHT + 1, marks)
    head = element(
        "p", element("strong", name), " logged ", element("span", told, class_="value"),
        class_="track",
    )  # fmt: skip
    axis = left_axis([(height(v), f"{v:.4g}") for v in labels], _HEIGHT + 6)
    return element("figure", head, beside(axis, drawing))


def _stretches(points: Sequence[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    """The curve between values that are no numbers, thinned to what can be seen."""
    stretches: list[list[tuple[int, float]]] = [[]]
    for i, value in points:
        if math.isfinite(value):
            stretches[-1].append((i, value))
        elif stretches[-1]:
            stretches.append([])
    return [_thinned(stretch) for stretch in stretches if stretch]


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Of many points side by side the lowest and the highest: no spike is lost."""
    each = max(1, len(points) // 500)
    if each < 3:
        return points
    kept = []
    for start in range(0, len(points), each):
        group = points[start : start + each]
        ends = {min(group, key=lambda point: point[1]), max(group, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept


def _polyline(points: str) -> Html:
    """A curve over the whole width, whose thousandths its points are given in."""
    curve = element("polyline", points=points, class_="curve")
    return element(
        "svg",
        curve,
        viewBox=f"0 0 1000 {_HEIGHT:g}",
        preserveAspectRatio="none",
        width="100%",
        height=f"{_HEIGHT:g}",
        aria_hidden="true",
    )


def _mix(timeline: Timeline) -> Html:
    """Each source's share of tokens, for some of the steps; nothing where it cannot be told."""
    each = -(-len(timeline) // _COLUMNS)
    rows = [row for row in timeline[::each] if row.step is not None]
    shares: list[dict[str, float]] = []
    for row in rows:
        try:
            held = {name: n["tokens"] for name, n in timeline.exposure(row.step or 0).items()}
        except PlanError:  # torch's path, or a step that the plan does not reach any more
            return Html("")
        whole = sum(held.values())
        shares.append({name: n / whole for name, n in held.items()} if whole else {})
    total: dict[str, float] = {}
    for step in shares:
        for name, share in step.items():
            total[name] = total.get(name, 0.0) + share
    order = sorted(total, key=lambda name: -total[name])
    if len(order) < 2:
        return Html("")
    shown = order[: len(_MIX)]
    marks = []
    for i, step in enumerate(shares):
        bottom = _HEIGHT
        for name, colour in zip(shown, _MIX, strict=False):
            tall = (_HEIGHT - _TOP) * step.get(name, 0.0)
            bottom -= tall
            tip = f"step {rows[i].step}: {name} {100 * step.get(name, 0.0):.1f} %"
            marks.append(box(i / len(rows), 0.9 / len(rows), bottom, tall, colour, tip))
    keys = [(colour, name) for name, colour in zip(shown, _MIX, strict=False)]
    labels = [(_HEIGHT - (_HEIGHT - _TOP) * v, f"{100 * v:g} %") for v in (0.0, 0.5, 1.0)]
    head = element("p", element("strong", "Mix"), " share of tokens by source", class_="track")
    drawing = chart("run-mix", "Mix", "Share of tokens by source.", _HEIGHT + 1, marks)
    return element("figure", head, beside(left_axis(labels, _HEIGHT + 6), drawing), legend(keys))


def _explained(timeline: Timeline, spikes: dict[str, list[int]]) -> list[Html]:
    """What stood out beside the first spikes: it came together, which is not to say why."""
    told = []
    for name, steps in spikes.items():
        for step in steps[:_MOST_SPIKES]:
            try:
                found = timeline.beside(step)
            except PlanError:  # too few steps before it
                continue
            others = [str(change) for change in found.standing_out]
            lines = [element("li", text) for text in others] or [element("li", "nothing else")]
            head = element(
                "p", element("strong", f"Beside the spike of {name} at step {count(step)}")
            )
            told.append(joined(head, element("ul", *lines, class_="beside")))
    return told
