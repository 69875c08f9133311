"""All ways to lay documents into rows on real lengths, for `brimful pack` and the demo."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt

import brimful as bf
from brimful.balance import bin_costs, mean_imbalance
from brimful.config import LoaderConfig
from brimful.packing import Overlong, Strategy

# The loader's default first, plain padding last.
STRATEGIES: tuple[Strategy, ...] = tuple(
    sorted(get_args(Strategy), key=lambda name: (name == "pad", name != "streaming"))
)
T = TypeVar("T")
BUCKET = "bucket"  # padded too, in batches of documents of like length


@dataclass(frozen=True)
class Ranks:
    """Who shares a step: `batch_size` rows on each of `world_size` ranks."""

    world_size: int = 8
    batch_size: int = 8

    @property
    def rows(self) -> int:
        return self.world_size * self.batch_size


@dataclass(frozen=True)
class Comparison:
    """One way to lay documents into rows. Times in seconds, everything else a count."""

    strategy: str
    bins: int
    utilization: float | None
    over_lower_bound: float | None
    split_documents: int
    truncated_documents: int
    dropped_documents: int
    lost_tokens: int
    seconds: float
    imbalance: float | None  # mean over steps: attention of the costliest rank over the mean rank's
    balanced_imbalance: float | None  # after bf.balance
    plan: bf.PackPlan

    @property
    def cut_documents(self) -> int:
        """Documents that no row holds whole, though something of them is there."""
        return self.split_documents + self.truncated_documents

    def as_dict(self) -> dict[str, Any]:
        """All but the plan, for JSON."""
        return {name: value for name, value in self.__dict__.items() if name != "plan"}


@dataclass(frozen=True)
class LeftOut:
    """A strategy that could not run, and why."""

    strategy: str
    reason: str


def compare(
    lengths: npt.NDArray[np.int64],
    seq_len: int,
    *,
    overlong: str = "split",
    ranks: Ranks | None = None,
    needed: str | None = None,
) -> tuple[list[Comparison], list[LeftOut]]:
    """Every strategy on lengths [documents], and those that lack a package. A time is the quickest
    of three runs, or the first where one takes a second.

    Raises:
        ModuleNotFoundError: the strategy that is `needed` lacks one.
    """
    ranks = ranks or Ranks()
    done: list[Comparison] = []
    left_out: list[LeftOut] = []
    for strategy in STRATEGIES:
        try:
            done.append(_compare_one(lengths, seq_len, strategy, overlong, ranks))
        except ModuleNotFoundError as error:
            if strategy == needed:
                raise
            left_out.append(LeftOut(strategy, str(error)))
    # All but "concat" place the same pieces, so the best of their bounds holds for each of them.
    bound = max(c.plan.lower_bound for c in done if c.strategy != "concat")
    done = [
        replace(c, over_lower_bound=c.bins / bound, plan=replace(c.plan, lower_bound=bound))
        if bound and c.strategy != "concat"
        else c
        for c in done
    ]
    done.append(_bucketed(done[-1], ranks))
    return done, left_out


def _compare_one(
    lengths: npt.NDArray[np.int64], seq_len: int, strategy: Strategy, overlong: str, ranks: Ranks
) -> Comparison:
    plan, seconds = _timed(
        lambda: bf.pack(lengths, seq_len, strategy=strategy, overlong=cast(Overlong, overlong))
    )
    balanced = bf.balance(plan, world_size=ranks.world_size, micro_batches=ranks.batch_size)
    return Comparison(
        strategy,
        plan.num_bins,
        plan.utilization,
        plan.num_bins / plan.lower_bound if plan.lower_bound else None,
        plan.split_documents,
        plan.truncated_documents,
        plan.dropped_documents,
        plan.dropped_tokens,
        seconds,
        _imbalance(bin_costs(plan)[_by_earliest_document(plan)], ranks),
        balanced.imbalance,
        plan,
    )


def _bucketed(pad: Comparison, ranks: Ranks) -> Comparison:
    """The rows of plain padding, sorted by length in windows of rows, in batches that are as
    wide as their longest row.
    """
    rows, window = pad.plan.lengths, LoaderConfig.window

    def by_length() -> npt.NDArray[np.int64]:
        order = np.empty(len(rows), np.int64)
        for first in range(0, len(rows), window):
            part = rows[first : first + window]
            order[first : first + window] = first + np.argsort(-part, kind="stable")
        return order

    order, seconds = _timed(by_length)
    heads = np.arange(0, len(rows), ranks.batch_size)
    if len(rows):
        widths = np.maximum.reduceat(rows[order], heads)
        slots = int(widths @ np.diff(heads, append=len(rows)))
        imbalance = _imbalance(bin_costs(pad.plan)[order], ranks)
        utilization = pad.plan.num_tokens / slots
    else:
        imbalance = utilization = None
    return replace(
        pad,
        strategy=BUCKET,
        utilization=utilization,
        seconds=pad.seconds + seconds,
        imbalance=imbalance,
    )


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and the seconds of the quickest of three runs; of one that takes a second."""
    quickest = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        result = work()
        quickest = min(quickest, time.perf_counter() - began)
        if quickest > 1:
            break
    return result, quickest


def _by_earliest_document(plan: bf.PackPlan) -> npt.NDArray[np.int64]:
    """Bins in the order in which the loader delivers them without shuffling."""
    held = np.diff(plan.bin_offsets) > 0
    earliest = np.full(plan.num_bins, np.iinfo(np.int64).max)
    if held.any():
        earliest[held] = np.minimum.reduceat(plan.documents, plan.bin_offsets[:-1][held])
    return np.argsort(earliest, kind="stable")


def _imbalance(costs: npt.NDArray[np.float64], ranks: Ranks) -> float | None:
    """Of bins [bins] that are dealt to ranks in this order; None where none fills a step."""
    steps = len(costs) // ranks.rows
    dealt = costs[: steps * ranks.rows].reshape(steps, ranks.batch_size, ranks.world_size)
    return mean_imbalance(dealt.sum(axis=1))
