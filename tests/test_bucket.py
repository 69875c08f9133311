"""packing="bucket": documents of like length in a batch, one a row, as wide as the longest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, check, corpus_of, pieces


def test_a_batch_is_as_wide_as_its_longest_row():
    loader = bf.DataLoader(
        corpus_of([3, 9, 5, 2, 8, 4]), seq_len=10, batch_size=2, packing="bucket", num_workers=0
    )
    batches = list(loader)
    for batch in batches:
        check(batch, loader)
    assert [pieces(batch) for batch in batches] == [
        [(0, 0, 3), (3, 0, 2)],  # steps come in the order of their earliest document
        [(1, 0, 9), (4, 0, 8)],
        [(2, 0, 5), (5, 0, 4)],
    ]
    assert [tuple(batch["input_ids"].shape) for batch in batches] == [(2, 3), (2, 9), (2, 5)]
    stats = loader.stats()
    assert (stats.bins, stats.slots, stats.tokens) == (6, 2 * (3 + 9 + 5), 31)
    assert stats.utilization == 31 / 34


def test_overlong_documents_are_cut_as_ever():
    loader = bf.DataLoader(corpus_of([11, 4]), seq_len=4, batch_size=2, packing="bucket")
    assert sorted(all_pieces(loader)) == [(0, 0, 4), (0, 4, 4), (0, 8, 3), (1, 0, 4)]
    assert loader.stats().split_documents == 1


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    world_size=st.integers(1, 4),
    batch_size=st.integers(1, 4),
    shuffle=st.booleans(),
)
def test_varlen_flattens_the_same_rows_without_padding(lengths, world_size, batch_size, shuffle):
    for rank in range(world_size):
        how = {"seq_len": 20, "batch_size": batch_size, "packing": "bucket", "shuffle": shuffle,
               "world_size": world_size, "rank": rank, "num_workers": 0}  # fmt: skip
        loaders = [bf.DataLoader(corpus_of(lengths), **how, layout=x) for x in ("rows", "varlen")]
        rows, flat = (list(loader) for loader in loaders)
        assert [pieces(b) for b in rows] == [pieces(b) for b in flat]
        for batch in flat:
            check(batch, loaders[1])
            assert batch["input_ids"].shape == (1, max(1, batch.num_tokens))
        assert loaders[0].stats().slots == loaders[1].stats().slots


def test_buckets_pad_little_and_batches_stay_mixed():
    lengths = np.random.default_rng(0).integers(1, 512, 4000)
    corpus = corpus_of(lengths.tolist(), np.int32, 1 << 10)
    stats, widths = {}, []
    for packing in ("pad", "bucket"):
        loader = bf.DataLoader(corpus, seq_len=512, batch_size=8, packing=packing, shuffle=True)
        widths = [batch["input_ids"].shape[1] for batch in loader]
        stats[packing] = loader.stats()
    assert stats["bucket"].tokens == stats["pad"].tokens == lengths.sum()
    assert stats["pad"].utilization < 0.6
    assert stats["bucket"].utilization > 0.98
    places = np.argsort(np.argsort(widths))
    assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < 0.15


def test_a_rank_without_a_row_gets_a_dummy_row_of_one_token():
    loader = bf.DataLoader(
        corpus_of([7] * 3), seq_len=8, packing="bucket", rank=1, world_size=2, pad_token_id=9
    )
    batches = list(loader)
    assert [batch.num_tokens for batch in batches] == [7, 0]
    assert np.asarray(batches[1]["input_ids"]).tolist() == [[9]]
    assert loader.stats().dummy_rows == 1
    assert loader.stats().slots == 7


def test_state_and_counts_hold_slots_of_all_ranks():
    lengths = [9, 2, 7, 7, 1, 3, 8, 8, 5]
    how = {"seq_len": 10, "packing": "bucket", "batch_size": 2, "world_size": 2, "num_workers": 0}
    loaders = [bf.DataLoader(corpus_of(lengths), **how, rank=rank) for rank in range(2)]
    slots = [sum(b["input_ids"].shape[1] * (b["input_ids"].shape[0] if b.num_tokens else 0)
                 for b in loader) for loader in loaders]  # fmt: skip
    assert [loader.stats().slots for loader in loaders] == slots
    for loader in loaders:
        assert loader.stats().all_ranks.slots == sum(slots)
        assert loader.state_dict()["all_ranks"]["slots"] == sum(slots)
        assert loader.state_dict()["all_ranks"]["bins"] == len(lengths)


@pytest.mark.parametrize("balance", [None, "attention"])
def test_balance_adds_nothing_to_buckets(balance):
    lengths = np.random.default_rng(5).integers(1, 60, 200).tolist()
    how = {"seq_len": 64, "batch_size": 3, "packing": "bucket", "shuffle": True}
    plain = bf.DataLoader(corpus_of(lengths), **how)
    assert all_pieces(bf.DataLoader(corpus_of(lengths), **how, balance=balance)) == all_pieces(
        plain
    )
