"""Constraints of packing: all of them together, for every strategy."""

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import brimful as bf
from brimful.packing import Strategy
from constrained import (
    Case,
    check_constraints,
    concatenated,
    constrained,
    minimum_bins,
    room_of,
    textbook,
    units_of,
)
from test_packing import BY_THE_BOOK, STRATEGIES, bins_of
from test_packing_streaming import BUFFERS

DECREASING: tuple[Strategy, ...] = ("first_fit_decreasing", "best_fit_decreasing")


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=constrained())
@example(case=Case([], 8, max_segments=1, groups=[], resource=[], resource_capacity=0))
@example(case=Case([2**33], 2**31 - 1, "drop", groups=[-(2**63)]))
def test_all_constraints_hold_together(strategy: Strategy, case: Case) -> None:
    if strategy == "concat":
        case = replace(case, groups=None)
    check_constraints(case.pack(strategy), case)


@pytest.mark.parametrize("strategy", BY_THE_BOOK)
@given(case=constrained())
def test_bins_are_those_of_the_textbook(strategy: Strategy, case: Case) -> None:
    assert bins_of(case.pack(strategy)) == textbook(case, strategy)


@given(case=constrained(groups=False))
def test_concat_fills_each_bin_as_far_as_it_may(case: Case) -> None:
    assert bins_of(case.pack("concat")) == concatenated(case)


@given(case=constrained(), buffer=BUFFERS)
def test_streaming_keeps_its_order_window(case: Case, buffer: int) -> None:
    plan = case.pack("streaming", buffer=buffer)
    check_constraints(plan, case)
    units = units_of(case)
    arrival = {unit[0]: i for i, unit in enumerate(units)}
    arrivals = [arrival[piece] for pieces in bins_of(plan) for piece in pieces if piece in arrival]
    assert sorted(arrivals) == list(range(len(units)))
    latest = -1
    for placed, unit in enumerate(arrivals):
        latest = max(latest, unit)
        assert latest - unit < 3 * buffer
        assert placed > unit - buffer
    for pieces in bins_of(plan):
        assert pieces == sorted(pieces)


@given(case=constrained(most=7))
def test_no_packing_at_all_has_fewer_bins_than_the_lower_bound(case: Case) -> None:
    units = units_of(case)
    if len(units) > 7:
        units = []
        case = replace(case, lengths=[0] * len(case.lengths))
    plan = case.pack("best_fit_decreasing")
    assert plan.lower_bound <= minimum_bins(units, case) <= plan.num_bins


@pytest.mark.parametrize("strategy", DECREASING)
@given(case=constrained(), seed=st.integers(-(2**63), 2**64 - 1))
def test_a_seed_exchanges_units_that_are_alike(strategy: Strategy, case: Case, seed: int) -> None:
    plain = case.pack(strategy)
    seeded = case.pack(strategy, seed=seed)
    check_constraints(seeded, case)
    assert bins_of(seeded) == bins_of(case.pack(strategy, seed=seed))
    assert seeded.num_bins == plain.num_bins
    # Where slots are all that a bin has, a group of two is like a document of as many slots.
    many_sided = case.resource is not None or bool(case.groups and case.max_segments)
    home = {
        unit[0]: room_of(unit, case) if many_sided else room_of(unit, case).slots
        for unit in units_of(case)
    }

    def sizes(plan: bf.PackPlan) -> list[list[Any]]:
        return [[home[p] for p in pieces if p in home] for pieces in bins_of(plan)]

    assert sizes(seeded) == sizes(plain)


def test_c11_start_tokens_are_paid_for_by_capacity_and_not_by_data() -> None:
    plan = bf.pack([10], 4, start_token=True)
    document = list(range(1, 11))
    rows = [
        ["B", *document[start : start + length]]
        for pieces in bins_of(plan)
        for _, start, length in pieces
    ]
    assert rows == [["B", 1, 2, 3], ["B", 4, 5, 6], ["B", 7, 8, 9], ["B", 10]]
    assert plan.num_tokens == 10
    assert plan.start_tokens == 4
    assert plan.dropped_tokens == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("capacity", [2, 3, 4, 5, 11])
@pytest.mark.parametrize("lengths", [[10], [1, 1, 1], [3, 9, 4, 0, 5]])
def test_c11_no_start_token_takes_the_place_of_data(
    strategy: Strategy, capacity: int, lengths: list[int]
) -> None:
    case = Case(lengths, capacity, start_token=True)
    plan = case.pack(strategy)
    check_constraints(plan, case)
    assert plan.num_tokens == sum(lengths)
    assert plan.start_tokens == len(plan.documents)
    filled = np.add.reduceat(plan.lengths + 1, plan.bin_offsets[:-1])
    assert filled.max() <= capacity


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_c11_a_bin_has_room_for_data_beside_the_start_token(strategy: Strategy) -> None:
    truncated = bf.pack([10], 4, strategy=strategy, overlong="truncate", start_token=True)
    assert truncated.dropped_tokens == (0 if strategy == "concat" else 7)
    with pytest.raises(bf.PlanError, match="a capacity of 1 token leaves no room beside a start"):
        bf.pack([10], 1, strategy=strategy, start_token=True)


def test_a_short_remainder_takes_from_the_piece_before_it() -> None:
    assert bins_of(bf.pack([17], 8, min_piece=3)) == [[(0, 0, 8)], [(0, 8, 6)], [(0, 14, 3)]]
    # Concat cuts earlier, or not at all where the bin has no room for so long a piece.
    assert bins_of(bf.pack([6, 4, 9], 8, strategy="concat", min_piece=3)) == [
        [(0, 0, 6)],
        [(1, 0, 4), (2, 0, 4)],
        [(2, 4, 5)],
    ]


def test_alignment_is_paid_for_in_slots() -> None:
    plan = bf.pack([5, 3, 9, 1], 16, align=8)
    assert bins_of(plan) == [[(2, 0, 9)], [(0, 0, 5), (1, 0, 3)], [(3, 0, 1)]]
    assert plan.lower_bound == 3
    assert plan.utilization == 18 / 48


def test_groups_stay_together_in_order() -> None:
    plan = bf.pack([5, 3, 4, 4, 0, 2, 6], 8, groups=[7, 7, 1, 1, 1, 3, 3])
    assert bins_of(plan) == [
        [(0, 0, 5), (1, 0, 3)],
        [(2, 0, 4), (3, 0, 4)],
        [(5, 0, 2), (6, 0, 6)],
    ]


def test_the_resource_of_a_group_is_its_documents_together() -> None:
    plan = bf.pack([1, 1, 1, 1], 8, groups=[0, 0, 1, 1], resource=[1, 2, 0, 1], resource_capacity=3)
    assert bins_of(plan) == [[(0, 0, 1), (1, 0, 1)], [(2, 0, 1), (3, 0, 1)]]
    assert plan.lower_bound == 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_fits_no_bin_is_dropped_or_an_error(strategy: Strategy) -> None:
    resource: dict[str, Any] = {"resource": [0, 5, 1], "resource_capacity": 4}
    plan = bf.pack([2, 3, 4], 8, strategy=strategy, overlong="drop", **resource)
    assert (plan.dropped_documents, plan.dropped_tokens, plan.num_tokens) == (1, 3, 6)
    with pytest.raises(
        bf.PlanError, match="document 1 has a resource of 5, more than resource_capacity = 4, and"
    ):
        bf.pack([2, 3, 4], 8, strategy=strategy, **resource)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({}, r"group 9 \(documents 1 to 2\) has 10 tokens in 2 pieces, more than a bin of capa"),
        ({"capacity": 16, "max_segments": 1}, "has 2 pieces, more than max_segments = 1"),
        (
            {"capacity": 16, "resource": [1, 2, 2, 0], "resource_capacity": 3},
            "has more of the resource than a bin may have, more than resource_capacity = 3",
        ),
    ],
)
def test_a_group_that_fits_no_bin_is_dropped_whole_or_an_error(
    constraints: dict[str, Any], words: str
) -> None:
    arguments = {"capacity": 8, "groups": [4, 9, 9, 2], **constraints}
    with pytest.raises(bf.PlanError, match=words):
        bf.pack([1, 5, 5, 0], **arguments)
    plan = bf.pack([1, 5, 5, 0], overlong="drop", **arguments)
    assert bins_of(plan) == [[(0, 0, 1)]]
    assert (plan.dropped_documents, plan.dropped_tokens, plan.empty_documents) == (2, 10, 1)


def test_seeds_give_other_neighbours_and_the_same_bins() -> None:
    generator = np.random.default_rng(4)
    lengths = generator.integers(1, 50, 5_000)
    plain = bf.pack(lengths, 100)
    plans = [bf.pack(lengths, 100, seed=seed) for seed in (0, 1, 2, -1, 2**64 - 2)]
    for plan in plans:
        assert np.array_equal(plan.lengths, plain.lengths)
        assert np.array_equal(plan.bin_offsets, plain.bin_offsets)
        assert np.array_equal(lengths[plan.documents], plan.lengths)
        assert np.array_equal(np.sort(plan.documents), np.arange(5_000))
        assert np.mean(plan.documents == plain.documents) < 0.05
    for one, other in itertools.pairwise(plans):
        assert np.mean(one.documents == other.documents) < 0.05
    # Any place is as likely as another: over many seeds each document comes to each of them.
    places = Counter(int(bf.pack([3] * 4, 12, seed=s).documents[0]) for s in range(400))
    assert min(places[d] for d in range(4)) > 60


def test_a_bin_may_hold_any_number_of_pieces_up_to_the_most() -> None:
    plan = bf.pack([1] * 10, 100, max_segments=3, strategy="best_fit")
    assert [len(pieces) for pieces in bins_of(plan)] == [3, 3, 3, 1]
    assert plan.lower_bound == 4
    assert bf.pack([1] * 10, 100, max_segments=2**63 - 1).num_bins == 1


def test_the_report_counts_start_tokens() -> None:
    report = bf.pack([10, 3], 4, start_token=True).report()
    assert "13 placed, none lost; 5 start tokens beside them" in report
    assert "start" not in bf.pack([10, 3], 4).report()
