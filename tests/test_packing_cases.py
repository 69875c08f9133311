"""Faults that packers are known for, each as the smallest input that shows it."""

import numpy as np
import pytest

import brimful as bf
from brimful.packing import Strategy
from test_packing import FITS, bins_of


def tokens_of(plan: bf.PackPlan, documents: list[list[int]]) -> list[list[int]]:
    """The tokens of each bin."""
    return [
        [token for d, start, length in pieces for token in documents[d][start : start + length]]
        for pieces in bins_of(plan)
    ]


@pytest.mark.parametrize("strategy", FITS)
def test_c01_truncated_tokens_are_counted(strategy: Strategy) -> None:
    plan = bf.pack([4, 2, 3, 1], 3, strategy=strategy, overlong="truncate")
    assert plan.num_tokens == 9
    assert plan.dropped_tokens == 1
    assert plan.dropped_documents == 0
    assert plan.truncated_documents == 1
    assert plan.starts.tolist() == [0] * 4


def test_c01_split_keeps_every_token() -> None:
    documents = [[1, 2, 3, 4], [5, 6], [7, 8, 9], [10]]
    plan = bf.pack([len(d) for d in documents], 3, overlong="split")
    assert tokens_of(plan, documents) == [[1, 2, 3], [7, 8, 9], [5, 6, 4], [10]]
    assert plan.split_documents == 1
    assert plan.dropped_tokens == plan.truncated_documents == 0


@pytest.mark.parametrize("strategy", FITS)
def test_c01_a_capacity_of_one_loses_only_what_the_rule_says(strategy: Strategy) -> None:
    truncated = bf.pack([2, 4, 5, 1], 1, strategy=strategy, overlong="truncate")
    assert truncated.num_tokens == 4
    assert truncated.dropped_tokens == 8
    assert truncated.truncated_documents == 3
    assert "8 lost (66.7 %" in truncated.report()
    split = bf.pack([2, 4, 5, 1], 1, strategy=strategy, overlong="split")
    assert split.num_bins == split.num_tokens == 12
    assert split.lengths.tolist() == [1] * 12


@pytest.mark.parametrize("strategy", ["concat", *FITS])
def test_c03_a_document_is_cut_as_often_as_it_takes(strategy: Strategy) -> None:
    documents = [list(range(1, 11))]
    plan = bf.pack([10], 4, strategy=strategy)
    assert tokens_of(plan, documents) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert plan.starts.tolist() == [0, 4, 8]
    assert plan.split_documents == 1


@pytest.mark.parametrize("times", [1, 2, 3, 1000])
@pytest.mark.parametrize("strategy", ["concat", *FITS])
def test_c03_an_exact_multiple_leaves_no_empty_bin(strategy: Strategy, times: int) -> None:
    plan = bf.pack([4 * times], 4, strategy=strategy)
    assert plan.lengths.tolist() == [4] * times
    assert plan.starts.tolist() == list(range(0, 4 * times, 4))
    assert plan.num_bins == times
    assert plan.split_documents == (times > 1)
    assert plan.utilization == 1


def test_c04_a_second_cut_starts_where_the_first_ended() -> None:
    documents = [[i] * i for i in range(5, 10)]
    stream = [token for document in documents for token in document]
    plan = bf.pack([len(d) for d in documents], 4, strategy="concat")
    assert tokens_of(plan, documents) == [stream[i : i + 4] for i in range(0, 35, 4)]
    assert plan.num_bins == 9
    assert [length for _, _, length in bins_of(plan)[1]] == [1, 3]
    assert [length for _, _, length in bins_of(plan)[8]] == [3]


@pytest.mark.parametrize("strategy", FITS)
def test_c05_bins_still_open_at_the_end_are_delivered(strategy: Strategy) -> None:
    plan = bf.pack([6] * 5, 8, strategy=strategy)
    assert bins_of(plan) == [[(d, 0, 6)] for d in range(5)]
    assert plan.num_tokens == 30


@pytest.mark.parametrize("strategy", FITS)
def test_c10_dropping_leaves_no_empty_bin(strategy: Strategy) -> None:
    none = bf.pack([12], 10, strategy=strategy, overlong="drop")
    assert none.num_bins == 0
    assert none.bin_offsets.tolist() == [0]
    assert (none.dropped_documents, none.dropped_tokens) == (1, 12)
    assert none.utilization is None
    one = bf.pack([12, 3], 10, strategy=strategy, overlong="drop")
    assert bins_of(one) == [[(1, 0, 3)]]


def test_c44_tokens_and_starts_are_counted_in_64_bits() -> None:
    tokens, epochs, capacity = 2_600_000_000_000, 4, 2**30
    plan = bf.pack([tokens] * epochs, capacity, strategy="concat")
    assert plan.num_tokens == 10_400_000_000_000
    assert plan.num_bins == plan.lower_bound == -(-tokens * epochs // capacity) == 9_686
    assert plan.starts[-1] == 9_685 * capacity - 3 * tokens
    assert plan.starts.max() > 2**31
    assert plan.documents[plan.bin_offsets[5_000]] == 5_000 * capacity // tokens


def test_c44_counts_are_whole_numbers_not_floats() -> None:
    plan = bf.pack([16_777_218 - 2**24, 2**24], 2, strategy="concat")
    assert plan.num_bins == plan.lower_bound == 8_388_609
    odd = bf.pack([2**24 + 1], 2, strategy="concat")
    assert odd.num_bins == 8_388_609
    assert odd.lengths[-1] == 1


@pytest.mark.parametrize("strategy", ["concat", *FITS])
def test_c44_the_greatest_total_is_exact(strategy: Strategy) -> None:
    plan = bf.pack([2**31 - 1] * 3 + [2**31 - 2], 2**31 - 1, strategy=strategy)
    assert plan.num_tokens == 4 * (2**31 - 1) - 1
    assert plan.num_bins == plan.lower_bound == 4
    with pytest.raises(bf.PlanError, match="number 1 have more than 2\\^63 - 1 tokens"):
        bf.pack([2**63 - 1, 1], 2**31 - 1, strategy=strategy)


@pytest.mark.parametrize("strategy", FITS)
def test_c94_dropped_documents_and_tokens_are_counted(strategy: Strategy) -> None:
    plan = bf.pack([12, 3, 9], 8, strategy=strategy, overlong="drop")
    assert bins_of(plan) == [[(1, 0, 3)]]
    assert (plan.dropped_documents, plan.dropped_tokens) == (2, 21)
    report = plan.report()
    assert "2 dropped" in report
    assert "21 lost" in report


@pytest.mark.parametrize("capacity", [1024, 2048, 2999, 3000])
@pytest.mark.parametrize("strategy", FITS)
def test_c95_a_document_is_cut_at_the_capacity_and_nowhere_else(
    strategy: Strategy, capacity: int
) -> None:
    plan = bf.pack([3000], capacity, strategy=strategy, overlong="truncate")
    assert plan.lengths.tolist() == [capacity]
    assert plan.dropped_tokens == 3000 - capacity
    assert plan.truncated_documents == (capacity < 3000)


def test_c95_the_settings_in_force_are_part_of_the_plan() -> None:
    plan = bf.pack(np.array([3000]), 2048)
    assert (plan.capacity, plan.strategy, plan.overlong) == (2048, "best_fit_decreasing", "split")
    assert "2,048" in plan.report()
