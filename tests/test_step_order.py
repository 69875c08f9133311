"""balance="attention" and packing="bucket" in the loader: the same bins in an order of even steps,
which any split of the global batch and any resume keeps."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import corpus_of

SEQ_LEN = 16
EPOCHS = 3
MODES = ({"balance": "attention"}, {"packing": "bucket"})
SPLITS = ((1, 1, 12), (1, 12, 1), (2, 6, 1), (3, 4, 1), (4, 3, 1), (12, 1, 1), (2, 2, 3), (3, 1, 4))


def ranks_of(lengths, split, **how):
    """One loader a rank, for (world_size, batch_size, accumulate)."""
    world_size, batch_size, accumulate = split
    return [
        bf.DataLoader(
            corpus_of(lengths), seq_len=SEQ_LEN, window=9, seed=3, num_workers=0, rank=rank,
            world_size=world_size, batch_size=batch_size, accumulate=accumulate, **how,
        )
        for rank in range(world_size)
    ]  # fmt: skip


def rows_of(batch):
    """The pieces of each row of a batch."""
    width = batch["input_ids"].shape[1]
    rows = [[] for _ in range(len(batch["input_ids"]))]
    cu = np.asarray(batch.cu_seqlens).tolist()
    for s, d in enumerate(batch.documents):
        if d >= 0:
            rows[cu[s] // width].append((int(d), int(batch.starts[s]), cu[s + 1] - cu[s]))
    return [row for row in rows if row]


def cost_of(rows):
    return sum(n * n for row in rows for _, _, n in row)


def deliver(loaders, batches, epochs=EPOCHS):
    """Rows of each rank of each batch [batches][ranks], up to the end of `epochs`, and a state."""
    found = []
    iterators = [iter(loader) for loader in loaders]
    while len(found) < batches:
        together = [next(iterator, None) for iterator in iterators]
        if together[0] is not None:
            found.append([rows_of(batch) for batch in together])
            continue
        assert together == [None] * len(loaders), "ranks end together"
        if loaders[0].state_dict()["cursor"]["epoch"] >= epochs:
            break
        iterators = [iter(loader) for loader in loaders]
    states = [json.dumps(loader.state_dict()) for loader in loaders]
    assert len(set(states)) == 1, "one global state"
    return found, json.loads(states[0])


def all_rows(found):
    return sorted(row for batch in found for rank in batch for row in rank)


lengths_lists = st.lists(st.integers(1, 40), min_size=5, max_size=60)
modes = st.sampled_from(MODES)


@settings(max_examples=40, deadline=None)
@given(
    lengths=lengths_lists,
    splits=st.lists(st.sampled_from(SPLITS), min_size=2, max_size=4),
    batches=st.integers(0, 7),
    shuffle=st.booleans(),
    mode=modes,
)
@pytest.mark.filterwarnings("ignore:.*had no effect")
def test_any_split_of_the_global_batch_goes_on_with_the_same_bins(
    lengths, splits, batches, shuffle, mode
):
    how = {"shuffle": shuffle, **mode}
    one_by_one, _ = deliver(ranks_of(lengths, SPLITS[0], **how), 10**6)
    order = [row for (rows,) in one_by_one for row in rows]
    at, state = 0, None
    for number, split in enumerate(splits):
        loaders = ranks_of(lengths, split, **how)
        for loader in loaders if state else ():
            loader.load_state_dict(state)
        found, state = deliver(loaders, 10**6 if number == len(splits) - 1 else batches)
        for batch in found:
            rows = sorted(row for rank in batch for row in rank)
            assert rows == sorted(order[at : at + len(rows)])
            at += len(rows)
        if at == len(order):
            break
    assert at == len(order)


@settings(max_examples=60, deadline=None)
@given(
    lengths=lengths_lists,
    changes=st.lists(
        st.tuples(st.sampled_from([(1, 1, 1), (1, 3, 2), (2, 2, 1), (3, 1, 3), (5, 1, 1)]),
                  st.integers(0, 9)),
        min_size=1, max_size=5,
    ),
    shuffle=st.booleans(),
    mode=modes,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*had no effect")
def test_a_change_of_the_global_batch_loses_nothing_and_repeats_nothing(
    lengths, changes, shuffle, mode
):
    how = {"shuffle": shuffle, **mode}
    whole, _ = deliver(ranks_of(lengths, (1, 4, 1), **how), 10**6)
    found, state = [], None
    for number, (split, batches) in enumerate(changes):
        loaders = ranks_of(lengths, split, **how)
        for loader in loaders if state else ():
            loader.load_state_dict(state, allow_batch_change=True)
        last = number == len(changes) - 1
        some, state = deliver(loaders, 10**6 if last else batches)
        found += some
        if len(all_rows(found)) == len(all_rows(whole)):
            break  # a state behind the end begins an epoch more
        # A state says where it stands whoever reads it: going on from it gives the same rows.
        if not last:
            rest = [deliver(again, 10**6)[0] for again in reloaded(lengths, split, state, how)]
            assert rest[0] == rest[1]
            assert all_rows(found + rest[0]) == all_rows(whole)
    assert all_rows(found) == all_rows(whole)


def reloaded(lengths, split, state, how):
    for _ in range(2):
        loaders = ranks_of(lengths, split, **how)
        for loader in loaders:
            loader.load_state_dict(state)
        yield loaders


@settings(max_examples=40, deadline=None)
@given(
    lengths=lengths_lists,
    split=st.sampled_from(SPLITS),
    shuffle=st.booleans(),
    packing=st.sampled_from(["streaming", "best_fit_decreasing", "concat", "pad"]),
)
def test_the_bins_of_each_window_are_those_without_balance(lengths, split, shuffle, packing):
    how = {"shuffle": shuffle, "packing": packing}
    plain = ranks_of(lengths, split, **how)
    even = ranks_of(lengths, split, **how, balance="attention")
    bins = [deliver(loaders, 10**6, 1)[0] for loaders in (plain, even)]
    assert all_rows(bins[0]) == all_rows(bins[1])
    sizes = [
        np.diff(np.asarray(plain[0]._plan.window(0, w)["bin_offsets"])).size
        for w in range(plain[0]._plan.num_windows(0))
    ]
    in_order = [[row for rows in itertools.chain(*batches) for row in rows] for batches in bins]
    if split[0] == 1:  # a single rank delivers in the order of the plan
        at = 0
        for size in sizes:
            a, b = (sorted(rows[at : at + size]) for rows in in_order)
            assert a == b
            at += size
    totals = [loaders[0].stats().all_ranks for loaders in (plain, even)]
    assert totals[0] == totals[1]


@settings(max_examples=60, deadline=None)
@given(
    lengths=lengths_lists,
    split=st.sampled_from(SPLITS),
    how=st.sampled_from([{}, {"packing": "concat"}, {"packing": "pad"}, *MODES]),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_imbalance_is_that_of_the_batches_delivered(lengths, split, how, drop_last, shuffle):
    loaders = ranks_of(lengths, split, **how, drop_last=drop_last, shuffle=shuffle)
    assert loaders[0].stats().imbalance is None
    accumulate = split[2]
    found = []
    for epoch in range(2):
        batches, _ = deliver(loaders, 10**6, epoch + 1)
        for first in range(0, len(batches), accumulate):
            step = batches[first : first + accumulate]
            if sum(len(rank) for batch in step for rank in batch) < np.prod(split):
                continue  # incomplete
            costs = [sum(cost_of(batch[rank]) for batch in step) for rank in range(split[0])]
            found.append(max(costs) / np.mean(costs))
    for loader in loaders:
        stats = loader.stats()
        assert stats.steps == len(found)
        assert stats.imbalance == (pytest.approx(np.mean(found)) if found else None)


def test_more_ranks_than_work_can_be_counted_for_are_refused():
    how = {"seq_len": 4, "balance": "attention", "rank": 0, "num_workers": 0}
    loader = bf.DataLoader(corpus_of([4, 1]), world_size=2**20, **how)
    assert [batch.num_tokens for batch in loader] == [4]
    with pytest.raises(bf.PlanError, match="world_size is 1048577; it must be at most 1048576"):
        next(iter(bf.DataLoader(corpus_of([4, 1]), world_size=2**20 + 1, **how)))


def test_a_lap_has_an_imbalance_of_its_own():
    (loader,) = [bf.DataLoader(corpus_of([4, 1, 2, 2]), seq_len=4, packing="pad", world_size=2,
                               rank=0, num_workers=0)]  # fmt: skip
    iterator = iter(loader)
    next(iterator)
    assert loader.stats(lap=True).imbalance == pytest.approx(16 / 8.5)
    next(iterator)
    lap = loader.stats(lap=True)
    assert (lap.steps, lap.imbalance) == (1, pytest.approx(1))
    assert loader.stats(lap=True).imbalance is None
    assert loader.stats().imbalance == pytest.approx((16 / 8.5 + 1) / 2)


@pytest.mark.parametrize("packing", ["streaming", "best_fit_decreasing"])
@pytest.mark.parametrize("accumulate", [1, 4])
def test_attention_work_is_even_to_five_percent(packing, accumulate):
    drawn = np.random.default_rng(1).lognormal(4, 1, 20_000)
    corpus = corpus_of(np.clip(drawn, 1, 512).astype(int).tolist(), np.int32, 1 << 10)
    figures = []
    for balance in (None, "attention"):
        loader = bf.DataLoader(
            corpus, seq_len=512, packing=packing, balance=balance, shuffle=True, rank=0,
            world_size=8, accumulate=accumulate, window=4096, fields=["document_ids"],
        )  # fmt: skip
        for _ in loader:
            pass
        figures.append(loader.stats())
    plain, even = figures
    assert plain.imbalance > 1.4
    assert even.imbalance < 1.05
    assert even.all_ranks == plain.all_ranks, "utilization too"


def test_steps_are_not_in_the_order_of_their_work():
    lengths = np.random.default_rng(0).integers(1, 17, 3000).tolist()
    for shuffle in (False, True):
        loaders = ranks_of(lengths, (1, 4, 1), balance="attention", shuffle=shuffle)
        costs = [sum(map(cost_of, batch)) for batch in deliver(loaders, 10**6, 1)[0]]
        places = np.argsort(np.argsort(costs))
        assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < 0.1


def test_a_window_begun_with_another_global_batch_keeps_its_order():
    lengths = list(range(1, 17)) * 4
    (loader,) = ranks_of(lengths, (1, 2, 1), packing="bucket")
    before, state = deliver([loader], 2)
    (resumed,) = ranks_of(lengths, (1, 3, 1), packing="bucket")
    with pytest.raises(bf.StateError, match="bins_per_step: 2 in the state, 3 here"):
        resumed.load_state_dict(state)
    resumed.load_state_dict(state, allow_batch_change=True)
    cursor = resumed.state_dict()["cursor"]
    assert (cursor["bin"], cursor["order_step"], cursor["order_phase"]) == (4, 2, 0)
    (rest,), _ = deliver([resumed], 1)
    (whole,) = ranks_of(lengths, (1, 1, 2), packing="bucket")
    expected, _ = deliver([whole], 7)
    assert [row for (rows,) in before for row in rows] + rest[0] == [
        row for (rows,) in expected for row in rows
    ]
