"""Profiles of all ranks side by side: who is slow, why, and how far ranks drift apart."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from brimful.extras import require
from brimful.profiling.figures import Profile
from brimful.profiling.losses import pace
from brimful.wording import counted, duration, percent

# Of the mean time of a batch; below, ranks count as even.
_DRIFT = 0.05
_WORK = 0.05


@dataclass(frozen=True, kw_only=True)
class RankFigures:
    """Means of one rank's batches, first batches left out; None where not measured.

    Attributes:
        batches: how many the rank was given, first ones with them.
        wait, step: seconds in `next()`, and between two calls of it.
        load, blocked: seconds that making one took, and the part of it that storage was waited for.
        starved: seconds that the device waited for one.
        first_batch: seconds from `iter()` to the first batch, over all passes.
        slots, tokens, attention_work: held by a batch.
    """

    rank: int
    batches: int
    wait: float
    step: float
    load: float | None
    blocked: float | None
    starved: float | None
    first_batch: float
    slots: float | None
    tokens: float | None
    attention_work: float | None

    @property
    def total(self) -> float:
        """Seconds from one batch to the next."""
        return self.wait + self.step


@dataclass(frozen=True, kw_only=True)
class RankReport:
    """What the ranks of a job measured, in their order. `str()` of it is a table for people.

    Ranks that train together wait for each other inside of their steps, so that their totals are
    alike and the one that all wait for is the one that waits most for its own data; where none
    does, the one with most work in its batches; where they do not wait for each other, the one that
    takes longest.
    """

    ranks: tuple[RankFigures, ...]

    @property
    def stall_spread(self) -> float:
        """Longest less shortest mean wait, as a share of a batch's mean time."""
        return self._spread([rank.wait for rank in self.ranks])

    @property
    def step_spread(self) -> float:
        """The same of the time from one batch to the next."""
        return self._spread([rank.total for rank in self.ranks])

    @property
    def work_spread(self) -> float | None:
        """Most less least attention work of a batch, as a share of the mean; None: not known."""
        work = [rank.attention_work for rank in self.ranks if rank.attention_work is not None]
        if len(work) < len(self.ranks) or not fmean(work):
            return None
        return (max(work) - min(work)) / fmean(work)

    @property
    def drifts(self) -> bool:
        """Whether ranks are apart in any of these by more than 5 %."""
        return self._reason() != "even"

    @property
    def slowest(self) -> int | None:
        """The rank that others wait for, or that is behind; None where ranks are even."""
        key = {
            "stall": lambda rank: rank.wait,
            "step": lambda rank: rank.total,
            "work": lambda rank: rank.attention_work or 0.0,
        }.get(self._reason())
        return None if key is None else max(self.ranks, key=key).rank

    @property
    def advice(self) -> str:
        """What to do about it; empty where ranks are even."""
        return {
            "stall": "See the verdict of that rank's profile: its disk or threads are slower.",
            "work": 'balance="attention" gives the ranks of a step bins of like work.',
            "step": "Its data is there as soon as that of others: look at its device and its host.",
            "even": "",
        }[self._reason()]

    def summary(self) -> str:
        """One sentence: who is slow and why, with the figures."""
        many = counted(len(self.ranks), "rank")
        reason, slowest = self._reason(), self.slowest
        if slowest is None:
            return f"{many} keep one pace, within {percent(_DRIFT)} of a batch's time"
        rank = self.ranks[slowest]
        others = [other for other in self.ranks if other is not rank]
        if reason == "stall":
            wait = duration(fmean(other.wait for other in others))
            return (
                f"of {many} rank {slowest} is slowest: it waits {duration(rank.wait)} for a batch, "
                f"others {wait}{_why(rank, others)}"
            )
        if reason == "step":
            return (
                f"of {many} rank {slowest} is slowest: a batch takes it {duration(rank.total)}, "
                f"others {duration(fmean(other.total for other in others))}"
            )
        return (
            f"of {many} rank {slowest} has most to do: {percent(self.work_spread)} lie between the "
            f"most and the least attention work of a batch"
        )

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, for JSON."""
        return {
            **dataclasses.asdict(self),
            "stall_spread": self.stall_spread,
            "step_spread": self.step_spread,
            "work_spread": self.work_spread,
            "slowest": self.slowest,
        }

    def __str__(self) -> str:
        head = ("rank", "batches", "wait", "step", "load", "blocked", "starved", "tokens")
        rows: list[tuple[str, ...]] = [head]
        for rank in self.ranks:
            times = (rank.wait, rank.step, rank.load, rank.blocked, rank.starved)
            rows.append(
                (
                    str(rank.rank),
                    f"{rank.batches:,}",
                    *("-" if time is None else duration(time) for time in times),
                    "-" if rank.tokens is None else f"{rank.tokens:,.0f}",
                )
            )
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, wide)) for row in rows]
        return "\n".join([*lines, self.summary()])

    def _spread(self, values: list[float]) -> float:
        mean = fmean(rank.total for rank in self.ranks)
        return (max(values) - min(values)) / mean if mean else 0.0

    def _reason(self) -> str:
        apart = self.step_spread
        if self.stall_spread > max(_DRIFT, apart / 2):  # where ranks wait for each other, all of it
            return "stall"
        if apart > _DRIFT:
            return "step"
        return "work" if (self.work_spread or 0.0) > _WORK else "even"


def _why(rank: RankFigures, others: list[RankFigures]) -> str:
    """What making its batches costs beside those of others, where it was measured."""
    loads = [other.load for other in others if other.load is not None]
    if rank.load is None or not loads:
        return ""
    text = f"; to make one takes {duration(rank.load)} there, {duration(fmean(loads))} elsewhere"
    if rank.blocked is not None and rank.load:
        text += f", {100 * rank.blocked / rank.load:.0f} % of it waiting for storage"
    return text


_FIELDS = tuple(field.name for field in dataclasses.fields(RankFigures))


def rank_figures(profile: Profile, rank: int) -> RankFigures:
    """The figures of one rank's profile."""
    means, stats = pace(profile), profile.stats

    def each(number: int | None) -> float | None:
        return None if number is None or not stats.batches else number / stats.batches

    return RankFigures(
        rank=rank,
        batches=stats.batches,
        wait=means.wait,
        step=means.step,
        load=means.load,
        blocked=means.blocked,
        starved=means.starved,
        first_batch=stats.first_batch_seconds,
        slots=each(stats.slots),
        tokens=each(stats.tokens),
        attention_work=each(stats.attention_work),
    )


def gather(profile: Profile, group: Any = None) -> RankReport:
    """The profiles of all ranks of a process group. All of them call it; each gets the report.

    Numbers go by `all_gather` of one small float64 tensor, on the device that the group's backend
    takes. Without a process group the report has one rank, this one.

    Args:
        group: a process group of torch.distributed; None is all ranks.

    Raises:
        ModuleNotFoundError: torch is not installed.
    """
    torch = require("torch", "torch", "gathering profiles of ranks")
    dist = torch.distributed
    if not (dist.is_available() and dist.is_initialized()):
        return RankReport(ranks=(rank_figures(profile, 0),))
    mine = rank_figures(profile, dist.get_rank(group))
    numbers = [math.nan if value is None else value for value in dataclasses.astuple(mine)]
    on_cuda = "nccl" in str(dist.get_backend(group))
    device = torch.device("cuda", torch.cuda.current_device()) if on_cuda else "cpu"
    sent = torch.tensor(numbers, dtype=torch.float64, device=device)
    received = [torch.empty_like(sent) for _ in range(dist.get_world_size(group))]
    dist.all_gather(received, sent, group=group)
    return RankReport(ranks=tuple(_figures(row.tolist()) for row in received))


def _figures(numbers: list[float]) -> RankFigures:
    values: dict[str, Any] = dict(zip(_FIELDS, numbers, strict=True))
    values = {name: None if math.isnan(value) else value for name, value in values.items()}
    return RankFigures(**values | {name: int(values[name]) for name in ("rank", "batches")})
