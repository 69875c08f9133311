"""The time that packing takes, brimful's strategies beside other packers in one run.

    pip install -r bench/rivals/packing/requirements.txt
    python -m pytest bench/bench_packing.py --benchmark-columns=median,min,rounds

The columns beyond time are in --benchmark-json: utilization and bins over the lower bound.
"""

from functools import cache
from typing import Any

import pytest

import brimful as bf
from length_sets import LengthSet, wide_sets
from rivals.packing import rivals
from rivals.packing.rival import Rival

SIZES = (100_000, 1_000_000)
STRATEGIES = ("concat", "first_fit_decreasing", "best_fit_decreasing", "best_fit", "streaming")

make_sets = cache(wide_sets)


# `code` has as many documents as the machine, so it is there once.
CASES = [(name, n) for n in SIZES for name in make_sets(n) if name != "code" or n == SIZES[0]]


def record(benchmark: Any, length_set: LengthSet, bins: int) -> None:
    lengths, capacity = length_set
    # Of whole documents: who cuts them, as concat does, may need fewer bins than that.
    bound = bf.pack(lengths, capacity).lower_bound
    benchmark.extra_info.update(
        documents=len(lengths),
        capacity=capacity,
        bins=bins,
        utilization=int(lengths.sum()) / (bins * capacity),
        bins_over_lower_bound=bins / bound,
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("name", "n"), CASES)
def test_pack(benchmark: Any, name: str, n: int, strategy: Any) -> None:
    lengths, capacity = make_sets(n)[name]
    benchmark.group = f"pack {name} {n:,}"
    plan = benchmark.pedantic(
        bf.pack, (lengths, capacity), {"strategy": strategy}, rounds=9, warmup_rounds=1
    )
    record(benchmark, (lengths, capacity), plan.num_bins)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("rival", "name", "n"),
    [
        pytest.param(rival, name, n, id=f"{rival.name}-{name}-{n}")
        for rival in rivals()
        for name, n in CASES
        if n <= rival.most_documents
    ],
)
def test_rival(benchmark: Any, rival: Rival, name: str, n: int) -> None:
    lengths, capacity = make_sets(n)[name]
    benchmark.group = f"pack {name} {n:,}"
    given = rival.prepare(lengths, capacity)
    packed = benchmark.pedantic(rival.pack, (given, capacity), rounds=3)
    record(benchmark, (lengths, capacity), rival.count_bins(packed))
