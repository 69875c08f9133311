"""A diagnosis: questions about a loader in the order an engineer asks them, each with an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from brimful.wording import filled

AREAS = (
    "effective tokens",
    "data",
    "sampler",
    "batch structure",
    "data path",
    "checkpoint",
    "system",
)
Status = Literal["ok", "look here", "not measured"]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One question.

    Attributes:
        area: one of `AREAS`.
        question: what was asked.
        status: whether the answer is as it should be.
        figure: the measurement, in words; where there is none, why not.
        advice: what to do; empty where nothing is.
    """

    area: str
    question: str
    status: Status
    figure: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All lines, in the order of `AREAS`. `str()` of it is a text for the terminal."""

    lines: tuple[Line, ...]

    @property
    def look_here(self) -> tuple[Line, ...]:
        """The lines whose answers are not as they should be."""
        return tuple(line for line in self.lines if line.status == "look here")

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, for JSON."""
        return {"lines": [dataclasses.asdict(line) for line in self.lines]}

    def __str__(self) -> str:
        status = max((len(line.status) for line in self.lines), default=0)
        text, area = [], ""
        for line in self.lines:
            if line.area != area:
                text.append(line.area)
                area = line.area
            answer = f"  {line.status:{status}}  {line.question} {line.figure}"
            text.append(filled(answer, status + 4))
            if line.advice:
                text.append(filled(f"  {'':{status}}  -> {line.advice}", status + 7))
        return "\n".join(text)


class Answers:
    """Collects the lines of one area."""

    def __init__(self, area: str) -> None:
        self.area = area
        self.lines: list[Line] = []

    def add(self, question: str, good: bool, figure: str, advice: str = "") -> None:
        """An answer; `advice` is left out where it is good."""
        self._add(question, "ok" if good else "look here", figure, "" if good else advice)

    def missing(self, question: str, why: str, advice: str = "") -> None:
        """No answer, and why."""
        self._add(question, "not measured", why, advice)

    def _add(self, question: str, status: Status, figure: str, advice: str) -> None:
        line = Line(area=self.area, question=question, status=status, figure=figure, advice=advice)
        self.lines.append(line)


def joined(answers: Iterable[Answers]) -> Diagnosis:
    """The diagnosis that these make."""
    return Diagnosis(lines=tuple(line for area in answers for line in area.lines))
