"""What stood out beside a step: each figure of it and of the steps just before, against what was
usual until then.

The score is a robust z-score: distance from the median in deviations, where a deviation is 1.4826
times the median absolute one, which is the standard deviation for normal figures and takes no
notice of a few odd ones. It has a floor for each kind of figure, so that a stall of 20 microseconds
among none does not stand out. Scores say what coincides, not what caused what; of 20 figures at 4
steps one passes 3 by chance every fifth time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from brimful.wording import counted

STANDS_OUT = 3.0
_FEWEST = 8  # steps that can say what is usual
_DEVIATION = 1.4826  # of a normal figure, in median absolute deviations


@dataclass(frozen=True)
class Series:
    """One figure over the steps that are looked at; None where it was not measured.

    Attributes:
        name: of the figure.
        values: the steps that say what is usual, and then those that are looked at.
        floor: the smallest deviation that means anything: a number, or a share of the median.
        relative: whether it is the share.
    """

    name: str
    values: Sequence[float | None]
    floor: float
    relative: bool = False


@dataclass(frozen=True)
class Change:
    """How one figure stood at the step where it was furthest from usual.

    Attributes:
        name: of the figure.
        step: where.
        value: there.
        usual: median of the steps before.
        score: (value - usual) in robust deviations; infinite for a value that is no number.
    """

    name: str
    step: int
    value: float
    usual: float
    score: float

    def __str__(self) -> str:
        return (
            f"{self.name} {self.value:.4g} at step {self.step}, usually {self.usual:.4g} "
            f"(score {self.score:+.1f})"
        )


@dataclass(frozen=True)
class Beside:
    """What `Timeline.beside` found.

    Attributes:
        step: the step that was asked for.
        steps: those that were looked at.
        usual: how many steps before these said what is usual.
        changes: every figure that was measured, furthest from usual first.
    """

    step: int
    steps: tuple[int, ...]
    usual: int
    changes: tuple[Change, ...]

    @property
    def standing_out(self) -> tuple[Change, ...]:
        """The changes whose score is 3 or more, up or down."""
        return tuple(change for change in self.changes if abs(change.score) >= STANDS_OUT)

    def __str__(self) -> str:
        out = self.standing_out
        what = "nothing stands out" if not out else f"{len(out)} stand out"
        head = (
            f"step {self.step}: of {counted(len(self.changes), 'figure')} {what} "
            f"against {counted(self.usual, 'step')} before"
        )
        return "\n".join([head, *(f"  {change}" for change in out)])


def changes(series: Sequence[Series], steps: Sequence[int]) -> tuple[Change, ...]:
    """Of each series that says something, the value furthest from usual among the last `steps`."""
    found = []
    for one in series:
        before, looked_at = one.values[: -len(steps)], one.values[-len(steps) :]
        scored = [
            Change(one.name, step, value, *score)
            for step, value in zip(steps, looked_at, strict=True)
            if value is not None and (score := score_of(value, before, one.floor, one.relative))
        ]
        if scored:
            found.append(max(scored, key=lambda change: abs(change.score)))
    return tuple(sorted(found, key=lambda change: -abs(change.score)))


def score_of(
    value: float, before: Sequence[float | None], floor: float, relative: bool = False
) -> tuple[float, float] | None:
    """What is usual, and the score; None where fewer than eight values before say it."""
    known = [x for x in before if x is not None and math.isfinite(x)]
    if len(known) < _FEWEST:
        return None
    usual = median(known)
    if not math.isfinite(value):
        return usual, -math.inf if value < 0 else math.inf
    least = floor * abs(usual) if relative else floor
    deviation = max(_DEVIATION * median(abs(x - usual) for x in known), least)
    if deviation == 0:
        return usual, 0.0 if value == usual else math.copysign(math.inf, value - usual)
    return usual, (value - usual) / deviation
