"""Balance: every bin once, inside its window, and even work where bins allow it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf


def costs_of(plan: bf.PackPlan, a: float = 0, b: float = 1) -> np.ndarray:
    ends = plan.bin_offsets[1:]
    lengths = plan.lengths.astype(object)  # Python's integers
    return np.array(
        [
            float(sum(a * n + b * n * n for n in lengths[begin:end]))
            for begin, end in zip(plan.bin_offsets[:-1], ends, strict=True)
        ]
    )


@given(
    lengths=st.lists(st.integers(1, 50), max_size=200),
    world_size=st.integers(1, 9),
    micro_batches=st.integers(1, 5),
    window=st.integers(1, 6),
    cost=st.sampled_from(["attention", (1, 0), (24576.0, 1), (0, 0.5)]),
)
def test_every_bin_comes_once_and_inside_its_window(
    lengths, world_size, micro_batches, window, cost
):
    plan = bf.pack(lengths, 50, strategy="streaming", buffer=8)
    dealt = bf.balance(
        plan, world_size=world_size, micro_batches=micro_batches, cost=cost, window=window
    )
    per_step = world_size * micro_batches
    steps = -(-plan.num_bins // per_step)
    assert dealt.bins.shape == (steps, world_size, micro_batches)
    assert dealt.bins.dtype == np.int64
    assert (dealt.bins[:-1] >= 0).all(), "-1 only in the last step"
    flat = dealt.bins.reshape(steps, per_step)
    assert sorted(flat[flat >= 0].tolist()) == list(range(plan.num_bins))
    for step, bins in enumerate(flat):
        assert {b // per_step // window for b in bins if b >= 0} <= {step // window}

    complete = plan.num_bins // per_step
    if not complete:
        assert dealt.imbalance is None
        return
    costs = costs_of(plan, *((0, 1) if cost == "attention" else cost))
    loads = costs[dealt.bins[:complete]].sum(axis=2)
    assert dealt.imbalance == pytest.approx((loads.max(1) / loads.mean(1)).mean())
    assert dealt.imbalance >= 1


@given(costs=st.lists(st.integers(1, 90), min_size=4, max_size=80), world_size=st.integers(2, 4))
def test_a_step_of_one_window_is_as_even_as_sorting_makes_it(costs, world_size):
    plan = bf.pack(costs, 90, strategy="pad")
    dealt = bf.balance(plan, world_size=world_size, window=10**9)
    squares = np.sort(np.array(costs, float) ** 2)[::-1]
    complete = len(costs) // world_size
    steps = squares[: complete * world_size].reshape(complete, world_size)
    best = (steps.max(1) / steps.mean(1)).mean() if complete else None
    assert dealt.imbalance == (None if best is None else pytest.approx(best))


def test_steps_of_a_window_come_in_the_order_of_their_earliest_bin():
    plan = bf.pack([5, 9, 1, 5, 1, 9], 9, strategy="pad")
    dealt = bf.balance(plan, world_size=2)
    assert dealt.bins[:, :, 0].tolist() == [[0, 3], [1, 5], [2, 4]]
    assert dealt.imbalance == 1


def test_micro_batches_of_a_rank_make_up_for_each_other():
    plan = bf.pack([8, 6, 4, 2], 8, strategy="pad")
    dealt = bf.balance(plan, world_size=2, micro_batches=2, cost=(1, 0))
    assert dealt.bins.tolist() == [[[0, 3], [1, 2]]]
    assert dealt.imbalance == 1


def test_the_incomplete_step_is_made_of_the_cheapest_bins():
    plan = bf.pack([3, 1, 2, 9, 2, 7, 8], 9, strategy="pad")
    dealt = bf.balance(plan, world_size=2, micro_batches=2)
    assert dealt.bins[1].tolist() == [[2, 1], [4, -1]]


@pytest.mark.parametrize("strategy", ["streaming", "best_fit_decreasing"])
@pytest.mark.parametrize(("capacity", "mean", "sigma"), [(4096, 600, 1.0), (131072, 6000, 1.3)])
@pytest.mark.parametrize("world_size", [8, 64])
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_attention_work_is_even_to_five_percent(
    strategy, capacity, mean, sigma, world_size, micro_batches
):
    drawn = np.random.default_rng(1).lognormal(math.log(mean) - sigma**2 / 2, sigma, 100_000)
    plan = bf.pack(np.clip(drawn, 1, capacity).astype(int), capacity, strategy=strategy)
    dealt = bf.balance(plan, world_size=world_size, micro_batches=micro_batches)
    assert dealt.imbalance <= 1.05
    shuffled = np.random.default_rng(0).permutation(plan.num_bins)
    per_step = world_size * micro_batches
    steps = plan.num_bins // per_step
    loads = costs_of(plan)[shuffled[: steps * per_step]].reshape(steps, world_size, -1).sum(axis=2)
    assert (loads.max(1) / loads.mean(1)).mean() > 1.5, "bins that come as they are"


def test_nothing_to_deal():
    dealt = bf.balance(bf.pack([], 4), world_size=2)
    assert dealt.bins.shape == (0, 2, 1)
    assert dealt.imbalance is None


@pytest.mark.parametrize(
    "how",
    [
        {"world_size": 0},
        {"world_size": True},
        {"world_size": 2, "micro_batches": 0},
        {"world_size": 2, "window": 0},
        {"world_size": 2, "cost": "tokens"},
        {"world_size": 2, "cost": (1, -1)},
        {"world_size": 2, "cost": (0, 0)},
        {"world_size": 2, "cost": (1, math.nan)},
        {"world_size": 2, "cost": (math.inf, 1)},
        {"world_size": 2, "cost": (1e308, 1e308)},
        {"world_size": 2**40},
        {"world_size": 2**31, "micro_batches": 2**62},
        {"world_size": 2, "cost": (1,)},
        {"world_size": 2, "cost": 3},
    ],
)
def test_arguments_that_make_no_sense_are_refused(how):
    with pytest.raises(bf.PlanError, match=list(how)[-1]):
        bf.balance(bf.pack([1, 2, 3], 4), **how)


def test_a_plan_that_is_none_is_a_type_error():
    with pytest.raises(TypeError, match=r"plan is a list; what bf\.pack returned is expected"):
        bf.balance([1, 2, 3], world_size=2)


def test_costs_beyond_64_bits_in_all_are_right():
    plan = bf.pack([2**31 - 1] * 9, 2**31 - 1)
    assert bf.balance(plan, world_size=3).imbalance == 1


def test_a_balance_says_what_it_is() -> None:
    dealt = bf.balance(bf.pack([8] * 12, 8), world_size=3, micro_batches=2)
    assert repr(dealt) == (
        "<brimful.Balance: 2 steps x 3 ranks x 2 micro-batches, imbalance 1.000, window 64>"
    )
    assert "0 steps" in repr(bf.balance(bf.pack([], 8), world_size=1))
