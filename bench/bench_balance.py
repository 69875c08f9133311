"""How even attention work gets when finished bins are dealt to ranks, and what dealing costs.

    python -m pytest bench/bench_balance.py

Below pytest-benchmark's own figures stands a table: the mean over steps of what the costliest rank
has to do over what ranks have on average, dealt at random and by brimful.balance, one bin a rank
and step. The bins are the same, so utilization is too.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

import brimful as bf
from brimful.balance import bin_costs, mean_imbalance
from length_sets import LengthSet, long_set, narrow_sets, wide_sets

RANKS = (8, 64)


@cache
def plan_of(name: str, strategy: Any) -> bf.PackPlan:
    sets: dict[str, LengthSet] = {
        **wide_sets(1_000_000),
        **narrow_sets(200_000),
        "long": long_set(300_000),
    }
    lengths, capacity = sets[name]
    return bf.pack(lengths, capacity, strategy=strategy)


def at_random(plan: bf.PackPlan, ranks: int) -> float | None:
    costs = np.random.default_rng(0).permutation(bin_costs(plan))
    return mean_imbalance(costs[: len(costs) // ranks * ranks].reshape(-1, ranks))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("strategy", ["streaming", "best_fit_decreasing"])
@pytest.mark.parametrize(
    "name", ["pretrain", "sft", "wiki", "image1024", "rollouts", "pairs", "long"]
)
def test_balance(benchmark: Any, name: str, strategy: Any, ranks: int) -> None:
    plan = plan_of(name, strategy)
    benchmark.group = f"balance {name}"
    dealt = benchmark.pedantic(bf.balance, (plan,), {"world_size": ranks}, rounds=3)
    benchmark.extra_info.update(
        bins=plan.num_bins, random=at_random(plan, ranks), imbalance=dealt.imbalance
    )
