"""Balance: deals finished bins to steps, ranks and micro-batches so that work is even.

Attention costs the square of a document's length, so bins that hold equally many tokens can cost
very different time, and a step lasts as long as its slowest rank. Whole bins are dealt, so the
packing, its utilization and its capacity stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from brimful._core import PlanError
from brimful.config import whole_number
from brimful.pack_plan import PackPlan
from brimful.wording import counted

_MOST_FACTOR = 1e200  # so that costs and their sums stay finite

Cost: TypeAlias = Literal["attention"] | tuple[float, float]


@dataclass(frozen=True, eq=False)
class Balance:
    """Which bin each rank works on in each micro-batch of each step."""

    bins: npt.NDArray[np.int64]  # [steps, world_size, micro_batches]; -1: none
    imbalance: float | None  # mean over complete steps of max/mean of rank cost; None without any
    window: int  # steps; no bin leaves the window of steps that it would be in undealt

    def __repr__(self) -> str:
        steps, ranks, rounds = self.bins.shape
        even = "none" if self.imbalance is None else f"{self.imbalance:.3f}"
        return (
            f"<brimful.Balance: {counted(steps, 'step')} x {counted(ranks, 'rank')} x "
            f"{counted(rounds, 'micro-batch', 'micro-batches')}, imbalance {even}, "
            f"window {self.window}>"
        )


def balance(
    plan: PackPlan,
    *,
    world_size: int,
    micro_batches: int = 1,
    cost: Cost = "attention",
    window: int = 64,
) -> Balance:
    """Deals the bins of a plan to ranks so that every rank has about the same work in a step.

    Args:
        plan: what ``pack`` returned.
        world_size: ranks that work side by side.
        micro_batches: bins of a rank in a step, one after the other.
        cost: of a bin: ``"attention"``, the sum of the squared lengths of its pieces, or
            ``(a, b)`` for the sum of ``a * length + b * length**2``. A rank's cost in a step is
            summed over its micro-batches.
        window: steps within which bins change places. Bins are dealt in the order of the plan
            otherwise: bin b is in one of the ``window`` steps that bin b would be in if nothing
            were moved, and so are its neighbours. More steps are more even.

    Returns:
        A Balance. Every bin of the plan is in ``bins`` once. Where bins do not fill the last step
        its other places are -1; it stays out of ``imbalance``. Costs O(bins log bins) time.

    Raises:
        PlanError: counts below 1, more than 2**31 bins a step, or a cost that is neither.
        TypeError: a plan that is none.

    Source: sorting before dealing, as the longest-processing-time rule does (Graham, "Bounds on
    multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969): bins of a window are sorted by
    cost, consecutive ones are a step, and in it the next costliest go to the ranks with the least.
    """
    if not isinstance(plan, PackPlan):
        raise TypeError(f"plan is a {type(plan).__name__}; what bf.pack returned is expected")
    ranks = _at_least_one("world_size", world_size)
    rounds = _at_least_one("micro_batches", micro_batches)
    window = _at_least_one("window", window)
    costs = bin_costs(plan, cost)
    per_step = ranks * rounds
    if per_step > 2**31:
        raise PlanError(
            f"a step of world_size x micro_batches = {ranks} x {rounds} bins is more than 2^31"
        )
    per_window = min(window, -(-len(costs) // per_step)) * per_step
    if not len(costs):
        return Balance(np.empty((0, ranks, rounds), np.int64), None, window)

    whole = len(costs) // per_window
    first = np.arange(whole * per_window).reshape(whole, per_window)
    steps = [_even_steps(costs, first, per_step)]
    rest = np.arange(whole * per_window, len(costs))
    # The cheapest bins of the last window are left for the step that is not complete, where ranks
    # without a bin wait for the others.
    order = rest[np.argsort(-costs[rest], kind="stable")]
    complete = len(rest) // per_step * per_step
    steps.append(_even_steps(costs, np.sort(order[:complete])[None], per_step))
    if complete < len(rest):
        last = np.full((1, per_step), -1)
        last[0, : len(rest) - complete] = order[complete:]
        steps.append(last)

    bins = _deal(costs, np.concatenate(steps).reshape(-1, rounds, ranks))
    loads = np.where(bins < 0, 0, costs[bins]).sum(axis=2)
    return Balance(bins, mean_imbalance(loads[: len(costs) // per_step]), window)


def bin_costs(plan: PackPlan, cost: Cost = "attention") -> npt.NDArray[np.float64]:
    """The cost of each bin, float64 [bins], as ``balance`` counts it. Raises PlanError."""
    squares = _sums(plan, plan.lengths.astype(np.int64) ** 2)
    if isinstance(cost, str):
        if cost != "attention":
            raise PlanError(f'cost is {cost!r}; choose "attention" or a pair of numbers (a, b)')
        return squares
    try:
        a, b = (float(factor) for factor in cost)
    except (TypeError, ValueError):
        raise PlanError(
            f'cost is {cost!r}; choose "attention" or a pair of numbers (a, b) for '
            f"a * length + b * length**2"
        ) from None
    if not (0 <= a <= _MOST_FACTOR and 0 <= b <= _MOST_FACTOR and max(a, b) > 0):
        raise PlanError(
            f"cost is {cost!r}; both factors must be from 0 to {_MOST_FACTOR:g}, and one above 0"
        )
    return a * _sums(plan, plan.lengths) + b * squares


def mean_imbalance(loads: npt.NDArray[np.float64]) -> float | None:
    """Mean over steps of max / mean of the ranks' cost. loads: [steps, ranks].

    Steps of empty bins alone cost nothing and do not count.
    """
    loads = loads[loads.any(axis=1)]
    return float((loads.max(axis=1) / loads.mean(axis=1)).mean()) if len(loads) else None


def _sums(plan: PackPlan, values: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Sums of `values` [pieces] over each bin; a bin may be empty."""
    # Where the running sum overflows it wraps around, and the differences come out right.
    running = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    return np.diff(running[plan.bin_offsets]).astype(np.float64)


def _even_steps(
    costs: npt.NDArray[np.float64], windows: npt.NDArray[np.int64], per_step: int
) -> npt.NDArray[np.int64]:
    """Steps of bins of like cost [steps, per_step], costliest first, from windows of bins.

    Within a window [windows, bins] steps come in the order of their earliest bin.
    """
    order = np.argsort(-costs[windows], axis=1, kind="stable")
    count, size = windows.shape
    steps = np.take_along_axis(windows, order, axis=1).reshape(count, size // per_step, per_step)
    turn = np.argsort(steps.min(axis=2), axis=1)
    return np.take_along_axis(steps, turn[:, :, None], axis=1).reshape(-1, per_step)


def _deal(costs: npt.NDArray[np.float64], steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bins of each rank [steps, ranks, rounds] from steps [steps, rounds, ranks], costliest first.

    In each round the next costliest bin goes to the rank with the least cost so far.
    """
    count, rounds, ranks = steps.shape
    dealt = np.empty((count, ranks, rounds), np.int64)
    loads = np.zeros((count, ranks))
    for m in range(rounds):
        bins = np.empty((count, ranks), np.int64)
        np.put_along_axis(bins, np.argsort(loads, axis=1, kind="stable"), steps[:, m], axis=1)
        loads += np.where(bins < 0, 0, costs[bins])
        dealt[:, :, m] = bins
    return dealt


def _at_least_one(name: str, value: object) -> int:
    number = whole_number(name, value)
    if number < 1:
        raise PlanError(f"{name} is {number}; it must be at least 1")
    return number
