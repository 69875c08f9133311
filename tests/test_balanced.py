"""The strategy "balanced": even work under a hard capacity, in the bins asked for."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brimful as bf
from constrained import Case, check_constraints, constrained, units_of
from test_packing import bins_of, check_laws


def costs_of(plan: bf.PackPlan) -> list[int]:
    return [sum(n * n for _, _, n in pieces) for pieces in bins_of(plan)]


def least_cost(lengths: Sequence[int], bins: int, capacity: int) -> int | None:
    """The cost of the costliest bin at best, by trying all ways; None where nothing fits."""
    best = None
    for where in itertools.product(range(bins), repeat=len(lengths)):
        sizes, costs = [0] * bins, [0] * bins
        for length, b in zip(lengths, where, strict=True):
            sizes[b] += length
            costs[b] += length * length
        if max(sizes) <= capacity and (best is None or max(costs) < best):
            best = max(costs)
    return best


def test_c12_bins_of_equal_tokens_get_equal_work() -> None:
    for how in ({"bins": 2}, {"world_size": 2}, {"bins": 2, "world_size": 2}, {}):
        plan = bf.pack([6, 6, 3, 3, 3, 3], 12, strategy="balanced", **how)
        assert costs_of(plan) == [54, 54]
        assert [sorted(n for _, _, n in pieces) for pieces in bins_of(plan)] == [[3, 3, 6]] * 2
        assert plan.utilization == 1


@given(
    ranks=st.integers(1, 6),
    group=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    spare=st.integers(0, 10),
)
def test_c12_documents_in_equal_shares_are_shared_out_equally(
    ranks: int, group: list[int], spare: int
) -> None:
    """As many of each length as there are ranks: each rank can have the same."""
    plan = bf.pack(group * ranks, sum(group) + spare, strategy="balanced", bins=ranks)
    assert set(costs_of(plan)) == {sum(n * n for n in group)}


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    bins=st.integers(1, 3),
    capacity=st.integers(30, 90),
)
def test_the_costliest_bin_is_near_the_best_there_is(
    lengths: list[int], bins: int, capacity: int
) -> None:
    best = least_cost(lengths, bins, capacity)
    assume(best is not None)
    try:
        plan = bf.pack(lengths, capacity, strategy="balanced", bins=bins)
    except bf.PlanError:
        assert bf.pack(lengths, capacity).num_bins > bins, "best fit decreasing fails too"
        return
    assert max(costs_of(plan)) >= best
    if sum(lengths) <= capacity:  # Graham's bound, where the capacity is no matter
        assert max(costs_of(plan)) <= (4 / 3 - 1 / (3 * bins)) * best


@given(case=constrained(), world_size=st.integers(1, 9), more=st.integers(0, 20))
def test_the_number_of_bins_is_the_one_asked_for_under_any_constraints(
    case: Case, world_size: int, more: int
) -> None:
    units = len(units_of(case))
    found = case.pack("balanced", world_size=world_size)
    check_bins(found, units, case)
    assert found.num_bins % world_size == 0
    assert found.num_bins - case.pack("best_fit_decreasing").num_bins < world_size

    bins = max(1, found.num_bins + more)
    asked = case.pack("balanced", bins=bins)
    check_bins(asked, units, case)
    assert asked.num_bins == bins
    if found.num_bins:
        again = case.pack("balanced", bins=found.num_bins, world_size=world_size)
        assert bins_of(again) == bins_of(found)


def check_bins(plan: bf.PackPlan, units: int, case: Case) -> None:
    filled = [pieces for pieces in bins_of(plan) if pieces]
    assert len(filled) == min(units, plan.num_bins), "empty only where units are few"
    assert bins_of(plan)[: len(filled)] == filled, "empty ones at the end"
    assert filled == sorted(filled), "in the order of their earliest document"
    assert all(pieces == sorted(pieces) for pieces in filled)
    check_constraints(plan, case)


CAPACITY = 4096
SETS = {
    "all equal": [600] * 1000,
    "all of the capacity": [CAPACITY] * 64,
    "one giant": [CAPACITY, *[7] * 1000],
    "ones": [1] * 5000,
    "wide": np.random.default_rng(1).lognormal(6, 1, 2000).clip(1, CAPACITY).astype(int).tolist(),
    "narrow": np.random.default_rng(2).normal(819, 123, 2000).clip(1).astype(int).tolist(),
    "few": [900, 700, 650, 400, 380, 300, 120, 80, 40, 30],
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("world_size", [1, 8])
def test_work_is_as_even_as_the_largest_document_lets_it_be(name: str, world_size: int) -> None:
    lengths = np.array(SETS[name])
    plan = bf.pack(lengths, CAPACITY, strategy="balanced", world_size=world_size)
    check_laws_but_empty(plan, lengths)
    costs = np.array(costs_of(plan), float)
    bound = max(costs.mean(), float(lengths.max()) ** 2)
    # A tenth above what no plan can beat; no more units than twice the bins leave coarser steps.
    assert costs.max() <= (1.1 if len(lengths) > 2 * plan.num_bins else 1.5) * bound
    assert plan.num_bins < bf.pack(lengths, CAPACITY).num_bins + world_size


def check_laws_but_empty(plan: bf.PackPlan, lengths: np.ndarray) -> None:
    if len(plan.documents) >= plan.num_bins:
        check_laws(plan, lengths, CAPACITY)
    assert sorted(plan.documents.tolist()) == list(range(len(lengths)))


def test_a_tight_capacity_still_gives_more_even_bins_than_best_fit_decreasing() -> None:
    lengths = np.random.default_rng(2).normal(819, 123, 5000).clip(1).astype(int)
    plain = bf.pack(lengths, CAPACITY)
    even = bf.pack(lengths, CAPACITY, strategy="balanced")
    assert even.num_bins == plain.num_bins
    assert even.utilization is not None
    assert even.utilization > 0.96
    imbalance = [max(costs) / np.mean(costs) for costs in (costs_of(plain), costs_of(even))]
    assert imbalance[0] > 1.3
    assert imbalance[1] < 1.05


def test_bins_that_cannot_be_are_refused_with_what_is_needed() -> None:
    with pytest.raises(bf.PlanError, match=r"bins is 2, .* 3 pieces .* at least 3, .* takes 3"):
        bf.pack([5, 5, 5], 8, strategy="balanced", bins=2)
    with pytest.raises(bf.PlanError, match=r"at least 2, .* takes 2"):
        bf.pack([1, 1, 1], 8, strategy="balanced", bins=1, max_segments=2)
    with pytest.raises(bf.PlanError, match="no multiple of world_size = 2"):
        bf.pack([1], 8, strategy="balanced", bins=3, world_size=2)
    for how in ({"bins": 0}, {"world_size": 0}, {"bins": 2**31 + 1}, {"bins": -1}):
        with pytest.raises(bf.PlanError, match=next(iter(how))):
            bf.pack([1], 8, strategy="balanced", **how)
    for how in ({"bins": 2}, {"world_size": 2}):
        with pytest.raises(bf.PlanError, match="balanced"):
            bf.pack([1], 8, strategy="streaming", **how)
    with pytest.raises(TypeError, match="bins"):
        bf.pack([1], 8, strategy="balanced", bins=1.5)  # type: ignore[arg-type]


def test_nothing_to_pack_gives_the_bins_asked_for() -> None:
    assert bf.pack([], 8, strategy="balanced", world_size=4).num_bins == 0
    plan = bf.pack([0, 0], 8, strategy="balanced", bins=4)
    assert bins_of(plan) == [[]] * 4
    assert (plan.utilization, plan.empty_documents) == (0, 2)
    assert "0.000 %" in plan.report()
    assert bf.balance(plan, world_size=2).imbalance is None


def test_bins_can_be_dealt_where_some_are_empty() -> None:
    plan = bf.pack([5, 3], 8, strategy="balanced", bins=4)
    assert costs_of(plan) == [25, 9, 0, 0]
    dealt = bf.balance(plan, world_size=2)
    assert dealt.bins[:, :, 0].tolist() == [[0, 1], [2, 3]]
    assert dealt.imbalance == pytest.approx(25 / 17)
