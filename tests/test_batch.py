"""What a batch holds: each column, each boundary, each count, checked token by token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.config import FIELDS
from truth import IGNORE, check, corpus_of, document, listed, pieces

ALL = list(FIELDS)


def only_batch(corpus, **settings):
    loader = bf.DataLoader(corpus, num_workers=0, **settings)
    (batch,) = loader
    check(batch, loader)
    return batch


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=25),
    seq_len=st.integers(1, 16),
    batch_size=st.integers(1, 4),
    layout=st.sampled_from(["rows", "varlen"]),
    keep=st.booleans(),
    positions=st.sampled_from(["restart", "continue"]),
    packing=st.sampled_from(["concat", "best_fit", "best_fit_decreasing", "first_fit_decreasing"]),
    fields=st.lists(st.sampled_from(ALL), min_size=1, unique=True),
    dtype=st.sampled_from(["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"]),
    masked=st.booleans(),
    data=st.data(),
)
def test_every_column_is_what_its_segments_say(
    lengths, seq_len, batch_size, layout, keep, positions, packing, fields, dtype, masked, data
):
    docs = [
        document(i, n, dtype, 3 if dtype in ("uint8", "int8") else 32)
        for i, n in enumerate(lengths)
    ]
    masks = None
    if masked:
        bits = st.lists(st.booleans(), min_size=30, max_size=30)
        # The last token is trained: a document without a label would be put aside.
        masks = {i: [*data.draw(bits)[: n - 1], True] if n else [] for i, n in enumerate(lengths)}
        corpus = bf.open([{"input_ids": d, "loss_mask": masks[i]} for i, d in enumerate(docs)])
    else:
        corpus = bf.open(docs)
    loader = bf.DataLoader(
        corpus,
        batch_size=batch_size,
        seq_len=seq_len,
        layout=layout,
        tail="keep" if keep or layout == "rows" else "drop",
        positions=positions,
        packing=packing,
        fields=fields,
        num_workers=0,
        pad_token_id=77,
    )
    for batch in loader:
        check(batch, loader, masks)


def test_c03_a_document_of_several_rows_is_cut_as_often_as_needed():
    corpus = bf.open([np.arange(1, 11)])
    batch = only_batch(corpus, batch_size=3, seq_len=4, fields=ALL)
    assert listed(batch["input_ids"]) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0]]
    assert listed(batch["position_ids"])[2] == [0, 1, 0, 1]
    assert listed(batch["document_ids"])[2] == [0, 0, -1, -1]
    batch = only_batch(corpus, batch_size=3, seq_len=4, positions="continue")
    assert listed(batch["position_ids"]) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    batch = only_batch(bf.open([np.arange(8)]), batch_size=3, seq_len=4)
    assert listed(batch["input_ids"]) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_c13_a_row_start_is_always_a_boundary():
    corpus = corpus_of([3, 2, 4])
    flat = only_batch(corpus, batch_size=2, seq_len=5, packing="best_fit", layout="varlen")
    assert listed(flat.cu_seqlens) == [0, 3, 5, 9]
    assert listed(flat["position_ids"]) == [[0, 1, 2, 0, 1, 0, 1, 2, 3]]
    rows = only_batch(corpus, batch_size=2, seq_len=5, packing="best_fit")
    assert listed(rows.cu_seqlens) == [0, 3, 5, 9, 10]
    full = only_batch(corpus_of([4, 4, 4]), batch_size=3, seq_len=4)
    assert listed(full.cu_seqlens) == [0, 4, 8, 12]


def test_c16_a_tail_is_never_taken_for_a_document():
    a = only_batch(corpus_of([3, 1]), seq_len=4, packing="best_fit", fields=ALL)
    b = only_batch(corpus_of([3]), seq_len=4, packing="best_fit", fields=ALL)
    assert listed(a.cu_seqlens) == listed(b.cu_seqlens) == [0, 3, 4]
    assert listed(a["document_ids"]) == [[0, 0, 0, 1]]
    assert listed(b["document_ids"]) == [[0, 0, 0, -1]]
    assert (a.num_tokens, b.num_tokens) == (4, 3)
    assert listed(b.documents) == [0, -1]


def test_c18_a_full_row_has_no_tail_segment():
    docs = corpus_of([512, 512])
    for layout in ("rows", "varlen"):
        batch = only_batch(docs, seq_len=1024, layout=layout)
        assert listed(batch.cu_seqlens) == [0, 512, 1024]
    assert listed(only_batch(docs, seq_len=1100).cu_seqlens) == [0, 512, 1024, 1100]
    assert listed(only_batch(docs, seq_len=1100, layout="varlen").cu_seqlens) == [0, 512, 1024]
    kept = only_batch(docs, seq_len=1100, layout="varlen", tail="keep")
    assert listed(kept.cu_seqlens) == [0, 512, 1024, 1100]


def test_c24_empty_documents_are_skipped_and_counted():
    loader = bf.DataLoader(corpus_of([0, 1, 0, 2]), seq_len=4, layout="varlen", packing="best_fit")
    (batch,) = loader
    assert listed(batch.cu_seqlens) == [0, 1, 3]
    assert batch.max_seqlen == 2
    assert loader.stats().empty_documents == 2
    assert only_batch(corpus_of([1, 1]), seq_len=4, layout="varlen").max_seqlen == 1


def test_c26_document_numbers_have_a_field_of_their_own():
    batch = only_batch(corpus_of([2, 3]), seq_len=6, packing="best_fit", fields=ALL)
    assert "attention_mask" not in batch
    assert listed(batch["document_ids"]) == [[0, 0, 1, 1, 1, -1]]
    assert listed(batch["position_ids"])[0][:5] == [0, 1, 0, 1, 2]


def test_c31_an_end_token_belongs_to_the_document_it_ends(tmp_path):
    np.array([4, 9, 5, 6, 9, 7], np.uint16).tofile(tmp_path / "tokens.bin")
    corpus = bf.open(tmp_path / "tokens.bin", dtype="uint16", eos=9)
    assert corpus.lengths.tolist() == [2, 3, 1]
    batch = only_batch(corpus, seq_len=6, packing="best_fit", fields=ALL)
    assert listed(batch["position_ids"]) == [[0, 1, 0, 1, 2, 0]]
    assert listed(batch["shift_labels"]) == [[9, IGNORE, 6, 9, IGNORE, IGNORE]]


def test_c32_no_label_crosses_a_boundary():
    batch = only_batch(bf.open([np.array([1, 2, 3]), np.array([4, 5])]), seq_len=5, fields=ALL)
    assert listed(batch["shift_labels"]) == [[2, 3, IGNORE, 5, IGNORE]]
    assert listed(batch["labels"]) == [[IGNORE, 2, 3, IGNORE, 5]]


def test_c34_answer_ranges_move_with_their_documents():
    lengths, answers = [6, 5, 7], [(4, 6), (2, 5), (5, 7)]
    docs = [
        {"input_ids": document(i, n), "loss_mask": [int(a <= p < b) for p in range(n)]}
        for i, (n, (a, b)) in enumerate(zip(lengths, answers, strict=True))
    ]
    loader = bf.DataLoader(bf.open(docs), seq_len=18, packing="best_fit")
    (batch,) = loader
    trained = np.flatnonzero(np.asarray(batch["labels"][0]) != IGNORE)
    assert trained.tolist() == [4, 5, 8, 9, 10, 16, 17]
    assert batch.num_items == batch.num_items_step == batch.num_items_step_global == 7


def test_c35_loss_masks_travel_with_their_tokens():
    docs = [
        {"input_ids": [11, 12, 13, 14], "loss_mask": [0, 0, 1, 1]},
        {"input_ids": [21, 22, 23], "loss_mask": [0, 1, 1]},
    ]
    loader = bf.DataLoader(bf.open(docs), seq_len=8, packing="best_fit")
    (batch,) = loader
    assert listed(batch["labels"]) == [[IGNORE, IGNORE, 13, 14, IGNORE, 22, 23, IGNORE]]
    assert batch.num_items == 4
    docs[1]["loss_mask"] = [0, 1]
    with pytest.raises(bf.FormatError, match="document 1"):
        bf.open(docs)


def test_labels_in_dicts_are_loss_masks():
    docs = [{"input_ids": [1, 2, 3, 4], "labels": [-100, -100, 3, 4]}]
    (batch,) = bf.DataLoader(bf.open(docs), seq_len=4)
    assert listed(batch["labels"]) == [[IGNORE, IGNORE, 3, 4]]


def test_only_what_is_asked_for_is_made():
    batch = only_batch(corpus_of([3]), seq_len=4, fields=["document_ids"])
    assert list(batch) == ["document_ids"]
    assert len(batch) == 1
    with pytest.raises(KeyError, match="input_ids"):
        batch["input_ids"]
    for fields in ([], ["input_ids", "input_ids"], ["tokens"], "input_ids"):
        with pytest.raises(bf.PlanError, match="fields"):
            bf.DataLoader(corpus_of([3]), seq_len=4, fields=fields)


def test_a_dummy_row_is_flagged_and_trains_nothing():
    for layout, total in (("rows", 4), ("varlen", 1)):
        loader = bf.DataLoader(
            corpus_of([4]), seq_len=4, rank=1, world_size=2, layout=layout, fields=ALL
        )
        (batch,) = loader
        check(batch, loader)
        assert batch.num_tokens == batch.num_items == 0
        assert listed(batch.cu_seqlens) == [0, total]
        assert listed(batch["labels"]) == [[IGNORE] * total]
        stats = loader.stats()
        assert (stats.dummy_rows, stats.slots, stats.tokens) == (1, 0, 0)


def test_batches_stay_valid_after_the_loader_is_gone():
    loader = bf.DataLoader(corpus_of([7] * 40), batch_size=2, seq_len=8, num_workers=2, depth=1)
    kept = list(loader)
    wanted = [np.asarray(batch["input_ids"]).copy() for batch in kept]
    del loader
    columns = [batch["input_ids"] for batch in kept]
    del kept
    for column, want in zip(columns, wanted, strict=True):
        np.testing.assert_array_equal(column, want)
    flat = np.concatenate([np.asarray(column).ravel() for column in columns])
    assert len(np.unique(flat[flat > 0])) == 40 * 7 - 1  # each token once; token 0 is also the pad


def test_to_moves_every_tensor():
    import torch

    batch = only_batch(corpus_of([3, 2]), seq_len=5)
    moved = batch.to("meta")
    assert all(column.device.type == "meta" for column in moved.values())
    assert moved.cu_seqlens.device.type == "meta"
    assert pieces(batch.to(torch.device("cpu"))) == pieces(batch)
