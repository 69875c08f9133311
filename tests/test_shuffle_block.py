"""Shuffled blocks: a permutation whose neighbours stay near each other, and figures that say so."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, corpus_of, mixed


def plan_of(corpus, **how):
    how = {"seq_len": 64, "num_workers": 0, "shuffle": "block", **how}
    return bf.DataLoader(corpus, **how)._plan


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(1, 300),
    block=st.integers(1, 40),
    window=st.integers(1, 120),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 3),
)
def test_blocks_are_permuted_and_documents_within_groups_of_them(count, block, window, seed, epoch):
    plan = plan_of(corpus_of([1] * count), shuffle_block=block, window=window, seed=seed)
    found = plan.draws(epoch, 0, count)
    assert sorted(found.tolist()) == list(range(count))
    group = max(1, window // block)
    begin = 0
    order = []
    while begin < count:  # each group holds whole blocks, `group` of them
        end, seen = begin, set()
        while end < count and (len(seen) < group or found[end] // block in seen):
            seen.add(int(found[end]) // block)
            end += 1
        members = sorted(found[begin:end].tolist())
        assert members == sorted(
            d for b in seen for d in range(b * block, min(count, (b + 1) * block))
        )
        order += sorted(seen)
        begin = end
    assert sorted(order) == list(range(-(-count // block)))
    for first in range(0, count, 7):
        assert plan.draws(epoch, first, min(3, count - first)).tolist() == (
            found[first : first + 3].tolist()
        )


def test_every_epoch_and_seed_has_another_order():
    orders = {
        tuple(plan_of(corpus_of([1] * 100), shuffle_block=8, window=16, seed=s).draws(e, 0, 100))
        for s in range(3)
        for e in range(3)
    }
    assert len(orders) == 9
    first = [int(order[0]) // 8 for order in orders]
    assert len(set(first)) > 2


def test_blocks_of_several_sources_and_ranks_hold_everything():
    corpus = mixed({"a": [4] * 33, "b": [4] * 20})
    loaders = [
        bf.DataLoader(corpus, seq_len=4, shuffle="block", shuffle_block=5, window=10,
                      rank=rank, world_size=3, batch_size=2)
        for rank in range(3)
    ]  # fmt: skip
    for _ in range(2):
        found = [d for loader in loaders for d, _, _ in all_pieces(loader)]
        assert sorted(found) == list(range(53))


def test_words_for_orders_end_as_plain_values():
    """None is torch's word for its default, and numpy has booleans of its own."""
    for given_, kept in [(None, False), (np.True_, True), (np.False_, False), ("block", "block")]:
        loader = bf.DataLoader(corpus_of([1]), seq_len=4, shuffle=given_)
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["fingerprint"]["shuffle"] == kept


@pytest.mark.parametrize("value", ["blocks", 2, 0.0])
def test_other_orders_are_refused(value):
    with pytest.raises(bf.PlanError, match="shuffle is"):
        bf.DataLoader(corpus_of([1]), seq_len=4, shuffle=value)
    with pytest.raises(bf.PlanError, match="shuffle_block is 0"):
        bf.DataLoader(corpus_of([1]), seq_len=4, shuffle="block", shuffle_block=0)


def test_c69_the_quality_of_a_shuffle_is_a_figure():
    corpus = corpus_of([1] * 20_000)

    def quality(**how):
        return bf.DataLoader(corpus, seq_len=8, **how).shuffle_quality()

    none = quality()
    assert none.documents == 20_000
    assert none.displacement == pytest.approx(0, abs=1e-9)
    assert none.neighbour_distance == pytest.approx(1 / 20_000)
    full = quality(shuffle=True)
    assert full.displacement == pytest.approx(1 / 3, rel=0.03)
    assert full.neighbour_distance == pytest.approx(1 / 3, rel=0.03)
    blocks = quality(shuffle="block", shuffle_block=20, window=400)
    assert blocks.displacement == pytest.approx(1 / 3, rel=0.1)
    assert 0.2 * 400 < blocks.neighbour_distance * 20_000 < 3 * 400


def test_the_quality_of_a_mixture_counts_what_is_drawn():
    corpus = mixed({"a": [1] * 300, "b": [1] * 100, "c": []}, weights=[1, 3, 0], when_dry="repeat")
    quality = bf.DataLoader(corpus, seq_len=8, shuffle=True).shuffle_quality(epoch=2)
    assert quality.documents == 400
    assert 0.15 < quality.displacement < 0.6
    assert 0.1 < quality.neighbour_distance < 0.4  # "b" comes three times, first early
    single = bf.DataLoader(corpus_of([1]), seq_len=8).shuffle_quality()
    assert single.neighbour_distance is None


@pytest.mark.parametrize("shuffle", [True, "block"])
def test_c69_few_shards_do_not_starve_ranks_or_threads(shuffle):
    """Three files of ten documents, two ranks, four threads: the order knows no shards."""
    shards = [np.arange(10, dtype=np.int64).repeat(4).reshape(10, 4) + 10 * s for s in range(3)]
    corpus = bf.open([row for shard in shards for row in shard])
    runs = []
    for threads in (0, 4):
        ranks = [
            bf.DataLoader(corpus, seq_len=4, shuffle=shuffle, shuffle_block=4, window=8,
                          rank=rank, world_size=2, num_workers=threads)
            for rank in range(2)
        ]  # fmt: skip
        runs.append([[d for d, _, _ in all_pieces(loader)] for loader in ranks])
    assert runs[0] == runs[1]
    assert list(map(len, runs[0])) == [15, 15]
    assert sorted(runs[0][0] + runs[0][1]) == list(range(30))
