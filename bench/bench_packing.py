"""The time that packing takes, brimful's strategies beside other packers in one run.

    pip install -r bench/rivals/packing/requirements.txt
    python -m pytest bench/bench_packing.py

Below pytest-benchmark's own figures stands a table of each set: median time and its ratio to
brimful's best_fit_decreasing, utilization, bins over the lower bound, and the most memory that one
more call took. Lengths go in as each packer likes them best; that conversion is not timed.
"""

import ctypes
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import brimful as bf
from length_sets import LengthSet, long_set, narrow_sets, wide_sets
from rivals.packing import rivals
from rivals.packing.rival import Rival

STRATEGIES = ("concat", "first_fit_decreasing", "best_fit_decreasing", "best_fit", "streaming")


@cache
def length_set(name: str, n: int) -> LengthSet:
    if name == "long":
        return long_set(n)
    return {**wide_sets(n), **narrow_sets(n)}[name]


# `code` has as many documents as the machine, so it is there once.
CASES = [
    ("pretrain", 100_000),
    ("pretrain", 1_000_000),
    ("pretrain", 10_000_000),
    ("sft", 100_000),
    ("sft", 1_000_000),
    ("code", 0),
    ("wiki", 1_000_000),
    *((name, 200_000) for name in narrow_sets(0)),
    ("long", 300_000),
]


def peak_memory(call: Callable[[], object]) -> int:
    """The most bytes that the process grew by during a call, by the kernel's own mark."""
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status")

    def kibibytes(field: str) -> int:
        found = re.search(rf"{field}:\s+(\d+) kB", status.read_text())
        assert found is not None
        return int(found[1])

    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = kibibytes("VmRSS")
    result = call()
    grown = kibibytes("VmHWM") - before
    del result
    return 1024 * max(0, grown)


def record(benchmark: Any, name: str, n: int, bins: int, call: Callable[[], object]) -> None:
    lengths, capacity = length_set(name, n)
    # Of whole documents: who cuts them, as concat does, may need fewer bins than that.
    bound = bf.pack(lengths, capacity).lower_bound
    benchmark.extra_info.update(
        documents=len(lengths),
        capacity=capacity,
        bins=bins,
        utilization=int(lengths.sum()) / (bins * capacity),
        bins_over_lower_bound=bins / bound,
        peak_bytes=peak_memory(call),
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("name", "n"), CASES)
def test_pack(benchmark: Any, name: str, n: int, strategy: Any) -> None:
    lengths, capacity = length_set(name, n)
    benchmark.group = f"pack {name} {len(lengths):,}"

    def pack() -> bf.PackPlan:
        return bf.pack(lengths, capacity, strategy=strategy)

    plan = benchmark.pedantic(pack, rounds=9 if n <= 1_000_000 else 3, warmup_rounds=1)
    record(benchmark, name, n, plan.num_bins, pack)


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
    lengths, capacity = length_set(name, n)
    benchmark.group = f"pack {name} {len(lengths):,}"
    given = rival.prepare(lengths, capacity)
    packed = benchmark.pedantic(rival.pack, (given, capacity), rounds=3)
    bins = rival.count_bins(packed)
    del packed
    record(benchmark, name, n, bins, lambda: rival.pack(given, capacity))
