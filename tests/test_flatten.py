"""The collator: documents in memory to one varlen batch, against what they are made of."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful.config import FIELDS
from truth import IGNORE, document, listed

ALL = list(FIELDS)


@st.composite
def document_sets(draw):
    """Documents of any token dtype, some empty, some with masks or labels of their own."""
    dtype = draw(st.sampled_from(["uint8", "int16", "uint16", "int32", "uint32", "int64"]))
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=9).filter(any))
    kind = draw(st.sampled_from(["plain", "loss_mask", "labels"]))
    documents = []
    for i, n in enumerate(lengths):
        item = {"input_ids": document(i, n, dtype, 7)}
        if kind == "loss_mask" and draw(st.booleans()):
            item["loss_mask"] = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
        if kind == "labels" and draw(st.booleans()):
            item["labels"] = draw(st.lists(st.sampled_from([IGNORE, 3, 5]), min_size=n, max_size=n))
        documents.append(item)
    return documents


def wanted(documents, multiple, align, pad):
    """Every column by hand, slot by slot."""
    columns = {name: [] for name in ALL}
    cu, numbers, lengths = [0], [], []
    for i, item in enumerate(documents):
        ids = [int(token) for token in item["input_ids"]]
        if not ids:
            continue
        labels = [int(label) for label in item.get("labels", ids)]
        mask = item.get("loss_mask", [1] * len(ids))
        labels = [label if keep else IGNORE for label, keep in zip(labels, mask, strict=True)]
        gap = -len(ids) % align
        labels = [IGNORE, *labels[1:]]
        columns["input_ids"] += ids + [pad] * gap
        columns["labels"] += labels + [IGNORE] * gap
        columns["shift_labels"] += [*labels[1:], IGNORE] + [IGNORE] * gap
        columns["position_ids"] += range(len(ids) + gap)
        columns["document_ids"] += [len(numbers)] * len(ids) + [-1] * gap
        numbers.append(i)
        lengths.append(len(ids))
        cu.append(cu[-1] + len(ids) + gap)
    tail = -cu[-1] % multiple
    if tail:
        columns["input_ids"] += [pad] * tail
        columns["labels"] += [IGNORE] * tail
        columns["shift_labels"] += [IGNORE] * tail
        columns["position_ids"] += range(tail)
        columns["document_ids"] += [-1] * tail
        numbers.append(-1)
        lengths.append(tail)
        cu.append(cu[-1] + tail)
    columns["loss_weights"] = [float(label != IGNORE) for label in columns["labels"]]
    return columns, cu, numbers, lengths


@given(
    documents=document_sets(),
    fields=st.lists(st.sampled_from(ALL), min_size=1, unique=True),
    multiple=st.sampled_from([1, 2, 8, 64]),
    align=st.sampled_from([1, 2, 4]),
)
def test_every_column_is_what_its_documents_say(documents, fields, multiple, align):
    batch = bf.flatten(
        documents, fields=fields, pad_to_multiple_of=multiple, align=align, pad_token_id=99
    )
    columns, cu, numbers, lengths = wanted(documents, multiple, align, 99)
    if "labels" not in fields and "shift_labels" in fields:
        columns["loss_weights"] = [float(label != IGNORE) for label in columns["shift_labels"]]
    assert list(batch) == fields
    for name in fields:
        dtype = {"document_ids": torch.int32, "loss_weights": torch.float32}.get(name, torch.int64)
        assert batch[name].dtype == dtype
        assert listed(batch[name]) == [columns[name]], name
    assert batch.cu_seqlens.dtype == torch.int32
    assert listed(batch.cu_seqlens) == listed(batch.cu_seqlens_host) == cu
    assert listed(batch.documents) == numbers
    assert listed(batch.lengths) == lengths
    assert listed(batch.starts) == [0] * len(numbers)
    assert batch.max_seqlen == max(np.diff(cu))
    real = [n for n, d in zip(lengths, numbers, strict=True) if d >= 0]
    assert batch.num_tokens == sum(real)
    assert batch.attention_work == sum(n * n for n in real)
    assert batch.num_items == sum(label != IGNORE for label in columns["labels"])
    assert batch.num_items == batch.num_items_step == batch.num_items_step_global
    assert batch.empty_documents == len(documents) - len(real)
    assert (batch.step, batch.epoch, batch.micro_batch) == (0, 0, 0)


def test_c13_documents_flattened_are_apart():
    batch = bf.flatten([document(i, n) for i, n in enumerate([3, 2, 4])])
    assert listed(batch.cu_seqlens) == [0, 3, 5, 9]
    assert listed(batch["position_ids"]) == [[0, 1, 2, 0, 1, 0, 1, 2, 3]]


def test_c16_a_document_of_one_token_is_no_tail():
    a = bf.flatten([[5, 6, 7], [0]], fields=ALL)
    b = bf.flatten([[5, 6, 7]], fields=ALL, pad_to_multiple_of=4)
    assert listed(a.cu_seqlens) == listed(b.cu_seqlens) == [0, 3, 4]
    assert listed(a["input_ids"]) == listed(b["input_ids"])
    assert listed(a["document_ids"]) == [[0, 0, 0, 1]]
    assert listed(b["document_ids"]) == [[0, 0, 0, -1]]
    assert (a.num_tokens, b.num_tokens) == (4, 3)


@pytest.mark.parametrize(("length", "multiple"), [(5, 16), (1, 64), (63, 64)])
def test_c17_a_tail_is_one_segment(length, multiple):
    batch = bf.flatten([document(0, length)], pad_to_multiple_of=multiple)
    tail = multiple - length
    assert listed(batch.cu_seqlens) == [0, length, multiple]
    assert listed(batch["position_ids"])[0][length:] == list(range(tail))
    assert batch.max_seqlen == max(length, tail)
    assert listed(bf.flatten([document(0, length)]).cu_seqlens) == [0, length]


def test_c19_a_fixed_number_of_segments_is_filled_up_or_refused():
    documents = [document(i, n) for i, n in enumerate([3, 2, 4])]
    batch = bf.flatten(documents, max_segments=6)
    assert listed(batch.cu_seqlens) == [0, 3, 5, 9, 9, 9, 9]
    assert batch.num_segments == 3
    padded = bf.flatten(documents, max_segments=6, pad_to_multiple_of=12)
    assert listed(padded.cu_seqlens) == [0, 3, 5, 9, 12, 12, 12]
    assert padded.num_segments == 4
    for settings in ({"max_segments": 2}, {"max_segments": 3, "pad_to_multiple_of": 12}):
        segments = 3 if settings["max_segments"] == 2 else 4
        with pytest.raises(bf.PlanError, match=rf"{segments} .*{settings['max_segments']}"):
            bf.flatten(documents, **settings)


def test_c20_the_number_of_segments_travels_beside_them():
    documents = [document(0, 3), document(1, 2)]
    for room in (None, 2, 4):
        batch = bf.flatten(documents, max_segments=room)
        assert batch.num_segments == 2
        assert listed(batch.cu_seqlens[: batch.num_segments + 1]) == [0, 3, 5]


def test_c23_gaps_are_in_every_field():
    documents = [document(i, n) for i, n in enumerate([3, 2, 4])]
    batch = bf.flatten(documents, align=4, fields=ALL)
    assert listed(batch.cu_seqlens) == [0, 4, 8, 12]
    assert listed(batch["document_ids"]) == [[0, 0, 0, -1, 1, 1, -1, -1, 2, 2, 2, 2]]
    assert all(column.shape == (1, 12) for column in batch.values())
    positions = batch["position_ids"][0]
    assert listed(positions[batch["document_ids"][0] >= 0]) == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert listed(batch.lengths) == [3, 2, 4]
    assert batch.num_items == 2 + 1 + 3


def test_c24_empty_documents_are_passed_over_and_counted():
    batch = bf.flatten([[], [1], [], [2, 3]])
    assert listed(batch.cu_seqlens) == [0, 1, 3]
    assert (batch.max_seqlen, batch.empty_documents) == (2, 2)
    assert listed(batch.documents) == [1, 3]
    assert bf.flatten([[1], [2]]).max_seqlen == 1
    for nothing in ([], [[]], [[], np.empty(0, np.uint16)], [{"input_ids": []}]):
        with pytest.raises(bf.FormatError, match="has a token"):
            bf.flatten(nothing)


def test_c25_types_are_those_that_kernels_want():
    batch = bf.flatten([document(i, n, "uint16", 9) for i, n in enumerate([5, 3, 4])])
    assert listed(batch.cu_seqlens) == [0, 5, 8, 12]
    assert batch.cu_seqlens.dtype == torch.int32
    assert batch.cu_seqlens.is_contiguous()
    assert type(batch.max_seqlen) is int
    assert batch.max_seqlen == 5
    for name in ("labels", "input_ids", "position_ids"):
        assert batch[name].dtype == torch.int64
        assert batch[name].is_contiguous()


def test_c26_document_numbers_have_a_field_of_their_own():
    batch = bf.flatten([[1, 2], [3, 4, 5]], fields=ALL, pad_to_multiple_of=6)
    assert "attention_mask" not in batch
    assert listed(batch["document_ids"]) == [[0, 0, 1, 1, 1, -1]]
    assert listed(batch["position_ids"]) == [[0, 1, 0, 1, 2, 0]]


def test_c27_every_field_is_padded_alike():
    masks = [[1, 1, 0], [1, 1]]
    batch = bf.flatten([[1, 2, 3], [4, 5]], masks, ALL, pad_to_multiple_of=8)
    assert {tuple(column.shape) for column in batch.values()} == {(1, 8)}
    assert listed(batch["labels"]) == [[IGNORE, 2, IGNORE, IGNORE, 5, IGNORE, IGNORE, IGNORE]]
    assert listed(batch["loss_weights"]) == [[0, 1, 0, 0, 1, 0, 0, 0]]


def test_c29_a_packed_row_without_its_lengths_is_refused():
    row = {"input_ids": [1, 2, 3, 4, 5], "seq_lengths": [3, 2]}
    batch = bf.flatten([row], lengths="seq_lengths")
    assert listed(batch["position_ids"]) == [[0, 1, 2, 0, 1]]
    assert listed(batch.cu_seqlens) == [0, 3, 5]
    del row["seq_lengths"]
    with pytest.raises(bf.FormatError, match="row 0 has no 'seq_lengths'"):
        bf.flatten([row], lengths="seq_lengths")
    with pytest.raises(bf.FormatError, match="seq_lengths"):  # a field that would be lost
        bf.flatten([{"input_ids": [1, 2], "seq_lengths": [1, 1]}])
    wraps = [2**62] * 4 + [5]  # 5 in 64 bits
    for wrong in ([3, 1], [3, 3], [[3, 2]], [6, -1], "32", wraps, [[3], [1, 1]]):
        with pytest.raises(bf.FormatError, match="seq_lengths"):
            bf.flatten([row | {"seq_lengths": wrong}], lengths="seq_lengths")


@given(rows=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=4))
def test_packed_rows_are_their_documents(rows):
    documents, packed = [], []
    for lengths in rows:
        parts = [document(len(documents) + i, n) for i, n in enumerate(lengths)]
        documents += parts
        ids = np.concatenate(parts)
        packed.append({"input_ids": ids, "labels": ids, "lengths": lengths})
    if not sum(map(len, documents)):
        return
    a, b = bf.flatten(documents, fields=ALL), bf.flatten(packed, fields=ALL, lengths="lengths")
    assert listed(a.cu_seqlens) == listed(b.cu_seqlens)
    for name in ALL:
        assert listed(a[name]) == listed(b[name])


def test_c32_no_label_crosses_a_boundary():
    batch = bf.flatten([[1, 2, 3], [4, 5]], fields=ALL)
    assert listed(batch["shift_labels"]) == [[2, 3, IGNORE, 5, IGNORE]]
    assert listed(batch["labels"]) == [[IGNORE, 2, 3, IGNORE, 5]]


def test_c34_answer_ranges_move_with_their_documents():
    lengths, answers = [6, 5, 7], [(4, 6), (2, 5), (5, 7)]
    masks = [[a <= p < b for p in range(n)] for n, (a, b) in zip(lengths, answers, strict=True)]
    batch = bf.flatten([document(i, n) for i, n in enumerate(lengths)], masks)
    trained = np.flatnonzero(np.asarray(batch["labels"][0]) != IGNORE)
    assert trained.tolist() == [4, 5, 8, 9, 10, 16, 17]
    assert batch.num_items == 7


def test_c35_loss_masks_travel_with_their_tokens():
    documents, masks = [[11, 12, 13, 14], [21, 22, 23]], [[0, 0, 1, 1], [0, 1, 1]]
    batch = bf.flatten(documents, masks, pad_to_multiple_of=8)
    assert listed(batch["labels"]) == [[IGNORE, IGNORE, 13, 14, IGNORE, 22, 23, IGNORE]]
    assert batch.num_items == 4
    for make in (torch.tensor, lambda m: np.array(m, bool), lambda m: np.repeat(m, 2)[::2]):
        same = bf.flatten(documents, [make(mask) for mask in masks], pad_to_multiple_of=8)
        assert listed(same["labels"]) == listed(batch["labels"])
        dicts = [
            {"input_ids": ids, "loss_mask": make(mask)}
            for ids, mask in zip(documents, masks, strict=True)
        ]
        same = bf.flatten(dicts, pad_to_multiple_of=8)
        assert listed(same["labels"]) == listed(batch["labels"])
    with pytest.raises(bf.FormatError, match="document 1"):
        bf.flatten(documents, [masks[0], [0, 1]])
    with pytest.raises(bf.FormatError, match="1 loss_masks for 2 documents"):
        bf.flatten(documents, masks[:1])


def test_c36_any_kind_of_document_and_its_label_give_the_same_batch():
    ids = [[1, 2, 3, 4], [5, 6, 7]]
    kinds = [
        ids,
        [torch.tensor(row) for row in ids],
        [torch.tensor(row, dtype=torch.int32) for row in ids],
        [np.array(row, np.int32) for row in ids],
        [np.array(row, ">i8") for row in ids],
        [np.array(row, np.uint64) for row in ids],
        [np.array(row, np.int16).repeat(2)[::2] for row in ids],
    ]
    batches = []
    for kind in kinds:
        batches.append(bf.flatten(kind, document_labels=[1, 0]))
        for key in ("label", "labels"):
            for make in (int, np.int32, torch.tensor):
                dicts = [
                    {"input_ids": row, key: make(label)}
                    for row, label in zip(kind, [1, 0], strict=True)
                ]
                batches.append(bf.flatten(dicts))
    for batch in batches:
        assert listed(batch.cu_seqlens) == [0, 4, 7]
        assert listed(batch["input_ids"]) == [[1, 2, 3, 4, 5, 6, 7]]
        assert batch.document_labels.dtype == torch.int64
        assert listed(batch.document_labels) == [1, 0]
    assert listed(bf.flatten([[], [1]], document_labels=[3, 4]).document_labels) == [4]
    regression = bf.flatten(ids, document_labels=[0.5, 2])
    assert regression.document_labels.dtype == torch.float32
    assert bf.flatten(ids).document_labels is None
    assert listed(batches[0].to("cpu").document_labels) == [1, 0]
    with pytest.raises(bf.FormatError, match="document 1 has no label"):
        bf.flatten([{"input_ids": ids[0], "label": 1}, {"input_ids": ids[1]}])
    with pytest.raises(bf.FormatError, match="1 document_labels for 2 documents"):
        bf.flatten(ids, document_labels=[1])
    with pytest.raises(bf.FormatError, match="one number"):
        bf.flatten(ids, document_labels=[[1, 2], [3]])


def test_c36_a_label_of_the_document_goes_with_masks_of_its_tokens():
    for label in (1, np.int32(1), torch.tensor(1), np.array(1)):
        for key in ("label", "labels"):
            batch = bf.flatten([{"input_ids": [1, 2, 3], "loss_mask": [0, 1, 0], key: label}])
            assert listed(batch["labels"]) == [[IGNORE, 2, IGNORE]]
            assert listed(batch.document_labels) == [1]


def test_what_is_none_is_as_good_as_absent():
    keys = ("labels", "loss_mask", "label", "attention_mask")
    batch = bf.flatten([{"input_ids": [1, 2], **dict.fromkeys(keys)}])
    assert listed(batch["labels"]) == [[IGNORE, 2]]
    assert batch.document_labels is None


@pytest.mark.parametrize(
    ("documents", "settings", "says"),
    [
        ([[1, -2]], {}, "document 0: token 1 is -2"),
        ([[0.5]], {}, "document 0"),
        ([np.zeros((2, 2), int)], {}, "document 0"),
        ([[1], {"input_ids": [2]}], {}, "1 of 2 documents are dicts"),
        ("text", {}, "list is expected"),
        (7, {}, "list is expected"),
        ({"input_ids": [1]}, {}, "list is expected"),
        ([[2**40], [2**70]], {}, "document 1"),
        ([{"tokens": [1]}], {}, "document 0: keys"),
        ([{"input_ids": [1, 2], "attention_mask": [1, 0]}], {}, "document 0: attention_mask"),
        ([{"input_ids": [1, 2], "labels": [1]}], {}, "document 0: labels"),
        ([{"input_ids": [1, 2], "labels": [0.5, 1]}], {}, "document 0: labels"),
        ([{"input_ids": [1], "labels": 3, "label": 3}], {}, "document 0: both"),
        ([{"input_ids": [1], "labels": [1], "loss_mask": [1]}], {}, "document 0: keys"),
        ([{"input_ids": [1]}], {"loss_masks": [[1]]}, "leave loss_masks"),
        ([[1]], {"lengths": "lengths"}, "lengths="),
        ([{"input_ids": [1, 2], "labels": [[1], [1, 2]]}], {}, "document 0: labels"),
        ([[1]], {"document_labels": [2**63]}, "labels of documents"),
        ([[1]], {"document_labels": ["a"]}, "labels of documents"),
        ([torch.empty(2, dtype=torch.int64, device="meta")], {}, "document 0"),
    ],
)
def test_what_is_no_document_is_refused(documents, settings, says):
    with pytest.raises(bf.FormatError, match=says):
        bf.flatten(documents, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"fields": []},
        {"fields": 5},
        {"fields": [None]},
        {"pad_token_id": 1.5},
        {"pad_token_id": 2**70},
        {"align": None},
        {"pad_to_multiple_of": "8"},
        {"max_segments": 2.0},
        {"max_segments": 2**63 - 1},
        {"fields": "input_ids"},
        {"fields": ["tokens"]},
        {"fields": ["labels", "labels"]},
        {"align": 0},
        {"align": -4},
        {"pad_to_multiple_of": 0},
        {"max_segments": 0},
        {"align": 2**31},
        {"pad_to_multiple_of": 2**40},
    ],
)
def test_settings_out_of_their_range_are_refused(settings):
    with pytest.raises(bf.PlanError):
        bf.flatten([[1, 2, 3]], **settings)


def test_as_a_collator_of_torch_with_worker_processes():
    documents = [document(i, 1 + i % 5) for i in range(40)]
    loader = torch.utils.data.DataLoader(
        documents,
        batch_size=8,
        collate_fn=bf.flatten,
        num_workers=1,
        multiprocessing_context="spawn",
    )
    seen = []
    for batch in loader:
        assert isinstance(batch, bf.Batch)
        assert listed(batch.cu_seqlens) == [0, *np.cumsum(batch.lengths)]
        seen += listed(batch["input_ids"][0])
    assert seen == np.concatenate(documents).tolist()


def test_documents_are_not_kept():
    ids = np.arange(5)
    batch = bf.flatten([ids])
    ids[:] = 77
    assert listed(batch["input_ids"]) == [[0, 1, 2, 3, 4]]
    batch["input_ids"][0, 0] = 9
    assert listed(batch["labels"]) == [[IGNORE, 1, 2, 3, 4]]
