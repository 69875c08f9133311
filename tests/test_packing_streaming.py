"""Streaming: exact fills from a buffer, with the order kept."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import brimful as bf
from brimful.pack_plan import PackPlan
from brimful.packing import Overlong
from test_packing import RULES, Piece, bins_of, check_laws, length_lists

BUFFERS = st.sampled_from([1, 2, 3, 5, 16, 256, 2**16])


def best_subset(lengths: Sequence[int], most: int) -> list[int]:
    """Of the first lengths that have a subset of sum `most`, or of all: the items of one with the
    largest sum up to `most`, each sum by the items that reached it first."""
    ways: dict[int, list[int]] = {0: []}
    for item, length in enumerate(lengths):
        if most in ways:
            break
        for sum_, items in list(ways.items()):
            if sum_ + length <= most:
                ways.setdefault(sum_ + length, [*items, item])
    return ways[max(ways)]


def textbook(lengths: Sequence[int], capacity: int, buffer: int) -> list[list[Piece]]:
    """The same plan from lists and sums written out, for capacities up to 2**16."""
    pieces = [
        (document, cut, min(capacity, length - cut))
        for document, length in enumerate(lengths)
        for cut in range(0, length, capacity)
    ]
    coming = list(range(len(pieces)))
    waiting: list[int] = []
    bins: list[list[Piece]] = []
    flushed = False
    while coming or waiting:
        bin_: list[int] = []
        free = capacity
        while free:
            while coming and len(waiting) < buffer:
                if waiting and coming[0] - waiting[0] >= 3 * buffer:
                    break
                waiting.append(coming.pop(0))
            if not coming and not flushed and len(waiting) < buffer:
                waiting.sort(key=lambda i: -pieces[i][2])
                flushed = True
            if not waiting:
                break
            tokens = sum(pieces[i][2] for i in waiting)
            first = pieces[waiting[0]][2]
            if not bin_ or (first <= free and free * len(waiting) > 8 * tokens):
                taken = waiting[:1]
            else:
                fitting = [i for i in waiting if pieces[i][2] <= free]
                taken = [fitting[k] for k in best_subset([pieces[i][2] for i in fitting], free)]
            if not taken:
                break
            bin_ += taken
            waiting = [i for i in waiting if i not in taken]
            free -= sum(pieces[i][2] for i in taken)
        bins.append([pieces[i] for i in sorted(bin_)])
    return bins


def check_order(plan: PackPlan, buffer: int) -> None:
    """What is placed before a piece arrived less than 3B after it; and fewer than B pieces that
    arrived before it are placed after it."""
    arrivals = np.empty(len(plan.documents), np.int64)  # of each piece, in order of placing
    arrivals[np.lexsort((plan.starts, plan.documents))] = np.arange(len(arrivals))
    latest = np.maximum.accumulate(arrivals)
    assert np.all(latest - arrivals < 3 * buffer)
    # Placed at p, so that p pieces lie before it: at least its arrival less B - 1 of them.
    assert np.all(np.arange(len(arrivals)) > arrivals - buffer)


@given(case=length_lists(), overlong=st.sampled_from(RULES), buffer=BUFFERS)
@example(case=([100, 1], 100), overlong="split", buffer=1)
@example(case=([4] * 50 + [1], 10), overlong="split", buffer=2)
def test_tokens_and_order_are_kept(
    case: tuple[list[int], int], overlong: Overlong, buffer: int
) -> None:
    lengths, capacity = case
    plan = bf.pack(lengths, capacity, strategy="streaming", overlong=overlong, buffer=buffer)
    check_laws(plan, np.array(lengths, np.int64), capacity)
    check_order(plan, buffer)
    for pieces in bins_of(plan):
        assert pieces == sorted(pieces)


@given(
    capacity=st.sampled_from([1, 2, 7, 20, 64, 65, 127, 200]),
    buffer=st.sampled_from([1, 2, 3, 5, 16]),
    data=st.data(),
)
def test_bins_are_those_of_the_textbook(capacity: int, buffer: int, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 2 * capacity), max_size=60))
    plan = bf.pack(lengths, capacity, strategy="streaming", buffer=buffer)
    assert bins_of(plan) == textbook(lengths, capacity, buffer)


@pytest.mark.parametrize(("capacity", "buffer"), [(300, 40), (4096, 12), (1000, 7)])
def test_bins_of_many_documents_are_those_of_the_textbook(capacity: int, buffer: int) -> None:
    generator = np.random.default_rng(11)
    lengths = np.rint(generator.lognormal(np.log(capacity / 6), 1.0, 700)).astype(np.int64)
    plan = bf.pack(lengths, capacity, strategy="streaming", buffer=buffer)
    assert bins_of(plan) == textbook(lengths.tolist(), capacity, buffer)


@pytest.mark.parametrize("capacity", [2048, 131_072, 10**6, 2**31 - 1])
@pytest.mark.parametrize("buffer", [1, 7, 256])
def test_order_is_kept_among_many_documents(capacity: int, buffer: int) -> None:
    generator = np.random.default_rng(12)
    # A few too long to go together, and short ones that pass them by.
    lengths = np.where(
        generator.random(20_000) < 0.3,
        generator.integers(capacity // 2 + 1, capacity, 20_000, endpoint=True),
        generator.integers(1, capacity // 20, 20_000),
    )
    plan = bf.pack(lengths, capacity, strategy="streaming", buffer=buffer)
    check_laws(plan, lengths, capacity)
    check_order(plan, buffer)


@pytest.mark.parametrize(
    ("mean", "sigma", "capacity", "least"),
    [
        (600, 1.0, 4096, 0.999),
        (250, 0.9, 2048, 0.999),
        (6000, 1.0, 131_072, 0.999),
        (100_000, 1.0, 1_000_000, 0.99),
        (20_000_000, 1.0, 2**30, 0.99),
    ],
)
def test_broad_lengths_fill_bins_to_the_brim(
    mean: float, sigma: float, capacity: int, least: float
) -> None:
    generator = np.random.default_rng(13)
    drawn = generator.lognormal(np.log(mean) - sigma**2 / 2, sigma, 16_384)
    lengths = np.rint(drawn).clip(1, capacity).astype(np.int64)
    plan = bf.pack(lengths, capacity, strategy="streaming")
    # The tokens of the last bin are what there is left, however good the plan.
    assert plan.num_tokens >= least * (plan.num_bins - 1) * capacity
    check_order(plan, 256)


def test_a_bin_larger_than_the_buffer_goes_on_taking() -> None:
    plan = bf.pack([1] * 10_000, 2_500, strategy="streaming", buffer=3)
    assert plan.documents.tolist() == list(range(10_000))
    assert np.diff(plan.bin_offsets).tolist() == [2_500] * 4


@pytest.mark.parametrize("half", [2, 70_001, 10**6 + 3, 2**30 - 1])
def test_halves_of_a_bin_make_a_bin(half: int) -> None:
    plan = bf.pack([half] * 6 + [half - 1, half + 1], 2 * half, strategy="streaming")
    assert plan.num_bins == 4
    assert plan.utilization == 1


def test_of_equal_fills_the_oldest_documents_are_taken() -> None:
    plan = bf.pack([6, 5, 4, 4, 2, 2], 10, strategy="streaming", buffer=6)
    # 6 + 4; then, with nothing to come, longest first: 5 + 4, for 5 + 2 + 2 is no fuller.
    assert [[d for d, _, _ in pieces] for pieces in bins_of(plan)] == [[0, 2], [1, 3], [4, 5]]


@pytest.mark.parametrize("buffer", [1, 2, 4, 5, 6])
def test_c05_documents_still_waiting_at_the_end_are_delivered(buffer: int) -> None:
    plan = bf.pack([6] * 5, 8, strategy="streaming", buffer=buffer)
    assert bins_of(plan) == [[(d, 0, 6)] for d in range(5)]
    assert plan.num_tokens == 30


def test_c05_the_loader_delivers_what_waits_at_the_end_of_each_window() -> None:
    documents = [np.full(6, d, np.int64) for d in range(5)]
    loader = bf.DataLoader(bf.open(documents), seq_len=8, buffer=2, window=3)
    assert loader.config.packing == "streaming"
    rows = [batch["input_ids"][0][:6].tolist() for batch in loader]
    assert rows == [[d] * 6 for d in range(5)]


def test_the_buffer_is_part_of_a_loaders_plan() -> None:
    corpus = bf.open([np.arange(n, dtype=np.int64) for n in (3, 5, 2)])
    state = bf.DataLoader(corpus, seq_len=8, buffer=2).state_dict()
    same = bf.DataLoader(corpus, seq_len=8, buffer=2)
    same.load_state_dict(state)
    assert len(list(same)) == 2
    with pytest.raises(bf.StateError, match="buffer: 2 in the state, 3 here"):
        bf.DataLoader(corpus, seq_len=8, buffer=3).load_state_dict(state)
    # Other strategies have none.
    state = bf.DataLoader(corpus, seq_len=8, packing="best_fit", buffer=2).state_dict()
    other = bf.DataLoader(corpus, seq_len=8, packing="best_fit", buffer=3)
    other.load_state_dict(state)
    assert len(list(other)) == 2


@pytest.mark.parametrize("buffer", [0, -3, 2**16 + 1, 2.0, True])
def test_a_loaders_buffer_is_checked(buffer: int) -> None:
    with pytest.raises(bf.PlanError, match="buffer is"):
        bf.DataLoader(bf.open([np.arange(3)]), seq_len=8, buffer=buffer)
