"""How near to its proved bound strategy "optimal" comes, and in what time, on narrow and wide sets.

    python -m pytest bench/bench_optimal.py

Below pytest-benchmark's own figures stand bins, the bound and their ratio.
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
    benchmark.extra_info.update(
        bins=plan.num_bins,
        lower_bound=plan.lower_bound,
        bins_over_lower_bound=plan.num_bins / plan.lower_bound,
        best_fit_over_lower_bound=bf.pack(lengths, capacity).num_bins / plan.lower_bound,
    )
