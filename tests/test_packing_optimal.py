"""Strategy "optimal": never worse than best-fit-decreasing, a bound that no packing goes below, and
the optimum itself where it is known."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import PackPlan, _core
from constrained import Case, check_constraints, constrained, minimum_bins, units_of
from test_packing import RULES, Overlong, bins_of, check_laws, length_lists

# Long enough for small cases on a slow machine: nothing below depends on less.
AMPLE = 60.0


def optimal(lengths: Any, capacity: int, **others: Any) -> PackPlan:
    others.setdefault("time_limit", AMPLE)
    return bf.pack(lengths, capacity, strategy="optimal", **others)


def narrow(n: int) -> dict[str, tuple[npt.NDArray[np.int64], int]]:
    """Few documents of like lengths to a bin, where best-fit-decreasing is far from the optimum."""
    random = np.random.default_rng(7)

    def clip(lengths: npt.NDArray[np.float64], capacity: int) -> npt.NDArray[np.int64]:
        return np.clip(np.rint(lengths), 1, capacity).astype(np.int64)

    images = random.choice([1, 2, 3, 4, 5], n, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    return {
        "thirds": (clip(random.normal(2700, 300, n), 8192), 8192),
        "fifths": (clip(random.normal(819, 123, n), 4096), 4096),
        "image": (clip(1024 + random.lognormal(np.log(200), 0.7, n), 4096), 4096),
        "images": (clip(576 * images + random.lognormal(np.log(150), 0.8, n), 4096), 4096),
        "pairs": (clip(2 * np.rint(random.lognormal(np.log(700), 0.4, n)), 4096), 4096),
        "rollouts": (clip(random.lognormal(np.log(5000), 0.35, n), 16384), 16384),
    }


@settings(deadline=None)
@given(
    case=length_lists(),
    overlong=st.sampled_from(RULES),
    time_limit=st.sampled_from([0, 1e-9, 0.003, 0.1]),
)
@example(case=([], 8), overlong="split", time_limit=1)
@example(case=([0, 0], 8), overlong="split", time_limit=1)
@example(case=([1] * 50, 2**31 - 1), overlong="split", time_limit=1)
@example(case=([2**31 - 1, 2**30, 2**30] * 5, 2**31 - 1), overlong="split", time_limit=1)
@example(case=([1, 1, 1], 1), overlong="split", time_limit=1)
def test_every_plan_is_valid_and_no_worse_than_best_fit_decreasing(
    case: tuple[list[int], int], overlong: Overlong, time_limit: float
) -> None:
    lengths, capacity = case
    plan = optimal(lengths, capacity, overlong=overlong, time_limit=time_limit)
    check_laws(plan, np.array(lengths, np.int64), capacity)
    best_fit = bf.pack(lengths, capacity, overlong=overlong)
    assert plan.num_bins <= best_fit.num_bins
    assert plan.lower_bound >= best_fit.lower_bound
    assert plan.strategy == "optimal"


@settings(deadline=None)
@given(case=constrained(resource=False), time_limit=st.sampled_from([0.0, 0.05]))
def test_constraints_hold(case: Case, time_limit: float) -> None:
    assume(case.groups is None or case.max_segments is None)
    plan = case.pack("optimal", time_limit=time_limit)
    check_constraints(plan, case)
    assert plan.num_bins <= case.pack("best_fit_decreasing").num_bins


@settings(deadline=None)
@given(case=constrained(resource=False, most=7))
@example(case=Case([6, 6, 5, 5, 4, 4], 10, max_segments=2))
@example(case=Case([4, 3, 3, 3, 3, 2], 9, max_segments=3))
def test_lower_bound_is_at_most_the_least_number_of_bins(case: Case) -> None:
    assume(case.groups is None or case.max_segments is None)
    units = units_of(case)
    assume(len(units) <= 8)
    plan = case.pack("optimal", time_limit=AMPLE)
    least = minimum_bins(units, case)
    assert plan.lower_bound <= least <= plan.num_bins


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=7),
    capacity=st.sampled_from([60, 61, 97]),
    max_items=st.sampled_from([1, 2, 3, 100]),
    grid=st.sampled_from([1, 2, 7]),
    data=st.data(),
)
def test_no_values_bound_above_the_optimum(
    sizes: list[int], capacity: int, max_items: int, grid: int, data: st.DataObject
) -> None:
    """Whatever the duals are, what comes of them is a bound."""
    size, count = np.unique(np.array(sizes, np.int32), return_counts=True)
    odd = st.sampled_from([0.0, -1.0, float("nan"), float("inf"), 1e300, 1e-300])
    value = st.floats(0, 1) | odd
    values = np.array(data.draw(st.lists(value, min_size=len(size), max_size=len(size))))
    shares = data.draw(st.sampled_from([values, size / capacity]))
    bound = _core.dual_bound(size, count.astype(np.int64), capacity, max_items, shares, grid)
    case = Case(sizes, capacity, max_segments=max_items)
    assert 0 <= bound <= minimum_bins(units_of(case), case)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("parts", "bins"), [(2, 60), (3, 200), (3, 5_000), (5, 300), (8, 1_000)])
def test_bins_that_can_all_be_full_are(seed: int, parts: int, bins: int) -> None:
    """Full bins taken apart: the optimum is known, and found."""
    capacity = 120
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(parts, 20.0), bins)
    ends = np.rint(np.cumsum(shares, axis=1) * capacity).astype(np.int64)
    ends[:, -1] = capacity
    lengths = np.diff(ends, axis=1, prepend=0).ravel()
    random.shuffle(lengths)
    plan = optimal(lengths, capacity)
    assert plan.num_bins == plan.lower_bound == bins
    assert "optimal: no packing" in plan.report()


def test_bound_beyond_tokens_and_l2_is_proved() -> None:
    # Two of a bin are 0.4 of it, and a third one does not fit: L2 counts 0.8 of a bin as enough.
    lengths = np.repeat([401, 400, 399], 100)
    best_fit = bf.pack(lengths, 1000)
    plan = optimal(lengths, 1000)
    assert best_fit.lower_bound < plan.lower_bound == plan.num_bins == 150


@pytest.mark.slow
@pytest.mark.parametrize("name", narrow(1))
def test_narrow_sets_come_close_to_the_bound(name: str) -> None:
    lengths, capacity = narrow(2_000)[name]
    best_fit = bf.pack(lengths, capacity)
    plan = optimal(lengths, capacity, time_limit=4)
    check_laws(plan, lengths, capacity)
    assert plan.num_bins <= best_fit.num_bins - 0.5 * (best_fit.num_bins - plan.lower_bound)


@pytest.mark.slow
@pytest.mark.parametrize("name", narrow(1))
def test_large_narrow_sets_come_within_a_thousandth(name: str) -> None:
    lengths, capacity = narrow(200_000)[name]
    plan = optimal(lengths, capacity, time_limit=20)
    check_laws(plan, lengths, capacity)
    assert plan.num_bins <= 1.001 * plan.lower_bound


def test_a_million_equal_documents_cost_no_more_than_a_hundred() -> None:
    plan = optimal(np.full(1_000_000, 300), 1000)
    assert plan.num_bins == plan.lower_bound == 333_334


def test_same_arguments_give_the_same_plan() -> None:
    lengths, capacity = narrow(300)["pairs"]
    first, again = (optimal(lengths, capacity) for _ in range(2))
    assert bins_of(first) == bins_of(again)


def test_seed_exchanges_equal_documents_only() -> None:
    lengths = np.random.default_rng(1).integers(300, 400, 900)
    plain, shuffled = (optimal(lengths, 1000, seed=seed) for seed in (None, 5))
    assert np.array_equal(plain.bin_offsets, shuffled.bin_offsets)
    assert np.array_equal(plain.lengths, shuffled.lengths)
    assert not np.array_equal(plain.documents, shuffled.documents)
    check_laws(shuffled, lengths, 1000)


@pytest.mark.parametrize(
    "others",
    [
        {"resource": [1, 1], "resource_capacity": 2},
        {"groups": [0, 1], "max_segments": 2},
    ],
)
def test_what_it_cannot_take_is_refused(others: dict[str, Any]) -> None:
    with pytest.raises(bf.PlanError, match='choose strategy="best_fit" or "streaming"'):
        optimal([1, 2], 10, **others)
    replace_nothing: Any = {"max_segments": None}
    if "groups" in others:
        assert optimal([1, 2], 10, **(others | replace_nothing)).num_bins == 1


@pytest.mark.parametrize(
    ("time_limit", "error"),
    [(-1, bf.PlanError), (float("nan"), bf.PlanError), ("1", TypeError), (True, TypeError)],
)
def test_time_limit_is_checked(time_limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="time_limit"):
        bf.pack([1], 10, time_limit=time_limit)


def test_endless_time_ends() -> None:
    assert optimal([6, 5, 5, 4, 3], 10, time_limit=float("inf")).num_bins == 3


def test_without_highspy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'brimful\[optimal\]'"):
        optimal([1, 2], 10)


def test_a_solver_that_fails_leaves_the_packing_of_best_fit_decreasing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import highspy

    lengths = np.repeat([401, 400, 399], 100)
    monkeypatch.setattr(
        highspy.Highs, "getModelStatus", lambda self: highspy.HighsModelStatus.kSolveError
    )
    plan = optimal(lengths, 1000)
    best_fit = bf.pack(lengths, 1000)
    assert bins_of(plan) == bins_of(best_fit)
    assert plan.lower_bound == best_fit.lower_bound


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    optimal(*narrow(200)["pairs"])
    assert capfd.readouterr() == ("", "")


def test_patterns_are_not_trusted() -> None:
    options = _options()
    lengths = np.array([6, 4, 4], np.int64)
    sizes, counts = _core.unit_histogram(lengths, 10, options)
    assert (sizes.tolist(), counts.tolist()) == ([6, 4], [1, 2])

    def packed(patterns: list[list[tuple[int, int]]], times: list[int]) -> Any:
        flat = [entry for pattern in patterns for entry in pattern]
        ends = np.cumsum([0, *(len(pattern) for pattern in patterns)])
        items, copies = (np.array([entry[i] for entry in flat], np.int32) for i in (0, 1))
        return _core.pack_by_patterns(
            lengths, 10, options, ends, items, copies, np.array(times, np.int64)
        )

    assert packed([[(0, 1), (1, 1)], [(1, 1)]], [1, 1]).documents.tolist() == [0, 1, 2]
    for patterns, times in (
        ([[(0, 1), (1, 2)]], [1]),  # over the capacity
        ([[(0, 1), (1, 1)]], [1]),  # one left out
        ([[(0, 1), (1, 1)]], [2]),  # more than there are
        ([[(0, 1), (2, 1)]], [1]),  # no such size
        ([[(0, 1), (-1, 1)]], [1]),
        ([[(0, 1), (1, 0)]], [1]),
        ([[(0, 1), (1, 1)], []], [1, 1]),
        ([[(0, 1), (1, 1)], [(1, 1)]], [1, -1]),
        ([[(0, 1), (1, 1)], [(1, 1)]], [1, 2**62]),
        ([[(0, 1), (1, 1)], [(1, 1)]], [1]),
    ):
        with pytest.raises(bf.PlanError, match="pattern"):
            packed(patterns, times)


def _options() -> Any:
    return _core.PackOptions(strategy="best_fit_decreasing")
