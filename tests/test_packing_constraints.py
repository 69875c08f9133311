"""Constraints of packing: all of them together, for every strategy."""

from dataclasses import replace
from typing import Any

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
    home = {unit[0]: room_of(unit, case) for unit in units_of(case)}

    def sizes(plan: bf.PackPlan) -> list[list[Any]]:
        return [[home[p] for p in pieces if p in home] for pieces in bins_of(plan)]

    assert sizes(seeded) == sizes(plain)
