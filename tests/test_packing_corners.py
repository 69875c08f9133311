"""Input at which a packer could turn quadratic, or take memory by the capacity."""

import os
import threading
from typing import Any, get_args

import numpy as np
import pytest

import brimful as bf
from brimful.packing import Strategy
from test_packing import FITS, STRATEGIES, check_laws

N = 200_000
MOST = 2**31 - 1


def corners() -> dict[str, tuple[np.ndarray, int]]:
    generator = np.random.default_rng(5)
    ones = np.ones(N, np.int64)
    return {
        "equal": (600 * ones, 4096),
        "ones": (ones, 4096),
        "all at the capacity": (4096 * ones, 4096),
        "over half the capacity": (generator.integers(2049, 4097, N), 4096),
        "capacity 1": (ones, 1),
        "capacity 1, empty documents": (0 * ones, 1),
        "capacity 1e6": (generator.integers(1, 10**6 + 1, N), 10**6),
        "capacity 1e6, all different, rising": (np.arange(1, N + 1), 10**6),
        "capacity 1e6, all different, falling": (np.arange(N, 0, -1), 10**6),
        "capacity 1e9": (generator.integers(1, 10**9 + 1, N), 10**9),
        "capacity 1e9, short": (generator.integers(1, 1000, N), 10**9),
        "the largest capacity": (generator.integers(2**30, 2**31, N), MOST),
        "pairs that fill a bin": (np.repeat([1000, 3096], N // 2), 4096),
        "one long document": (np.array([N * 100]), 100),
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("corner", list(corners()))
def test_corner_is_packed(corner: str, strategy: Strategy) -> None:
    lengths, capacity = corners()[corner]
    plan = bf.pack(lengths, capacity, strategy=strategy)
    check_laws(plan, lengths, capacity)
    if (
        strategy in FITS
        and strategy != "pad"
        and corner not in ("over half the capacity", "the largest capacity")
    ):
        assert plan.num_bins <= 1.25 * plan.lower_bound


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("capacity", [1, 1000, MOST])
def test_no_document_and_one_document(strategy: Strategy, capacity: int) -> None:
    nothing = bf.pack([], capacity, strategy=strategy)
    assert nothing.bin_offsets.tolist() == [0]
    assert (nothing.num_bins, nothing.lower_bound, nothing.utilization) == (0, 0, None)
    one = bf.pack([1], capacity, strategy=strategy)
    assert one.bin_offsets.tolist() == [0, 1]
    assert (one.documents.tolist(), one.lengths.tolist()) == ([0], [1])
    assert one.utilization == 1 / capacity


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_pieces_than_memory_holds_is_an_error(strategy: Strategy) -> None:
    with pytest.raises(bf.PlanError, match="takes 1000000000000000000 pieces, more than memory"):
        bf.pack([10**18], 1, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_pieces_than_the_machine_can_hold_are_refused_before_it_tries(
    strategy: Strategy,
) -> None:
    # Each column of such a plan would be granted alone, and the process ended while writing them.
    pieces = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 20
    with pytest.raises(bf.PlanError, match=f"takes {pieces} pieces, more than memory holds"):
        bf.pack([pieces], 1, strategy=strategy)


def constraints(documents: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(6)
    groups: dict[str, Any] = {"groups": np.arange(documents) // 3, "overlong": "drop"}
    amounts: dict[str, Any] = {
        "resource": generator.integers(0, 9, documents),
        "resource_capacity": 16,
    }
    rare = {"resource": np.equal(amounts["resource"], 8).astype(int), "resource_capacity": 1}
    return [
        {"max_segments": 3},
        {"max_segments": 1000},
        groups,
        {**groups, "max_segments": 7},
        amounts,
        {**rare, "seed": 1},
        {**groups, **amounts},
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("corner", [name for name in corners() if name != "one long document"])
def test_corner_is_packed_under_constraints(corner: str, strategy: Strategy) -> None:
    lengths, capacity = corners()[corner]
    lengths = lengths[:: N // 10_000]
    for given in constraints(len(lengths)):
        if strategy == "concat" and "groups" in given:
            continue
        plan = bf.pack(lengths, capacity, strategy=strategy, **given)
        assert plan.num_tokens + plan.dropped_tokens == lengths.sum()
        assert plan.num_tokens == plan.lengths.sum(dtype=np.int64)
        assert plan.dropped_tokens == 0 or "groups" in given
        assert plan.lower_bound <= plan.num_bins
        if not plan.num_bins:
            continue
        firsts = plan.bin_offsets[:-1]
        assert np.add.reduceat(plan.lengths, firsts, dtype=np.int64).max() <= capacity
        assert np.diff(plan.bin_offsets).max() <= given.get("max_segments", N)
        if "resource" in given:
            used = np.add.reduceat(np.asarray(given["resource"])[plan.documents], firsts)
            assert used.max() <= given["resource_capacity"]


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_lengths_that_another_thread_writes_to_give_a_plan_or_an_error(strategy: Strategy) -> None:
    lengths = np.full(5_000, 700)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            lengths[:] = 3
            lengths[::2] = 100_000
            lengths[:] = 4096

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            try:
                plan = bf.pack(
                    lengths, 4096, strategy=strategy, overlong="truncate", **quick(strategy)
                )
            except bf.PlanError as error:
                if "changed while" not in str(error):
                    raise
            else:
                # A length that is half written may be 0.
                assert len(np.unique(plan.documents)) + plan.empty_documents == 5_000
    finally:
        done.set()
        writer.join()


def quick(strategy: Strategy) -> dict[str, Any]:
    return {"time_limit": 0} if strategy == "optimal" else {}
