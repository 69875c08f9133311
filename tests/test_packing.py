"""Laws of the packers: nothing lost, nothing twice, and the very bins of the textbook."""

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import brimful as bf
from brimful.pack_plan import PackPlan
from brimful.packing import Overlong, Strategy

STRATEGIES: tuple[Strategy, ...] = (
    "concat",
    "first_fit_decreasing",
    "best_fit_decreasing",
    "best_fit",
    "streaming",
    "balanced",
    "pad",
)
FITS = STRATEGIES[1:]  # they cut by the overlong rule only
BY_THE_BOOK: tuple[Strategy, ...] = (
    "first_fit_decreasing",
    "best_fit_decreasing",
    "best_fit",
    "pad",
)
RULES: tuple[Overlong, ...] = ("split", "truncate", "drop")

Piece = tuple[int, int, int]  # document, start, length


def bins_of(plan: PackPlan) -> list[list[Piece]]:
    pieces = list(
        zip(plan.documents.tolist(), plan.starts.tolist(), plan.lengths.tolist(), strict=True)
    )
    return [pieces[a:b] for a, b in itertools.pairwise(plan.bin_offsets.tolist())]


def textbook(
    lengths: Sequence[int], capacity: int, strategy: Strategy, overlong: Overlong
) -> list[list[Piece]]:
    """Places one piece after the other and looks at every bin for each: O(n^2), plain to see."""
    pieces: list[Piece] = []
    for document, length in enumerate(lengths):
        if length <= capacity or overlong == "split":
            cuts = range(0, length, capacity)
            pieces += [(document, cut, min(capacity, length - cut)) for cut in cuts]
        elif overlong == "truncate":
            pieces.append((document, 0, capacity))
    if strategy == "pad":
        return [[piece] for piece in pieces]
    if strategy != "best_fit":
        pieces.sort(key=lambda piece: -piece[2])
    bins: list[list[Piece]] = []
    free: list[int] = []
    for piece in pieces:
        fitting = [b for b in range(len(bins)) if free[b] >= piece[2]]
        if not fitting:
            bins.append([piece])
            free.append(capacity - piece[2])
            continue
        b = fitting[0] if strategy == "first_fit_decreasing" else min(fitting, key=free.__getitem__)
        bins[b].append(piece)
        free[b] -= piece[2]
    return bins


@st.composite
def length_lists(draw: st.DrawFn) -> tuple[list[int], int]:
    """Lengths and a capacity: many equal ones, none to many over the capacity, empty documents."""
    capacity = draw(st.sampled_from([1, 2, 3, 7, 10, 16, 100, 70_000, 10**6, 10**9, 2**31 - 1]))
    longest = draw(st.sampled_from([capacity // 4 + 1, capacity // 2 + 1, capacity, 3 * capacity]))
    distinct = draw(st.lists(st.integers(0, longest), min_size=1, max_size=12))
    lengths = draw(st.lists(st.sampled_from(distinct), max_size=60))
    return lengths, capacity


def check_laws(plan: PackPlan, lengths: np.ndarray, capacity: int) -> None:
    """Everything that holds for any plan, whatever the strategy."""
    offsets = plan.bin_offsets
    assert offsets.dtype == plan.documents.dtype == plan.starts.dtype == np.int64
    assert plan.lengths.dtype == np.int32
    assert plan.capacity == capacity
    assert plan.num_bins == len(offsets) - 1
    assert offsets[0] == 0
    assert offsets[-1] == len(plan.documents) == len(plan.starts) == len(plan.lengths)
    assert np.all(np.diff(offsets) > 0), "no empty bin"
    assert np.all(plan.lengths > 0)

    filled = np.add.reduceat(plan.lengths, offsets[:-1], dtype=np.int64) if plan.num_bins else []
    assert np.all(np.asarray(filled) <= capacity)
    assert plan.num_tokens == int(np.sum(filled))
    assert plan.lower_bound <= plan.num_bins
    assert plan.lower_bound >= -(-plan.num_tokens // capacity)
    if plan.num_bins:
        assert plan.utilization == plan.num_tokens / (plan.num_bins * capacity)
    else:
        assert plan.utilization is None

    kept = lengths.copy()
    overlong = lengths > capacity
    if plan.strategy != "concat" and plan.overlong == "truncate":
        kept[overlong] = capacity
    if plan.strategy != "concat" and plan.overlong == "drop":
        kept[overlong] = 0
    # By document and start, each piece begins where the one before ended: each token kept once.
    order = np.lexsort((plan.starts, plan.documents))
    documents, starts = plan.documents[order], plan.starts[order]
    ends = starts + plan.lengths[order]
    first = np.diff(documents, prepend=-1) != 0
    last = np.diff(documents, append=len(lengths)) != 0
    assert np.array_equal(documents[first], np.flatnonzero(kept))
    assert np.all(starts[first] == 0)
    assert np.array_equal(starts[~first], ends[~last])
    assert np.array_equal(ends[last], kept[kept > 0])

    assert plan.empty_documents == np.count_nonzero(lengths == 0)
    assert plan.dropped_documents == np.count_nonzero((kept == 0) & (lengths > 0))
    assert plan.truncated_documents == np.count_nonzero((kept < lengths) & (kept > 0))
    assert plan.dropped_tokens == np.sum(lengths - kept)
    assert plan.split_documents == np.count_nonzero(~first & last)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=length_lists(), overlong=st.sampled_from(RULES))
@example(case=([], 5), overlong="split")
@example(case=([0], 5), overlong="split")
@example(case=([5], 5), overlong="split")
def test_each_token_is_placed_once_or_counted_as_lost(
    strategy: Strategy, case: tuple[list[int], int], overlong: Overlong
) -> None:
    lengths, capacity = case
    plan = bf.pack(lengths, capacity, strategy=strategy, overlong=overlong)
    check_laws(plan, np.array(lengths, np.int64), capacity)


@pytest.mark.parametrize("strategy", BY_THE_BOOK)
@given(case=length_lists(), overlong=st.sampled_from(RULES))
def test_bins_are_those_of_the_textbook(
    strategy: Strategy, case: tuple[list[int], int], overlong: Overlong
) -> None:
    lengths, capacity = case
    plan = bf.pack(lengths, capacity, strategy=strategy, overlong=overlong)
    assert bins_of(plan) == textbook(lengths, capacity, strategy, overlong)


@pytest.mark.parametrize("capacity", [97, 97_000])
@pytest.mark.parametrize("strategy", BY_THE_BOOK)
def test_bins_of_many_documents_are_those_of_the_textbook(
    strategy: Strategy, capacity: int
) -> None:
    generator = np.random.default_rng(7)
    lengths = np.rint(generator.lognormal(np.log(capacity / 6), 1.0, 700)).astype(np.int64)
    plan = bf.pack(lengths, capacity, strategy=strategy)
    assert bins_of(plan) == textbook(lengths.tolist(), capacity, strategy, "split")


@given(case=length_lists())
def test_concat_is_the_stream_of_tokens_cut_at_the_capacity(case: tuple[list[int], int]) -> None:
    lengths, capacity = case
    plan = bf.pack(lengths, capacity, strategy="concat")
    assert plan.num_bins == -(-sum(lengths) // capacity)
    firsts = np.concatenate([[0], np.cumsum(lengths)])[plan.documents] + plan.starts
    assert firsts.tolist() == [0, *np.cumsum(plan.lengths, dtype=np.int64)[:-1]][: len(firsts)]
    filled = [sum(length for _, _, length in pieces) for pieces in bins_of(plan)]
    assert all(tokens == capacity for tokens in filled[:-1])


@given(case=length_lists(), strategy=st.sampled_from(STRATEGIES), overlong=st.sampled_from(RULES))
def test_the_same_arguments_give_the_same_plan(
    case: tuple[list[int], int], strategy: Strategy, overlong: Overlong
) -> None:
    lengths, capacity = case
    once = bf.pack(lengths, capacity, strategy=strategy, overlong=overlong)
    again = bf.pack(np.array(lengths, np.int64), capacity, strategy=strategy, overlong=overlong)
    assert bins_of(once) == bins_of(again)


def test_plans_made_at_the_same_time_do_not_disturb_each_other() -> None:
    generator = np.random.default_rng(3)
    corpora = [generator.integers(0, 9000, 20_000) for _ in range(4)]
    alone = [bf.pack(lengths, 4096) for lengths in corpora]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda lengths: bf.pack(lengths, 4096), corpora))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one.documents, other.documents)
        assert np.array_equal(one.starts, other.starts)
        assert np.array_equal(one.bin_offsets, other.bin_offsets)


def minimum_bins(lengths: list[int], capacity: int) -> int:
    """The least number of bins, by trying every way to put each piece."""

    def best(i: int, free: tuple[int, ...], limit: int) -> int:
        if len(free) >= limit or i == len(lengths):
            return min(len(free), limit)
        for b in range(len(free)):
            if free[b] >= lengths[i]:
                rest = (*free[:b], free[b] - lengths[i], *free[b + 1 :])
                limit = best(i + 1, rest, limit)
        return best(i + 1, (*free, capacity - lengths[i]), limit)

    return best(0, (), len(lengths))


@given(st.lists(st.integers(1, 20), max_size=7))
def test_no_packing_at_all_has_fewer_bins_than_the_lower_bound(lengths: list[int]) -> None:
    plan = bf.pack(lengths, 20)
    least = minimum_bins(lengths, 20)
    assert plan.lower_bound <= least <= plan.num_bins


def test_the_lower_bound_sees_more_than_the_sum() -> None:
    # Six of 6 cannot share bins of 10, though their tokens would fit into four.
    assert bf.pack([6] * 6, 10).lower_bound == 6
    # The 7s leave no room for a 4, and two 4s a bin take three bins more.
    assert bf.pack([7] * 4 + [4] * 6, 10).lower_bound == 7
    assert bf.pack([7 * 10**8] * 4 + [4 * 10**8] * 6, 10**9).lower_bound == 7


def test_arrays_outlive_their_plan() -> None:
    documents = bf.pack(np.arange(1, 1000), 1000).documents
    assert sorted(documents.tolist()) == list(range(999))
