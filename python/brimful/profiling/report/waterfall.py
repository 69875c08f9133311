"""One step from the making of its batch to the end of its use, as bars below each other."""

from __future__ import annotations

from dataclasses import dataclass

from brimful.profiling.figures import LoaderFacts, Profile, ProfiledBatch
from brimful.profiling.report.axis import ticks
from brimful.profiling.report.elements import (
    Html,
    box,
    chart,
    element,
    legend,
    line,
    section,
    text,
    unbroken,
)
from brimful.wording import count, duration


@dataclass(frozen=True)
class _Step:
    """A batch that was waited for and used, in seconds from the left of its chart."""

    batch: ProfiledBatch
    is_ready: bool  # before next() was called

    @property
    def handed(self) -> float:
        """When next() returned: making may have begun before it was called."""
        load, wait = self.batch.load or 0.0, self.batch.wait
        return load + wait if self.is_ready else max(load, wait)

    @property
    def span(self) -> float:
        """From left to right."""
        return self.handed + (self.batch.step or 0.0)


def waterfall(profile: Profile) -> Html:
    """A usual step and the one that was waited for longest; nothing where none is finished."""
    known = sorted(
        (batch for batch in profile.batches if batch.step is not None and not batch.first),
        key=lambda batch: batch.wait,
    )
    if not known:
        return Html("")
    chosen = {"The longest wait": known[-1]}
    if len(known) >= 3:
        chosen = {"A usual step": known[len(known) // 2], **chosen}
    steps = {
        title: _Step(batch, _is_ready(batch, profile.facts)) for title, batch in chosen.items()
    }
    widest = max(step.span for step in steps.values())
    keys: dict[str, str] = {}
    figures = []
    for i, (title, step) in enumerate(steps.items()):
        if step.span:  # on one scale, unless that leaves nothing to be seen of the shorter one
            span = step.span if step.span < widest / 4 else widest
            figures.append(_drawn(f"fall-{i}", title, step, span, keys))
    if not figures:
        return Html("")
    lead = (
        "From the making of a batch to the end of its use. The parts of making are drawn one after "
        "the other, and a batch that was ready ahead as if it had been finished just before next()."
    )
    return section("One step", lead, *figures, legend(keys.items()))


def _is_ready(batch: ProfiledBatch, facts: LoaderFacts) -> bool:
    """Whether it had been made before it was asked for.

    Where batches become ready in any order, those that are may be later ones, unless all are: then
    only a wait that is short beside the making tells.
    """
    ready = batch.queue_depth or 0
    if facts.kind == "brimful" or (facts.depth and ready >= facts.depth):
        return ready > 0
    return ready > 0 and batch.wait < 0.1 * (batch.load or 0.0)


def _drawn(name: str, title: str, chosen: _Step, span: float, keys: dict[str, str]) -> Html:
    """A chart of `span` seconds; what its colours stand for is added to `keys`."""
    batch, handed = chosen.batch, chosen.handed
    step = batch.step or 0.0
    rows: list[tuple[str, str, float, list[tuple[float, str, str]]]] = []
    if batch.load is not None:
        begin = 0.0 if chosen.is_ready else handed - batch.load
        ahead = ", ready ahead" if chosen.is_ready else ""
        rows.append(("load", ahead, begin, _making(batch)))
    rows.append(("stall", "", handed - batch.wait, [(batch.wait, "stall", "stall")]))
    rows.append(("step", "", handed, [(step, "work", "step")]))
    marks: list[Html] = []
    pitch, thick = 40.0, 18.0
    scale = [v for v in ticks(span, 6) if v <= span]
    bottom = pitch * len(rows)
    for v in scale:
        marks.append(line(v / span, v / span, 0, bottom, "grid"))
        anchor = "start" if not v else "end" if v > 0.93 * span else "middle"
        marks.append(text(v / span, bottom + 14, duration(v) if v else "0", anchor=anchor))
    told = []
    for i, (label, ahead, begin, parts) in enumerate(rows):
        x, y = begin / span, i * pitch + 16
        whole = sum(seconds for seconds, _, _ in parts)
        shown = f"{label} {duration(whole)}{ahead}"
        inside = ", ".join(f"{words} {duration(s)}" for s, _, words in parts)
        told.append(f"{shown} ({inside})" if len(parts) > 1 else shown)
        at, anchor = (x, "start") if x < 0.55 else (min(x + whole / span, 1.0), "end")
        marks.append(text(at, y - 4, shown, anchor=anchor, colour="label dark"))
        for seconds, colour, words in parts:
            keys[colour] = words
            tip = f"{words} {duration(seconds)}"
            marks.append(box(x, max(seconds / span, 0.002), y, thick, colour, tip))
            x += seconds / span
    heading = f"{title}: batch {count(batch.number)}"
    return element(
        "figure",
        element("p", element("strong", heading), unbroken(f" {', '.join(told)}"), class_="track"),
        chart(name, heading, ", ".join(told) + ".", bottom + 18, marks),
    )


def _making(batch: ProfiledBatch) -> list[tuple[float, str, str]]:
    load = batch.load or 0.0
    blocked = min(batch.blocked or 0.0, load)
    collate = min(batch.collate or 0.0, load - blocked)
    running = "running" if batch.blocked is not None else "making"
    parts = [
        (blocked, "blocked", "blocked"),
        (load - blocked - collate, "run", running),
        (collate, "collate", "collate"),
    ]
    return [part for part in parts if part[0] > 0]
