"""Resume after any batch, on any geometry of the same global batch, equals no interruption."""

import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import brimful as bf
from resuming import make, saved
from truth import all_pieces, corpus_of, mixed, pieces, put_at, same

EPOCHS = 3


def run(loader, epochs):
    return [batch for _ in range(epochs) for batch in loader]


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=30),
    batch_size=st.integers(1, 3),
    accumulate=st.integers(1, 3),
    drop_last=st.booleans(),
    overlong=st.sampled_from(["split", "truncate", "drop"]),
    packing=st.sampled_from(["concat", "best_fit_decreasing", "streaming", "bucket"]),
    balance=st.sampled_from([None, "attention"]),
    stop=st.integers(0, 60),
    stop_again=st.integers(0, 20),
    num_workers=st.sampled_from([0, 1, 4]),
    depth=st.integers(1, 5),
)
@pytest.mark.filterwarnings("ignore:.*tokens were dropped", "ignore:.*had no effect")
def test_resume_equals_no_interruption_over_three_epochs(
    lengths, batch_size, accumulate, drop_last, overlong, packing, balance, stop, stop_again,
    num_workers, depth,
):  # fmt: skip
    how = {
        "batch_size": batch_size,
        "accumulate": accumulate,
        "drop_last": drop_last,
        "overlong": overlong,
        "packing": packing,
        "balance": balance,
    }
    reference = make(lengths, **how)
    whole = run(reference, EPOCHS)
    stop, stop_again = min(stop, len(whole)), min(stop_again, max(0, len(whole) - stop))

    found = []
    loader = make(lengths, **how)
    for count in (stop, stop_again, len(whole)):  # two interruptions, then to the end
        iterator = endless(loader)
        while count and len(found) < len(whole):
            found.append(next(iterator))
            count -= 1
        if len(found) < len(whole):
            state = saved(loader)
            loader = make(lengths, **how, num_workers=num_workers, depth=depth)
            loader.load_state_dict(state)
    assert len(found) == len(whole)
    assert all(same(a, b) for a, b in zip(found, whole, strict=True))


def endless(loader):
    """Epoch after epoch; one without a batch (all bins dropped) does not end them."""
    for _ in range(3 * EPOCHS):
        yield from loader


@pytest.mark.parametrize("how", [{}, {"balance": "attention"}, {"packing": "bucket"}])
@pytest.mark.parametrize("shuffle", [True, False])
def test_resume_after_every_batch(shuffle, how):
    lengths = [5, 30, 2, 8, 8, 13, 1, 0, 16, 9, 4, 40]
    how = {"shuffle": shuffle, "batch_size": 2, **how}
    whole = [pieces(b) for b in run(make(lengths, **how), 2)]
    for stop in range(len(whole)):
        loader = make(lengths, **how)
        iterator = endless(loader)
        for _ in range(stop):
            next(iterator)
        state = saved(loader)
        resumed = make(lengths, **how, num_workers=2)
        resumed.load_state_dict(state)
        iterator = endless(resumed)
        assert [pieces(next(iterator)) for _ in whole[stop:]] == whole[stop:]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("mode", [{}, {"balance": "attention"}, {"packing": "bucket"}])
@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_counts_survive_a_resume(accumulate, mode):
    lengths = [5, 30, 2, 8, 8, 13, 1, 0, 16, 9, 4, 40] * 3
    how = {"overlong": "truncate", "accumulate": accumulate, "drop_last": True, "batch_size": 2}
    how |= mode
    reference = make(lengths, **how)
    total = len(run(reference, 2))
    for stop in range(total):
        loader = make(lengths, **how)
        iterator = endless(loader)
        for _ in range(stop):
            next(iterator)
        resumed = make(lengths, **how)
        resumed.load_state_dict(saved(loader))
        while resumed.state_dict()["cursor"]["epoch"] < 2:
            list(resumed)
        assert resumed.stats().all_ranks == reference.stats().all_ranks
        assert resumed.stats().exposure == reference.stats().exposure
        assert resumed.stats().dropped == reference.stats().dropped


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=5, max_size=60),
    splits=st.lists(
        st.sampled_from([(1, 12, 1), (2, 6, 1), (3, 4, 1), (4, 3, 1), (6, 2, 1), (12, 1, 1),
                         (2, 2, 3), (1, 3, 4), (3, 2, 2), (1, 1, 12)]),
        min_size=2, max_size=4,
    ),
    batches=st.integers(0, 7),
    drop_last=st.booleans(),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*tokens were dropped", "ignore:.*had no effect")
def test_c80_any_split_of_the_global_batch_goes_on_with_the_same_bins(
    lengths, splits, batches, drop_last
):
    def rows_of(batch):
        """The pieces of each row of a rank's batch."""
        rows = [[] for _ in range(len(batch["input_ids"]))]
        for s, d in enumerate(batch.documents):
            if d >= 0:
                rows[int(batch.cu_seqlens[s]) // 16].append((int(d), int(batch.starts[s])))
        return [row for row in rows if row]

    def global_order(loaders, limit):
        """Rows over all ranks in the order of the plan, batch by batch, to the end of EPOCHS."""
        order = []
        iterators = [iter(loader) for loader in loaders]
        while limit:
            round_ = [next(iterator, None) for iterator in iterators]
            if round_[0] is None:
                assert all(batch is None for batch in round_)
                if saved(loaders[0])["cursor"]["epoch"] >= EPOCHS:
                    break
                iterators = [iter(loader) for loader in loaders]
                continue
            per_rank = [rows_of(batch) for batch in round_]
            for j in range(max(len(rows) for rows in per_rank)):
                order += [rows[j] for rows in per_rank if j < len(rows)]
            limit -= 1
        states = [saved(loader) for loader in loaders]
        assert all(state == states[0] for state in states), "one global state"
        return order, states[0]

    def ranks(split):
        world_size, batch_size, accumulate = split
        return [
            make(lengths, world_size=world_size, batch_size=batch_size, accumulate=accumulate,
                 rank=rank, drop_last=drop_last)
            for rank in range(world_size)
        ]  # fmt: skip

    whole, _ = global_order(ranks((1, 12, 1)), 10**6)
    found, state = [], None
    for number, split in enumerate(splits):
        loaders = ranks(split)
        put_at(loaders, state)
        last = number == len(splits) - 1
        order, state = global_order(loaders, 10**6 if last else batches)
        found += order
        if len(found) == len(whole):  # a state behind the end begins an epoch more
            break
    assert found == whole


def test_c71_the_state_counts_in_named_units():
    loader = bf.DataLoader(corpus_of([4] * 20), seq_len=8)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    state = saved(loader)
    assert state["all_ranks"]["documents"] == 6
    assert state["all_ranks"]["bins"] == 3
    assert state["all_ranks"]["tokens"] == 24
    resumed = bf.DataLoader(corpus_of([4] * 20), seq_len=8)
    resumed.load_state_dict(state)
    assert all_pieces(resumed)[0] == (6, 0, 4)


def test_c73_state_is_complete_at_awkward_moments():
    lengths = [4] * 40
    whole = [pieces(b) for b in make(lengths)]
    for num_workers in (0, 4):
        fresh = make(lengths, num_workers=num_workers)
        before = saved(fresh)
        resumed = make(lengths, num_workers=num_workers)
        resumed.load_state_dict(before)
        assert [pieces(b) for b in resumed] == whole
        iterator = iter(fresh)
        before_first = saved(fresh)
        assert before_first["cursor"] == before["cursor"]
        for _ in range(3):
            next(iterator)
        again = make(lengths, num_workers=num_workers)
        again.load_state_dict(saved(fresh))
        iterator = iter(again)
        next(iterator), next(iterator)
        last = make(lengths, num_workers=num_workers)
        last.load_state_dict(saved(again))
        assert [pieces(b) for b in last] == whole[5:]


def test_c75_later_epochs_are_whole_again():
    corpus = corpus_of([4] * 128)
    loader = make(corpus=corpus, seq_len=4, batch_size=2)
    iterator = iter(loader)
    for _ in range(61):
        next(iterator)
    resumed = make(corpus=corpus, seq_len=4, batch_size=2)
    resumed.load_state_dict(saved(loader))
    assert len(resumed) == 3
    lengths, documents = [], []
    for _ in range(3):
        batches = list(resumed)
        lengths.append(len(batches))
        documents.append(sorted(d for b in batches for d, _, _ in pieces(b)))
    assert lengths == [3, 64, 64]
    assert len(resumed) == 64
    assert documents[1] == documents[2] == list(range(128))


@pytest.mark.parametrize("noticed", [False, True])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_c76_a_state_at_the_end_of_an_epoch_begins_the_next(noticed, num_workers):
    corpus = corpus_of([4] * 512)
    how = {"corpus": corpus, "seq_len": 4, "batch_size": 8, "window": 100}
    whole = [pieces(b) for b in run(make(**how), 2)]
    loader = make(**how, num_workers=num_workers)
    iterator = iter(loader)
    for _ in range(64):
        next(iterator)
    if noticed:
        assert next(iterator, None) is None
    state = saved(loader)
    resumed = make(**how, num_workers=num_workers)
    resumed.load_state_dict(state)
    assert len(resumed) == 64
    assert [pieces(b) for b in resumed] == whole[64:]


@pytest.mark.parametrize(("num_workers", "depth"), [(0, 1), (1, 1), (2, 4), (4, 16)])
def test_c77_c79_the_cursor_counts_deliveries_of_all_ranks(num_workers, depth):
    corpus = corpus_of([4] * 24)

    def rank0(**how):
        return bf.DataLoader(
            corpus, seq_len=4, rank=0, world_size=4, num_workers=num_workers, depth=depth, **how
        )

    loader = rank0()
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    state = saved(loader)
    assert state["cursor"]["bin"] == state["all_ranks"]["documents"] == 12
    resumed = rank0()
    resumed.load_state_dict(state)
    assert [d for d, _, _ in all_pieces(resumed)] == [12, 16, 20]
    other = bf.DataLoader(corpus, seq_len=4, rank=1, world_size=4)
    other.load_state_dict(state)
    assert [d for d, _, _ in all_pieces(other)] == [13, 17, 21]


def test_c81_any_ranks_state_serves_every_rank():
    lengths = np.random.default_rng(0).integers(1, 16, 60).tolist()
    loaders = [make(lengths, rank=r, world_size=2) for r in range(2)]
    iterators = [iter(loader) for loader in loaders]
    for _ in range(5):
        for iterator in iterators:
            next(iterator)
    states = [saved(loader) for loader in loaders]
    assert states[0] == states[1]
    wanted = [[pieces(b) for b in iterator] for iterator in iterators]
    for rank in range(2):
        resumed = make(lengths, rank=rank, world_size=2)
        resumed.load_state_dict(states[1 - rank])
        assert [pieces(b) for b in resumed] == wanted[rank]


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=30),
    packing=st.sampled_from(["best_fit", "streaming", "bucket"]),
    overlong=st.sampled_from(["drop", "truncate"]),
    cuts=st.lists(st.tuples(st.integers(2, 12), st.integers(0, 5)), min_size=1, max_size=3),
)
@pytest.mark.filterwarnings("ignore:.*tokens were dropped", "ignore:.*had no effect")
def test_steps_cut_off_by_a_change_of_the_global_batch_count_their_losses_once(
    lengths, packing, overlong, cuts
):
    how = {"packing": packing, "overlong": overlong}
    reference = make(lengths, **how)
    left = len(list(reference))  # bins; each is a batch
    assume(left > 0)
    loader = make(lengths, accumulate=7, **how)
    for accumulate, stop in cuts:
        batches = list(islice(loader, min(stop, left - 1)))
        left -= len(batches)
        state = saved(loader)
        loader = make(lengths, accumulate=accumulate, **how)
        loader.load_state_dict(state, allow_batch_change=True)
    assert len(list(loader)) == left
    found, expected = saved(loader), saved(reference)
    assert found["exposure"] == expected["exposure"]
    for name in expected["all_ranks"].keys() - {"slots", "dummy_rows"}:
        assert found["all_ranks"][name] == expected["all_ranks"][name], name


def test_a_state_keeps_its_place_when_its_epoch_is_set_again():
    loader = make([4] * 10, seq_len=4)
    iterator = iter(loader)
    next(iterator)
    rest = saved(loader)
    resumed = make([4] * 10, seq_len=4)
    resumed.load_state_dict(rest)
    resumed.set_epoch(0)  # as trainers do at the start of each epoch
    assert len(all_pieces(resumed)) == 9
    resumed.set_epoch(1)
    assert len(all_pieces(resumed)) == 10


def test_a_state_speaks_of_the_epoch_that_was_set():
    loader = make([4] * 10, seq_len=4)
    list(loader)
    loader.set_epoch(7)
    assert saved(loader)["cursor"]["epoch"] == 7
    resumed = make([4] * 10, seq_len=4)
    resumed.load_state_dict(saved(loader))
    assert all_pieces(resumed) == all_pieces(loader)


def test_s01_order_of_later_shards_survives_a_resume():
    corpus = bf.open([np.full(4, shard * 4 + i) for shard in range(3) for i in range(4)])
    whole = all_pieces(make(corpus=corpus, seq_len=4, seed=42))
    loader = make(corpus=corpus, seq_len=4, seed=42)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    resumed = make(corpus=corpus, seq_len=4, seed=42)
    resumed.load_state_dict(saved(loader))
    assert all_pieces(resumed) == whole[5:]


def test_a_state_of_64_sources_is_small():
    corpus = mixed({f"source-{s}": [4] * 5 for s in range(64)}, weights=[1.0] * 64)
    loader = make(corpus=corpus, seq_len=4)
    list(loader)
    assert len(json.dumps(loader.state_dict())) < 4096
