"""What was asked of the loader beside the profile: its diagnosis, and the ranks of the job."""

from __future__ import annotations

from itertools import groupby

from brimful.profiling.diagnosis import Diagnosis
from brimful.profiling.ranks import RankFigures, RankReport
from brimful.profiling.report.elements import (
    Bar,
    Html,
    bar_list,
    element,
    joined,
    legend,
    section,
    unbroken,
)
from brimful.wording import brief, counted, duration

_MOST_RANKS = 16
_STATUS = {"ok": "ok", "look here": "look", "not measured": "unknown"}


def diagnosis_lines(diagnosis: Diagnosis | None) -> Html:
    """Questions by area in the order an engineer asks them, each with its answer."""
    if diagnosis is None or not diagnosis.lines:
        return Html("")
    areas = []
    for area, lines in groupby(diagnosis.lines, key=lambda line: line.area):
        answers = [
            element(
                "li",
                element("span", line.status, class_=f"status {_STATUS[line.status]}"),
                element(
                    "div",
                    element("p", line.question, class_="question"),
                    element("p", unbroken(line.figure), class_="figure"),
                    *(
                        [element("p", unbroken(line.advice), class_="advice")]
                        if line.advice
                        else []
                    ),
                ),
            )
            for line in lines
        ]
        areas.append(joined(element("h3", area), element("ul", *answers, class_="answers")))
    found = len(diagnosis.look_here)
    lead = f"{counted(len(diagnosis.lines), 'question')}, in the order an engineer asks them: "
    lead += f"{counted(found, 'answer')} to look at." if found else "no answer to look at."
    columns = element("div", *(element("div", area) for area in areas), class_="areas")
    return section("Diagnosis", lead, columns)


def ranks_side_by_side(report: RankReport | None) -> Html:
    """A bar of wait and step for each rank; nothing for one alone."""
    if report is None or len(report.ranks) < 2:
        return Html("")
    slowest_first = sorted(
        report.ranks, key=lambda rank: (rank.rank != report.slowest, -rank.total)
    )
    shown = sorted(slowest_first[:_MOST_RANKS], key=lambda rank: rank.rank)
    scale = max(rank.total for rank in report.ranks) or 1.0
    bars = [
        Bar(
            f"rank {rank.rank}",
            duration(rank.total),
            [(rank.wait / scale, "stall", "wait"), (rank.step / scale, "work", "step")],
            _note(rank),
            strong=rank.rank == report.slowest,
        )
        for rank in shown
    ]
    summary = report.summary()
    lead = f"{summary[:1].upper()}{summary[1:]}."
    if len(shown) < len(report.ranks):
        lead += f" Shown are the {len(shown)} that take longest."
    advice = element("p", report.advice, class_="advice")
    return section(
        "Ranks",
        lead,
        bar_list(bars),
        legend([("stall", "wait for a batch, mean"), ("work", "step, mean")]),
        *([advice] if report.advice else []),
    )


def _note(rank: RankFigures) -> str:
    told = [f"waits {duration(rank.wait)}"]
    if rank.load is not None:
        told.append(f"load {duration(rank.load)}")
    if rank.starved is not None:
        told.append(f"starved {duration(rank.starved)}")
    if rank.tokens is not None:
        told.append(f"{brief(rank.tokens)} tokens a batch")
    return ", ".join(told)
