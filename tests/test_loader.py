"""The stream of batches: nothing lost, nothing twice, the same on any machine, split over ranks."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, check, corpus_of, document, pieces, same, token_counts

STRATEGIES = [
    "concat", "best_fit", "best_fit_decreasing", "first_fit_decreasing", "streaming", "pad",
    "bucket",
]  # fmt: skip
lengths_lists = st.lists(st.integers(0, 40), min_size=1, max_size=60)


def lost_by_rule(lengths, seq_len, packing, overlong):
    """Tokens (document, position) that the overlong rule takes."""
    if packing == "concat" or overlong == "split":
        return set()
    keep = 0 if overlong == "drop" else seq_len
    return {(d, p) for d, n in enumerate(lengths) if n > seq_len for p in range(keep, n)}


@settings(max_examples=200, deadline=None)
@given(
    lengths=lengths_lists,
    seq_len=st.integers(1, 24),
    batch_size=st.integers(1, 3),
    world_size=st.integers(1, 8),
    accumulate=st.integers(1, 3),
    packing=st.sampled_from(STRATEGIES),
    overlong=st.sampled_from(["split", "truncate", "drop"]),
    layout=st.sampled_from(["rows", "varlen"]),
    window=st.integers(1, 20),
    shuffle=st.booleans(),
    balance=st.sampled_from([None, "attention"]),
    drop_last=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
)
@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_each_token_comes_once_or_is_counted_as_lost(
    lengths, seq_len, batch_size, world_size, accumulate, packing, overlong, layout, window,
    shuffle, balance, drop_last, seed,
):  # fmt: skip
    corpus = corpus_of(lengths)
    loaders = [
        bf.DataLoader(
            corpus,
            batch_size=batch_size,
            seq_len=seq_len,
            world_size=world_size,
            rank=rank,
            accumulate=accumulate,
            packing=packing,
            overlong=overlong,
            layout=layout,
            window=window,
            shuffle=shuffle,
            balance=balance,
            drop_last=drop_last,
            seed=seed,
            num_workers=0,
        )
        for rank in range(world_size)
    ]
    batches = [list(loader) for loader in loaders]
    assert len({len(b) for b in batches}) == 1, "every rank delivers equally many"
    for rank, loader in enumerate(loaders):
        loader.set_epoch(0)
        assert len(loader) == len(batches[rank])
        for batch in batches[rank]:
            check(batch, loader)
            assert (np.diff(batch.cu_seqlens) <= seq_len).all()

    delivered = Counter()
    for rank in range(world_size):
        delivered += token_counts(p for batch in batches[rank] for p in pieces(batch))
    assert set(delivered.values()) <= {1}, "nothing twice"
    every = {(d, p) for d, n in enumerate(lengths) for p in range(n)}
    missing = every - set(delivered)
    by_rule = lost_by_rule(lengths, seq_len, packing, overlong)
    stats = [loader.stats() for loader in loaders]
    total = {
        name: sum(getattr(s, name) for s in stats)
        for name in ("bins", "slots", "tokens", "effective_tokens", "documents", "dropped_tokens",
                     "dropped_documents", "truncated_documents", "split_documents",
                     "empty_documents", "dummy_rows")
    }  # fmt: skip
    if drop_last:
        assert by_rule <= missing
    else:
        assert missing == by_rule
    assert total["dropped_tokens"] == len(missing)
    assert total["tokens"] == len(delivered)
    assert total["tokens"] + total["dropped_tokens"] == sum(lengths)
    assert total["empty_documents"] == lengths.count(0)
    begun = {d for d, p in delivered if p == 0}
    assert total["documents"] == len(begun)
    assert total["documents"] + total["dropped_documents"] + total["empty_documents"] == len(
        lengths
    )
    over = sum(n > seq_len for n in lengths)
    assert total["truncated_documents"] == (over if by_rule and overlong == "truncate" else 0)
    items = sum(batch.num_items for rank in batches for batch in rank)
    assert total["effective_tokens"] == items
    all_pieces_ = [p for rank in batches for batch in rank for p in pieces(batch)]
    assert items == sum(n - 1 for _, _, n in all_pieces_)

    real = [batch for rank in batches for batch in rank if batch.num_tokens]
    if layout == "rows":
        assert total["bins"] == sum(len(batch["input_ids"]) for batch in real)
        assert total["slots"] == sum(np.asarray(batch["input_ids"]).size for batch in real)
    elif packing != "bucket":
        assert total["slots"] == total["bins"] * seq_len

    # All ranks count the same totals, and each step's items are known to all of them.
    for s in stats:
        assert s.all_ranks == stats[0].all_ranks
        assert s.all_ranks.bins == total["bins"]
        assert s.all_ranks.slots == total["slots"]
        assert s.all_ranks.tokens == total["tokens"]
        assert s.all_ranks.effective_tokens == items
        assert s.all_ranks.dropped_tokens == len(missing)
        assert s.all_ranks.dummy_rows == total["dummy_rows"]
        (exposure,) = s.exposure.values()
        (dropped,) = s.dropped.values()
        assert exposure["tokens"] == total["tokens"]
        assert dropped["tokens"] == len(missing)
        assert exposure["documents"] + dropped["documents"] + lengths.count(0) == len(lengths)
    for step in range(0, len(batches[0]), accumulate):
        micro = [rank[step : step + accumulate] for rank in batches]
        for rank in micro:
            own = sum(b.num_items for b in rank)
            assert all(b.num_items_step == own for b in rank)
        everywhere = sum(b.num_items for rank in micro for b in rank)
        assert all(b.num_items_step_global == everywhere for rank in micro for b in rank)


@settings(max_examples=60, deadline=None)
@given(
    lengths=lengths_lists,
    world_size=st.integers(2, 8),
    packing=st.sampled_from(STRATEGIES[:-1]),
    shuffle=st.booleans(),
)
def test_ranks_together_deliver_the_rows_of_a_single_rank(lengths, world_size, packing, shuffle):
    def rows(world_size, rank, batch_size):
        loader = bf.DataLoader(
            corpus_of(lengths), seq_len=16, batch_size=batch_size, packing=packing,
            shuffle=shuffle, world_size=world_size, rank=rank, num_workers=0,
        )  # fmt: skip
        return [np.asarray(row).tolist() for b in loader if b.num_tokens for row in b["input_ids"]]

    whole = rows(1, 0, world_size)
    for rank in range(world_size):
        assert rows(world_size, rank, 1) == whole[rank::world_size]


@pytest.mark.parametrize("num_workers", [0, 1, 2, 16])
@pytest.mark.parametrize("layout", ["rows", "varlen"])
def test_the_stream_is_the_same_for_any_number_of_threads(num_workers, layout):
    lengths = np.random.default_rng(3).integers(1, 90, 700).tolist()

    def stream(**how):
        loader = bf.DataLoader(
            corpus_of(lengths, np.int32, 1 << 10), batch_size=3, seq_len=64, layout=layout,
            shuffle=True, seed=5, window=50, **how,
        )  # fmt: skip
        return [batch for _ in range(2) for batch in loader]

    reference = stream(num_workers=0)
    for depth in (1, 4, 9):
        found = stream(num_workers=num_workers, depth=depth)
        assert len(found) == len(reference)
        assert all(same(a, b) for a, b in zip(found, reference, strict=True))


def test_order_without_shuffle_is_that_of_the_earliest_documents():
    loader = bf.DataLoader(corpus_of([3, 9, 4, 6, 1]), seq_len=10, packing="best_fit_decreasing")
    assert all_pieces(loader) == [(0, 0, 3), (1, 0, 9), (4, 0, 1), (2, 0, 4), (3, 0, 6)]


def test_rows_are_never_sorted_by_length():
    lengths = np.random.default_rng(0).integers(1, 64, 4000).tolist()
    loader = bf.DataLoader(corpus_of(lengths), seq_len=64, shuffle=True)
    longest = [max(n for _, _, n in pieces(batch)) for batch in loader]
    places = np.argsort(np.argsort(longest))
    correlation = np.corrcoef(places, np.arange(len(places)))[0, 1]
    assert abs(correlation) < 0.1


def test_concat_leaves_one_short_bin_a_window():
    loader = bf.DataLoader(corpus_of([7] * 20), seq_len=8, packing="concat", window=10)
    tokens = [batch.num_tokens for batch in loader]
    assert [n for n in tokens if n < 8] == [70 % 8, 70 % 8]
    assert sum(tokens) == 140


def test_pad_gives_each_document_a_row_of_its_own():
    loader = bf.DataLoader(corpus_of([3, 9, 5, 0, 2]), seq_len=4, batch_size=10, packing="pad")
    (batch,) = loader
    check(batch, loader)
    assert pieces(batch) == [
        (0, 0, 3),
        (1, 0, 4),
        (1, 4, 4),
        (1, 8, 1),
        (2, 0, 4),
        (2, 4, 1),
        (4, 0, 2),
    ]
    assert batch["input_ids"].shape == (7, 4)


@pytest.mark.parametrize(
    ("bins", "world_size", "counts"),
    [(9, 4, [3, 2, 2, 2]), (10, 4, [3, 3, 2, 2]), (3, 4, [1, 1, 1, 0]), (8, 4, [2, 2, 2, 2])],
)
def test_c07_uneven_shares_are_flagged_not_starved(bins, world_size, counts):
    found, order = [], []
    for rank in range(world_size):
        loader = bf.DataLoader(corpus_of([4] * bins), seq_len=4, rank=rank, world_size=world_size)
        batches = list(loader)
        assert len(batches) == max(counts)
        real = [batch for batch in batches if batch.num_tokens]
        found.append(len(real))
        order.append([d for batch in real for d, _, _ in pieces(batch)])
        assert loader.stats().dummy_rows == max(counts) - len(real)
    assert found == counts
    assert order == [list(range(rank, bins, world_size)) for rank in range(world_size)]


def test_c09_packing_is_global_so_that_ranks_agree():
    corpus = corpus_of([10] * 5 + [1] * 5)
    loaders = [bf.DataLoader(corpus, seq_len=10, rank=r, world_size=2) for r in range(2)]
    assert [len(loader) for loader in loaders] == [3, 3]
    found = [all_pieces(loader) for loader in loaders]
    assert sorted(d for rank in found for d, _, _ in rank) == list(range(10))


def test_c10_dropping_everything_gives_no_batch_and_one_warning():
    loader = bf.DataLoader(corpus_of([12]), seq_len=10, overlong="drop")
    assert len(loader) == 0
    with pytest.warns(UserWarning, match="12 tokens were dropped") as caught:
        assert list(loader) == []
    assert len(caught) == 1
    assert list(loader) == []  # said once, not again
    stats = loader.stats()
    assert (stats.dropped_documents, stats.dropped_tokens) == (2, 24)
    loader = bf.DataLoader(corpus_of([12, 3]), seq_len=10, overlong="drop", layout="varlen")
    with pytest.warns(UserWarning, match="dropped"):
        (batch,) = loader
    assert np.asarray(batch.cu_seqlens).tolist() == [0, 3]


def test_c66_each_epoch_has_an_order_of_its_own():
    def epochs(seed):
        loader = bf.DataLoader(corpus_of([4] * 10), seq_len=4, shuffle=True, seed=seed)
        return [[d for d, _, _ in all_pieces(loader)] for _ in range(3)]

    for seed in (7, 0):
        orders = epochs(seed)
        assert all(sorted(order) == list(range(10)) for order in orders)
        assert len({tuple(order) for order in orders}) == 3
        assert epochs(seed) == orders
        fresh = bf.DataLoader(corpus_of([4] * 10), seq_len=4, shuffle=True, seed=seed)
        fresh.set_epoch(1)
        assert [d for d, _, _ in all_pieces(fresh)] == orders[1]
        assert [d for d, _, _ in all_pieces(fresh)] == orders[1], "a fixed epoch stays"
    assert epochs(7) != epochs(0)


def test_a_break_ends_the_epoch():
    loader = bf.DataLoader(corpus_of([4] * 10), seq_len=4, shuffle=True)
    reference = bf.DataLoader(corpus_of([4] * 10), seq_len=4, shuffle=True)
    next(iter(loader))
    for _ in loader:
        break
    reference.set_epoch(2)
    assert all_pieces(loader) == all_pieces(reference)


def test_an_iterator_that_delivered_nothing_has_not_begun_an_epoch():
    loader = bf.DataLoader(corpus_of([4] * 10), seq_len=4, shuffle=True)
    whole = [pieces(batch) for batch in bf.DataLoader(corpus_of([4] * 10), seq_len=4, shuffle=True)]
    iter(loader)
    assert [pieces(batch) for batch in loader] == whole
    iter(loader).close()
    begun = iter(loader)
    assert next(begun).epoch == 1
    state = loader.state_dict()
    resumed = bf.DataLoader(corpus_of([4] * 10), seq_len=4, shuffle=True)
    resumed.load_state_dict(state)
    iter(resumed)
    assert resumed.state_dict() == state
    assert [pieces(batch) for batch in resumed] == [pieces(batch) for batch in begun]
    assert next(iter(resumed)).epoch == 2


def test_iterators_are_independent():
    loader = bf.DataLoader(corpus_of([4] * 30), seq_len=4, shuffle=True)
    reference = bf.DataLoader(corpus_of([4] * 30), seq_len=4, shuffle=True)
    first, second = iter(loader), iter(loader)
    together = [(pieces(a), pieces(b)) for a, b in zip(first, second, strict=True)]
    assert [a for a, _ in together] == [pieces(b) for b in reference]
    assert [b for _, b in together] == [pieces(b) for b in reference]
    assert next(first, None) is None
    assert next(first, None) is None


@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("num_workers", [0, 2])
def test_c68_one_permutation_for_all_ranks(world_size, num_workers):
    corpus = corpus_of([4] * 32)
    loaders = [
        bf.DataLoader(corpus, seq_len=4, shuffle=True, rank=r, world_size=world_size,
                      num_workers=num_workers)
        for r in range(world_size)
    ]  # fmt: skip
    for _ in range(3):
        found = [d for loader in loaders for d, _, _ in all_pieces(loader)]
        assert sorted(found) == list(range(32))


def test_c69_documents_not_files_are_shared_out(tmp_path):
    for shard in range(3):
        np.stack([document(shard * 10 + i, 4, np.int32, 100) for i in range(10)]).tofile(
            tmp_path / f"{shard}.bin"
        )
    paths = sorted(tmp_path.glob("*.bin"))
    eos_every_row = {3 + 100 * i for i in range(30)}
    corpus = bf.open([np.fromfile(p, np.int32).reshape(10, 4)[i] for p in paths for i in range(10)])
    assert {int(corpus[d][-1]) for d in range(30)} == eos_every_row
    orders = {}
    for num_workers in (0, 1, 4):
        orders[num_workers] = [
            [d for d, _, _ in all_pieces(
                bf.DataLoader(corpus, seq_len=4, shuffle=True, rank=r, world_size=2,
                              num_workers=num_workers)
            )]
            for r in range(2)
        ]  # fmt: skip
    assert orders[0] == orders[1] == orders[4]
    assert [len(order) for order in orders[0]] == [15, 15]
    assert sorted(orders[0][0] + orders[0][1]) == list(range(30))


def test_c70_evaluation_repeats_nothing():
    corpus = corpus_of([4] * 10)
    for drop_last, counts, dropped in ((False, [3, 3, 2, 2], 0), (True, [2, 2, 2, 2], 2)):
        loaders = [
            bf.DataLoader(corpus, seq_len=4, rank=r, world_size=4, drop_last=drop_last)
            for r in range(4)
        ]
        with pytest.warns(UserWarning, match="dropped") if dropped else _nothing():
            found = [all_pieces(loader) for loader in loaders]
        assert [len(f) for f in found] == counts
        assert len({p for f in found for p in f}) == sum(counts)
        assert sum(loader.stats().dropped_documents for loader in loaders) == dropped
        assert loaders[0].stats().all_ranks.dropped_documents == dropped


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_permutations_of_few_documents_are_all_likely():
    """Every order of four documents comes up about equally often over epochs."""
    loader = bf.DataLoader(corpus_of([4] * 4), seq_len=4, shuffle=True, window=1, num_workers=0)
    orders = Counter()
    for epoch in range(4800):
        orders[tuple(loader._plan.draws(epoch, 0, 4).tolist())] += 1
    assert len(orders) == 24
    chi_squared = sum((count - 200) ** 2 / 200 for count in orders.values())
    assert chi_squared < 60  # 23 degrees of freedom: one run in ten thousand is above


def test_a_window_may_be_larger_than_any_corpus():
    loader = bf.DataLoader(corpus_of([1, 2]), seq_len=4, window=2**63 - 1)
    assert len(loader) == len(list(loader)) == 1


def test_an_empty_corpus_gives_no_batches():
    loader = bf.DataLoader(bf.open([np.zeros(0, np.int64)]), seq_len=4)
    assert len(loader) == 0
    assert list(loader) == []
    assert loader.stats().empty_documents == 1
    assert loader.stats().utilization is None


@pytest.mark.parametrize("packing", STRATEGIES)
def test_rows_have_at_most_max_segments_documents(packing):
    lengths = np.random.default_rng(2).integers(1, 30, 300).tolist()
    loader = bf.DataLoader(
        corpus_of(lengths), seq_len=40, packing=packing, max_segments=3, window=50, shuffle=True
    )
    batches = list(loader)
    assert max(len(pieces(batch)) for batch in batches) == (
        1 if packing in ("pad", "bucket") else 3
    )
    assert sum(batch.num_tokens for batch in batches) == sum(lengths)
