"""align=: every document padded to a multiple, its real and its padded length kept apart."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.config import FIELDS
from truth import IGNORE, all_pieces, check, corpus_of, document, listed, pieces, token_counts

PACKINGS = ["concat", "streaming", "best_fit", "best_fit_decreasing", "pad", "bucket"]


def only_batch(corpus: Any, masks: Any = None, **settings: Any) -> bf.Batch:
    loader = bf.DataLoader(corpus, num_workers=0, **settings)
    (batch,) = loader
    check(batch, loader, masks)
    return batch


@pytest.mark.parametrize("layout", ["rows", "varlen"])
def test_c23_every_column_goes_by_the_padded_offsets(layout: str) -> None:
    batch = only_batch(
        corpus_of([3, 2, 4]), seq_len=12, align=4, packing="best_fit", layout=layout, fields=FIELDS
    )
    assert listed(batch.cu_seqlens) == [0, 4, 8, 12]
    assert batch.lengths.tolist() == [3, 2, 4]  # the other offsets: [0, 3, 5, 9]
    assert listed(batch["document_ids"]) == [[0, 0, 0, -1, 1, 1, -1, -1, 2, 2, 2, 2]]
    assert listed(batch["position_ids"]) == [[0, 1, 2, 3] * 3]
    assert all(column.shape == (1, 12) for column in batch.values())
    assert (batch.max_seqlen, batch.num_tokens, batch.num_items) == (4, 9, 6)


@pytest.mark.parametrize("layout", ["rows", "varlen"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_c27_all_columns_are_padded_alike(layout: str, packing: str) -> None:
    corpus = bf.open([np.array([1, 2, 3]), np.array([4, 5])])
    loader = bf.DataLoader(
        corpus, batch_size=2, seq_len=8, align=8, packing=packing, layout=layout, fields=FIELDS
    )
    (batch,) = loader
    check(batch, loader)
    assert {column.shape for column in batch.values()} == {(2, 8) if layout == "rows" else (1, 16)}
    for segment, n in enumerate((3, 2)):
        labels = np.asarray(batch["labels"]).ravel()[8 * segment : 8 * segment + 8]
        assert (labels[n:] == IGNORE).all()
        assert (labels[1:n] != IGNORE).all()


def test_c21_lengths_are_counted_in_stored_tokens_everywhere() -> None:
    # 16 stored tokens are 16 model positions and take two eights; the shift takes none away.
    for stored, slots in ((16, 16), (17, 24), (18, 24), (24, 24), (1, 8)):
        batch = only_batch(
            corpus_of([stored]), seq_len=24, align=8, layout="varlen", fields=["shift_labels"]
        )
        assert listed(batch.cu_seqlens) == [0, slots]
        assert batch["shift_labels"].shape == (1, slots)
        assert (batch.num_tokens, batch.num_items) == (stored, stored - 1)
    plan = bf.pack([16, 17], 24, align=8)  # the same unit
    assert sorted(plan.lengths.tolist()) == [16, 17]
    assert plan.num_bins == 2


def test_c16_gaps_tails_and_single_tokens_are_told_apart() -> None:
    one = only_batch(corpus_of([3, 1]), seq_len=4, packing="best_fit", fields=["document_ids"])
    tail = only_batch(corpus_of([3]), seq_len=4, packing="best_fit", fields=["document_ids"])
    gap = only_batch(corpus_of([3]), seq_len=4, align=4, fields=["document_ids"])
    told = [
        (listed(b.cu_seqlens), b.lengths.tolist(), b.documents.tolist(), listed(b["document_ids"]))
        for b in (one, tail, gap)
    ]
    assert told == [
        ([0, 3, 4], [3, 1], [0, 1], [[0, 0, 0, 1]]),
        ([0, 3, 4], [3, 1], [0, -1], [[0, 0, 0, -1]]),
        ([0, 4], [3], [0], [[0, 0, 0, -1]]),
    ]
    assert [b.num_tokens for b in (one, tail, gap)] == [4, 3, 3]


def test_c17_a_tail_is_one_segment_with_positions_that_count_up() -> None:
    batch = only_batch(corpus_of([5]), seq_len=16)
    assert listed(batch.cu_seqlens) == [0, 5, 16]
    assert listed(batch["position_ids"])[0][5:] == list(range(11))
    assert batch.max_seqlen == 11
    batch = only_batch(corpus_of([5]), seq_len=16, layout="varlen")
    assert (listed(batch.cu_seqlens), batch.max_seqlen) == ([0, 5], 5)
    batch = only_batch(corpus_of([5]), seq_len=16, align=2)
    assert (listed(batch.cu_seqlens), batch.max_seqlen) == ([0, 6, 16], 10)


def test_c18_no_segment_is_empty() -> None:
    for layout in ("rows", "varlen"):
        for tail in (None, "keep"):
            how = {"layout": layout, "tail": tail, "packing": "best_fit"}
            batch = only_batch(corpus_of([512, 512]), seq_len=1024, **how)
            assert listed(batch.cu_seqlens) == [0, 512, 1024]
            batch = only_batch(corpus_of([512, 512]), seq_len=1100, **how)
            kept = layout == "rows" or tail == "keep"
            assert listed(batch.cu_seqlens) == [0, 512, 1024] + [1100] * kept
            batch = only_batch(corpus_of([511, 510]), seq_len=1024, align=512, **how)
            assert listed(batch.cu_seqlens) == [0, 512, 1024]


def test_c35_loss_masks_stop_where_the_tokens_do() -> None:
    masks = [[0, 0, 1, 1], [0, 1, 1]]
    corpus = bf.open(
        [
            {"input_ids": [11, 12, 13, 14], "loss_mask": masks[0]},
            {"input_ids": [21, 22, 23], "loss_mask": masks[1]},
        ]
    )
    no = IGNORE
    how: dict[str, Any] = {"seq_len": 12, "align": 6, "packing": "best_fit"}
    by_number = dict(enumerate(masks))
    batch = only_batch(corpus, by_number, fields=["labels"], **how)
    assert listed(batch["labels"]) == [[no, no, 13, 14, no, no, no, 22, 23, no, no, no]]
    batch = only_batch(corpus, by_number, fields=["shift_labels", "loss_weights"], **how)
    assert listed(batch["shift_labels"]) == [[no, 13, 14, no, no, no, 22, 23, no, no, no, no]]
    assert listed(batch["loss_weights"]) == [[0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0]]
    assert batch.num_items == 4


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=25),
    align=st.sampled_from([1, 2, 3, 4, 8]),
    chunks=st.integers(1, 4),
    batch_size=st.integers(1, 3),
    world_size=st.integers(1, 2),
    layout=st.sampled_from(["rows", "varlen"]),
    keep=st.booleans(),
    positions=st.sampled_from(["restart", "continue"]),
    packing=st.sampled_from(PACKINGS),
    overlong=st.sampled_from(["split", "truncate", "drop"]),
    fields=st.lists(st.sampled_from(list(FIELDS)), min_size=1, unique=True),
    masked=st.booleans(),
    shuffle=st.booleans(),
    data=st.data(),
)
@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_nothing_is_lost_or_twice_and_counts_are_as_planned(
    lengths, align, chunks, batch_size, world_size, layout, keep, positions, packing, overlong,
    fields, masked, shuffle, data,
):  # fmt: skip
    masks = None
    docs: list[Any] = [document(i, n) for i, n in enumerate(lengths)]
    if masked:
        bits = st.lists(st.booleans(), min_size=40, max_size=40)
        masks = {i: [*data.draw(bits)[: n - 1], True] if n else [] for i, n in enumerate(lengths)}
        docs = [{"input_ids": d, "loss_mask": masks[i]} for i, d in enumerate(docs)]
    loaders = [
        bf.DataLoader(
            docs, batch_size=batch_size, seq_len=align * chunks * 2, layout=layout, align=align,
            tail="keep" if keep or layout == "rows" else "drop", positions=positions,
            packing=packing, overlong=overlong, fields=fields, num_workers=0, pad_token_id=77,
            shuffle=shuffle, rank=rank, world_size=world_size,
        )
        for rank in range(world_size)
    ]  # fmt: skip
    found: list[tuple[int, int, int]] = []
    for loader in loaders:
        planned = filled = 0
        for batch in loader:
            check(batch, loader, masks)
            found += pieces(batch)
            filled += batch.num_items
            planned += batch.num_items_step
            if layout == "rows" or keep:
                assert int(batch.cu_seqlens[-1]) % align == 0
        stats = loader.stats()
        if not stats.bad_documents:
            assert stats.effective_tokens == filled == planned
        assert stats.tokens + stats.bad_tokens <= stats.slots
    if overlong == "split" or packing == "concat":
        lost = sum(loader.stats().bad_tokens for loader in loaders)
        want = Counter({(d, i): 1 for d, n in enumerate(lengths) for i in range(n)})
        got = token_counts(found)
        assert got <= want
        assert sum(want.values()) - sum(got.values()) == lost


def test_a_bucket_is_as_wide_as_its_longest_row_rounded_up() -> None:
    loader = bf.DataLoader(
        corpus_of([3, 9, 5, 2, 8, 4]), seq_len=16, batch_size=2, packing="bucket", align=4
    )
    batches = list(loader)
    for batch in batches:
        check(batch, loader)
    assert [batch["input_ids"].shape[1] for batch in batches] == [4, 12, 8]
    assert loader.stats().slots == 2 * (4 + 12 + 8)


def test_a_dummy_row_is_aligned_too() -> None:
    for layout, packing, slots in (
        ("varlen", "streaming", 4), ("rows", "streaming", 8), ("rows", "bucket", 4),
    ):  # fmt: skip
        loader = bf.DataLoader(
            corpus_of([4]), seq_len=8, align=4, rank=1, world_size=2, layout=layout,
            packing=packing, fields=FIELDS,
        )  # fmt: skip
        (batch,) = loader
        check(batch, loader)
        assert listed(batch.cu_seqlens) == [0, slots]
        assert batch.num_tokens == 0


def test_a_bad_document_leaves_its_gap_as_well() -> None:
    docs = [np.array([1, 2, 3]), np.array([4, -5]), np.array([6])]
    loader = bf.DataLoader(docs, seq_len=12, align=4, packing="best_fit", fields=FIELDS)
    with pytest.warns(UserWarning, match="document 1"):
        (batch,) = loader
    assert listed(batch.cu_seqlens) == [0, 4, 8, 12]
    assert batch.lengths.tolist() == [3, 4, 1]
    assert batch.documents.tolist() == [0, -1, 2]
    assert listed(batch["position_ids"]) == [[0, 1, 2, 3] * 3]
    assert listed(batch["document_ids"]) == [[0, 0, 0, -1, -1, -1, -1, -1, 2, -1, -1, -1]]
    assert (batch.num_tokens, batch.num_items, batch.attention_work) == (4, 2, 10)


def test_align_must_divide_seq_len() -> None:
    for align in (3, 16, 7):
        with pytest.raises(bf.PlanError, match=f"align is {align}"):
            bf.DataLoader(corpus_of([4]), seq_len=8, align=align)
    for align in (0, -1, 1.5, True, "4"):
        with pytest.raises(bf.PlanError, match="align"):
            bf.DataLoader(corpus_of([4]), seq_len=8, align=align)


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_run_goes_on_exactly_and_only_under_the_same_alignment(packing: str) -> None:
    lengths = [1 + i * 37 % 61 for i in range(60)]

    def make(align: int) -> bf.DataLoader:
        return bf.DataLoader(
            corpus_of(lengths), batch_size=2, seq_len=64, align=align, packing=packing,
            shuffle=True, window=20, num_workers=2,
        )  # fmt: skip

    whole = all_pieces(make(8))
    for stop in (0, 1, 5):
        loader = make(8)
        iterator = iter(loader)
        begun = [piece for _ in range(stop) for piece in pieces(next(iterator))]
        state = loader.state_dict()
        again = make(8)
        again.load_state_dict(state)
        assert begun + all_pieces(again) == whole
        with pytest.raises(bf.StateError, match="align: 8 in the state, 4 here"):
            make(4).load_state_dict(state)
