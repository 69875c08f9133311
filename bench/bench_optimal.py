"""How near to its proved bound strategy "optimal" comes, and in what time, on narrow and wide sets.

    python -m pytest bench/bench_optimal.py --benchmark-columns=median,rounds

Bins, the bound and their ratio are in --benchmark-json, and are printed with -s.
"""

from typing import Any

import pytest

import brimful as bf
from length_sets import LengthSet, narrow_sets, wide_sets

SETS: dict[str, LengthSet] = {**narrow_sets(200_000), "wiki": wide_sets(1_000_000)["wiki"]}


@pytest.mark.parametrize("time_limit", [1, 10])
@pytest.mark.parametrize("name", SETS)
def test_optimal(benchmark: Any, name: str, time_limit: int) -> None:
    lengths, capacity = SETS[name]
    benchmark.group = f"optimal, time_limit={time_limit}"
    plan = benchmark.pedantic(
        bf.pack,
        (lengths, capacity),
        {"strategy": "optimal", "time_limit": time_limit},
        rounds=1,
    )
    best_fit = bf.pack(lengths, capacity)
    benchmark.extra_info.update(
        bins=plan.num_bins,
        lower_bound=plan.lower_bound,
        bins_over_lower_bound=plan.num_bins / plan.lower_bound,
        best_fit_decreasing=best_fit.num_bins,
    )
    print(
        f"\n{name:12} time_limit {time_limit:2}  bins {plan.num_bins:7,}  "
        f"bound {plan.lower_bound:7,}  ratio {plan.num_bins / plan.lower_bound:.5f}  "
        f"best_fit_decreasing {best_fit.num_bins / plan.lower_bound:.5f}"
    )
