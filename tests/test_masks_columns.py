"""cu_seqlens and what each slot says: by definition on small cases, by law on many."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from mask_truth import listed, many_lengths, offsets

masks = bf.masks


def test_c13_a_row_start_is_always_a_boundary() -> None:
    flat = masks.cu_seqlens([3, 2, 4])
    assert flat.tolist() == [0, 3, 5, 9]
    assert flat.dtype == np.int32
    assert masks.position_ids(flat).tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert masks.cu_seqlens([[3, 2], [4]], total=5).tolist() == [0, 3, 5, 9, 10]
    # Rows that are all tail, full, or unfinished.
    assert masks.cu_seqlens([[], [5], [2]], total=5).tolist() == [0, 5, 10, 12, 15]
    assert masks.cu_seqlens([[3], [3]]).tolist() == [0, 3, 6]


@given(st.lists(many_lengths(most=9), min_size=1, max_size=4), st.integers(0, 5))
def test_c13_rows_are_those_of_each_row_by_itself(rows: list[list[int]], room: int) -> None:
    total = max(map(sum, rows)) + room
    whole = masks.cu_seqlens(rows, total=total)
    parts = [masks.cu_seqlens(row, total=total) for row in rows]
    expected = [0, *(i * total + end for i, part in enumerate(parts) for end in part[1:].tolist())]
    assert whole.tolist() == expected
    assert {i * total for i in range(len(rows) + 1)} <= set(whole.tolist())


def test_c16_a_last_document_of_one_token_is_no_padding() -> None:
    document = masks.cu_seqlens([3, 1], total=4)
    padding = masks.cu_seqlens([3], total=4)
    assert document.tolist() == [0, 3, 4]
    assert masks.cu_seqlens([3]).tolist() == [0, 3]
    assert masks.document_ids(document).tolist() == [0, 0, 0, 1]
    assert masks.document_ids(padding, num_documents=1).tolist() == [0, 0, 0, -1]


def test_c17_a_tail_is_one_segment_whatever_its_size() -> None:
    assert masks.cu_seqlens([5]).tolist() == [0, 5]
    tail = masks.cu_seqlens([5], total=16)
    assert tail.tolist() == [0, 5, 16]
    assert masks.position_ids(tail).tolist() == [*range(5), *range(11)]
    assert np.diff(tail).max() == 11


@pytest.mark.parametrize(
    ("total", "expected"), [(1024, [0, 512, 1024]), (1100, [0, 512, 1024, 1100])]
)
def test_c18_no_tail_where_nothing_is_left_over(total: int, expected: list[int]) -> None:
    assert masks.cu_seqlens([512, 512], total=total).tolist() == expected
    assert masks.cu_seqlens([512, 512]).tolist() == [0, 512, 1024]


def test_c19_a_fixed_number_of_segments() -> None:
    assert masks.cu_seqlens([3, 2, 4], max_segments=6).tolist() == [0, 3, 5, 9, 9, 9, 9]
    with_tail = masks.cu_seqlens([3, 2, 4], total=12, max_segments=6)
    assert with_tail.tolist() == [0, 3, 5, 9, 12, 12, 12]
    assert masks.cu_seqlens([3, 2, 4], max_segments=3).tolist() == [0, 3, 5, 9]
    for settings, needed, room in (
        ({}, 3, 2),
        ({"total": 12}, 4, 3),
        ({"total": 9}, 3, 2),
        ({"keep_empty": True}, 3, 0),
    ):
        with pytest.raises(bf.PlanError, match=f"{needed} segments.*room for {room}"):
            masks.cu_seqlens([3, 2, 4], max_segments=room, **settings)


@given(many_lengths(), st.integers(0, 9), st.integers(0, 4))
def test_c19_segments_of_no_slots_change_nothing(lengths: list[int], tail: int, spare: int) -> None:
    total = sum(lengths) + tail
    exact = masks.cu_seqlens(lengths, total=total)
    fixed = masks.cu_seqlens(lengths, total=total, max_segments=len(exact) - 1 + spare)
    assert len(fixed) == len(exact) + spare
    assert masks.position_ids(fixed).tolist() == masks.position_ids(exact).tolist()
    assert masks.document_ids(fixed).tolist() == masks.document_ids(exact).tolist()
    assert masks.dense(fixed).tolist() == masks.dense(exact).tolist()
    assert listed(masks.block_mask_arrays(fixed, 8)) == listed(masks.block_mask_arrays(exact, 8))


def test_c20_no_filler_ends_the_array() -> None:
    fixed = masks.cu_seqlens([3, 2], max_segments=4)
    assert fixed.tolist() == [0, 3, 5, 5, 5]
    assert fixed[: 2 + 1].tolist() == masks.cu_seqlens([3, 2]).tolist() == [0, 3, 5]


def test_c23_an_alignment_gap_belongs_to_its_document() -> None:
    physical = masks.cu_seqlens([3, 2, 4], align=4)
    assert physical.tolist() == [0, 4, 8, 12]
    ids = masks.document_ids(physical, lengths=[3, 2, 4])
    assert ids.tolist() == [0, 0, 0, -1, 1, 1, -1, -1, 2, 2, 2, 2]
    assert masks.position_ids(physical).tolist() == [0, 1, 2, 3] * 3
    tokens = np.arange(10, 22)
    labels = masks.labels(tokens, physical, lengths=[3, 2, 4])
    assert labels.tolist() == [-100, 11, 12, -100, -100, 15, -100, -100, -100, 19, 20, 21]
    shifted = masks.shift_labels(tokens, physical, lengths=[3, 2, 4])
    assert shifted.tolist() == [11, 12, -100, -100, 15, -100, -100, -100, 19, 20, 21, -100]


def test_c24_empty_documents_are_passed_over_unless_kept() -> None:
    assert masks.cu_seqlens([0, 1, 0, 2]).tolist() == [0, 1, 3]
    assert masks.cu_seqlens([0, 1, 0, 2], keep_empty=True).tolist() == [0, 0, 1, 1, 3]
    assert masks.cu_seqlens([1, 1]).tolist() == [0, 1, 2]
    assert masks.cu_seqlens([]).tolist() == masks.cu_seqlens([0, 0]).tolist() == [0]
    assert masks.cu_seqlens([], total=0).tolist() == [0]
    kept = masks.cu_seqlens([0, 1, 0, 2], keep_empty=True)
    assert masks.document_ids(kept).tolist() == [1, 3, 3]
    assert masks.labels([7, 8, 9], kept).tolist() == [-100, -100, 9]
    assert masks.shift_labels([7, 8, 9], kept).tolist() == [-100, 9, -100]


def test_c26_document_numbers_are_a_field_of_their_own() -> None:
    tail = masks.cu_seqlens([2, 3], total=6)
    ids = masks.document_ids(tail, num_documents=2)
    assert ids.tolist() == [0, 0, 1, 1, 1, -1]
    assert (ids >= 0).astype(int).tolist() == [1, 1, 1, 1, 1, 0]
    assert masks.position_ids(tail).tolist() == [0, 1, 0, 1, 2, 0]
    assert masks.seq_idx(tail).tolist() == [[0, 0, 1, 1, 1, 2]]
    assert masks.seq_idx(tail).dtype == np.int32


@given(many_lengths(), st.integers(1, 64))
def test_c27_every_field_is_padded_alike(lengths: list[int], multiple: int) -> None:
    total = -(-sum(lengths) // multiple) * multiple
    documents = len([length for length in lengths if length])
    cu = masks.cu_seqlens(lengths, total=total)
    ids = np.arange(total)
    labels = masks.labels(ids, cu, num_documents=documents)
    shifted = masks.shift_labels(ids, cu, num_documents=documents)
    fields = [
        masks.position_ids(cu),
        masks.document_ids(cu, num_documents=documents),
        labels,
        shifted,
        masks.loss_weights(labels, cu),
        masks.loss_weights(shifted, cu),
        *masks.segment_bounds(cu),
    ]
    assert {field.shape for field in fields} == {(total,)}
    used = sum(lengths)
    assert set(labels[used:].tolist()) <= {-100}
    assert set(shifted[used:].tolist()) <= {-100}
    assert not masks.loss_weights(labels, cu)[used:].any()


def test_c27_five_tokens_in_eight_slots() -> None:
    cu = masks.cu_seqlens([3, 2], total=8)
    labels = masks.labels(np.arange(8), cu, num_documents=2)
    assert labels.tolist() == [-100, 1, 2, -100, 4, -100, -100, -100]
    assert masks.position_ids(cu).tolist() == [0, 1, 2, 0, 1, 0, 1, 2]


def test_c31_a_start_token_begins_its_document() -> None:
    tokens = [1, 3, 3, 3, 1, 3, 3]
    cu = masks.cu_seqlens([4, 3])
    assert masks.position_ids(cu).tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert masks.shift_labels(tokens, cu).tolist() == [3, 3, 3, -100, 3, 3, -100]


def test_c31_an_end_token_belongs_to_the_document_that_it_ends() -> None:
    tokens = [4, 9, 5, 6, 9, 7]
    cu = masks.cu_seqlens([2, 3, 1])
    assert masks.position_ids(cu).tolist() == [0, 1, 0, 1, 2, 0]
    assert masks.shift_labels(tokens, cu).tolist() == [9, -100, 6, 9, -100, -100]
    assert masks.labels(tokens, cu).tolist() == [-100, 9, -100, 6, 9, -100]


def test_c32_no_token_predicts_one_of_the_next_document() -> None:
    assert masks.shift_labels([1, 2, 3, 4, 5], [0, 3, 5]).tolist() == [2, 3, -100, 5, -100]
    assert masks.labels([1, 2, 3, 4, 5], [0, 3, 5]).tolist() == [-100, 2, 3, -100, 5]


@given(many_lengths(), st.integers(0, 9), st.randoms(use_true_random=False))
def test_c32_labels_and_shift_labels_say_the_same(
    lengths: list[int], tail: int, random: Any
) -> None:
    """By definition, for any documents, loss mask and tail: shifted[t] is labels[t + 1]."""
    cu = offsets([*lengths, tail])
    ids = np.arange(1000, 1000 + cu[-1])
    mask = np.array([random.random() < 0.7 for _ in ids], bool)
    given_ = {"loss_mask": mask, "num_documents": len(lengths)}
    labels = masks.labels(ids, cu, **given_)
    shifted = masks.shift_labels(ids, cu, **given_)
    for i, (begin, end) in enumerate(itertools.pairwise(cu.tolist())):
        trained = np.where(mask[begin:end], ids[begin:end], -100).tolist()
        real = i < len(lengths)
        slots = end - begin
        assert labels[begin:end].tolist() == (
            [-100, *trained[1:]][:slots] if real else [-100] * slots
        )
        assert shifted[begin:end].tolist() == (
            [*trained[1:], -100][-slots:] if real and slots else [-100] * slots
        )


def test_a_label_is_carried_across_a_cut_when_it_is_given() -> None:
    cu = [0, 3, 5, 7]
    carried = masks.shift_labels(np.arange(7), cu, next_tokens=[-100, 42, 43], num_documents=2)
    assert carried.tolist() == [1, 2, -100, 4, 42, -100, -100]
    gap = masks.shift_labels(np.arange(7), cu, next_tokens=[40, 41, 42], lengths=[2, 2, 1])
    assert gap.tolist() == [1, 40, -100, 4, 41, 42, -100]


def test_c34_spans_of_documents_are_moved_by_the_documents_before_them() -> None:
    lengths, spans = [6, 5, 7], [(4, 6), (2, 5), (5, 7)]
    cu = masks.cu_seqlens(lengths)
    mask = np.zeros(cu[-1], bool)
    for begin, (first, last) in zip(cu.tolist(), spans, strict=False):
        mask[begin + first : begin + last] = True
    labels = masks.labels(np.arange(18), cu, loss_mask=mask)
    assert np.nonzero(labels != -100)[0].tolist() == [4, 5, 8, 9, 10, 16, 17]


def test_c35_loss_masks_go_into_the_labels() -> None:
    tokens = [11, 12, 13, 14, 21, 22, 23, 0]
    mask = [0, 0, 1, 1, 0, 1, 1, 0]
    cu = masks.cu_seqlens([4, 3], total=8)
    for given_ in (mask, np.array(mask, bool), np.array(mask, np.int64), torch.tensor(mask)):
        labels = masks.labels(tokens, cu, loss_mask=given_, num_documents=2)
        assert np.asarray(labels).tolist() == [-100, -100, 13, 14, -100, 22, 23, -100]
    with pytest.raises(bf.PlanError, match="6 values, and ends in segment 1"):
        masks.labels(tokens, cu, loss_mask=mask[:6])
    with pytest.raises(bf.PlanError, match="9 values"):
        masks.labels(tokens, cu, loss_mask=[*mask, 1])
    with pytest.raises(bf.PlanError, match="other values than 0"):
        masks.labels(tokens, cu, loss_mask=[0, 0, 2, 1, 0, 1, 1, 0])


def test_c39_each_sequence_weighs_the_same() -> None:
    cu = [0, 5, 7, 10]
    labels = masks.labels(np.arange(10), cu, loss_mask=[0, 1, 1, 1, 1, 0, 1, 0, 0, 0])
    weights = masks.loss_weights(labels, cu)
    assert weights.tolist() == [0, 0.25, 0.25, 0.25, 0.25, 0, 1, 0, 0, 0]
    losses = np.array([9, 1, 1, 1, 1, 9, 3, 9, 9, 9])
    assert (weights * losses).sum() / weights.sum() == 2.0
    assert losses[labels != -100].mean() == 1.4


@given(many_lengths(most=20), st.randoms(use_true_random=False))
def test_c39_weights_of_a_segment_add_up_to_one_for_either_kind_of_labels(
    lengths: list[int], random: Any
) -> None:
    cu = offsets(lengths)
    ids = np.arange(cu[-1])
    mask = [random.random() < 0.5 for _ in ids]
    for labels in (
        masks.labels(ids, cu, loss_mask=mask),
        masks.shift_labels(ids, cu, loss_mask=mask),
    ):
        weights = masks.loss_weights(labels, cu)
        assert weights.dtype == np.float32
        assert ((weights != 0) == (labels != -100)).all()
        for begin, end in itertools.pairwise(cu):
            trained = (labels[begin:end] != -100).sum()
            assert weights[begin:end].sum() == pytest.approx(1.0 if trained else 0.0)


def test_positions_go_on_where_they_are_told_to() -> None:
    assert masks.position_ids([0, 3, 5], starts=[7, 0]).tolist() == [7, 8, 9, 0, 1]
    assert masks.position_ids([0, 2], starts=[2**40]).tolist() == [2**40, 2**40 + 1]


def test_bounds_are_those_of_each_slots_segment() -> None:
    begin, end = masks.segment_bounds([0, 2, 2, 5])
    assert begin.tolist() == [0, 0, 2, 2, 2]
    assert end.tolist() == [2, 2, 5, 5, 5]
    assert begin.dtype == end.dtype == np.int32


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "uint64", ">i4"]
)
def test_tokens_of_any_width(dtype: str) -> None:
    tokens = np.array([1, 100, 3, 127], dtype)
    assert masks.labels(tokens, [0, 2, 4]).tolist() == [-100, 100, -100, 127]
    assert masks.shift_labels(tokens[::-1][::-1], [0, 2, 4]).tolist() == [100, -100, 127, -100]


def test_tensors_give_tensors_and_shapes_are_kept() -> None:
    cu = torch.tensor([0, 3, 5], dtype=torch.int32)
    tokens = torch.arange(5)[None]
    for made in (
        masks.cu_seqlens(torch.tensor([3, 2])),
        masks.position_ids(cu),
        masks.document_ids(cu),
        masks.seq_idx(cu),
        masks.labels(tokens, [0, 3, 5]),
        masks.shift_labels(tokens, cu),
        masks.loss_weights(tokens, [0, 3, 5]),
        masks.segment_bounds(cu).begin,
        masks.dense(cu),
    ):
        assert isinstance(made, torch.Tensor)
    assert masks.labels(tokens, cu).shape == masks.loss_weights(tokens, cu).shape == (1, 5)
    assert isinstance(masks.position_ids([0, 3]), np.ndarray)
    assert masks.cu_seqlens([torch.tensor([3]), torch.tensor([2])], total=3).dtype == torch.int32


BAD_OFFSETS: list[Any] = [
    [],
    [1, 3],
    [0, 3, 2],
    [-1, 0],
    [0, -5],
    [[0, 3], [3, 5]],
    np.array([[0, 3]]),
    [0.0, 3.0],
    np.array([0, 3], bool),
    [0, 2**31],
    [0, 2**63],
    [0, 2**70],
    "035",
    None,
    [0, None],
    [[[0], [1, 2]], [0]],
    torch.tensor([0, 3], dtype=torch.bfloat16),
    torch.tensor([0, 3]).to_sparse(),
]


@pytest.mark.parametrize("bad", BAD_OFFSETS, ids=str)
def test_bad_cu_seqlens_are_refused(bad: Any) -> None:
    for call in (
        masks.position_ids,
        masks.document_ids,
        masks.seq_idx,
        masks.segment_bounds,
        lambda cu: masks.labels(np.zeros(3, int), cu),
        lambda cu: masks.shift_labels(np.zeros(3, int), cu),
        lambda cu: masks.loss_weights(np.zeros(3, int), cu),
        masks.dense,
        masks.block_mask_arrays,
        masks.block_mask,
    ):
        with pytest.raises(bf.PlanError):
            call(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda: masks.cu_seqlens([3, -1]),
        lambda: masks.cu_seqlens([1.5]),
        lambda: masks.cu_seqlens([2**31]),
        lambda: masks.cu_seqlens([2**62] * 4),
        lambda: masks.cu_seqlens([2**30] * 2),
        lambda: masks.cu_seqlens([5], total=4),
        lambda: masks.cu_seqlens([[2], [5]], total=4),
        lambda: masks.cu_seqlens([3], total=4, align=8),
        lambda: masks.cu_seqlens([3], total=2**31),
        lambda: masks.cu_seqlens([[3]] * 3, total=2**30),
        lambda: masks.cu_seqlens([3], total=2**70),
        lambda: masks.cu_seqlens([3], total=4.0),
        lambda: masks.cu_seqlens([3], align=0),
        lambda: masks.cu_seqlens([3], align=-4),
        lambda: masks.cu_seqlens([2**31 - 1], align=2**31 - 2),
        lambda: masks.cu_seqlens([3], max_segments=-1),
        lambda: masks.cu_seqlens([3], max_segments=True),
        lambda: masks.cu_seqlens([3], max_segments=2**31),
        lambda: masks.cu_seqlens([3], max_segments=2**63 - 1),
        lambda: masks.cu_seqlens([3], keep_empty="no"),
        lambda: masks.cu_seqlens([[[3], [1, 2]]]),
        lambda: masks.labels([1, 2], [0, 2], loss_mask=torch.ones(2, dtype=torch.bfloat16)),
        lambda: masks.position_ids([0, 3], starts=[1, 2]),
        lambda: masks.position_ids([0, 3], starts=[0.5]),
        lambda: masks.document_ids([0, 3], num_documents=2),
        lambda: masks.document_ids([0, 3], num_documents=-1),
        lambda: masks.document_ids([0, 3], lengths=[4]),
        lambda: masks.document_ids([0, 3], lengths=[-1]),
        lambda: masks.document_ids([0, 3], lengths=[1, 1]),
        lambda: masks.labels([1, 2], [0, 3]),
        lambda: masks.labels([1.0, 2.0], [0, 2]),
        lambda: masks.labels([True, False], [0, 2]),
        lambda: masks.shift_labels([1, 2], [0, 2], next_tokens=[1, 2]),
        lambda: masks.loss_weights([1, 2, 3], [0, 2]),
    ],
)
def test_what_does_not_fit_is_refused(call: Any) -> None:
    with pytest.raises(bf.PlanError):
        call()


def test_tensors_elsewhere_are_refused() -> None:
    elsewhere = torch.zeros(2, dtype=torch.int32, device="meta")
    with pytest.raises(bf.DeviceError, match=r"cu_seqlens is on meta: give cu_seqlens.cpu\(\)"):
        masks.position_ids(elsewhere)
    with pytest.raises(bf.DeviceError, match="ids is on meta"):
        masks.labels(elsewhere, [0, 2])


@pytest.mark.parametrize(
    "kind",
    [list, torch.tensor, lambda x: np.array(x, np.int32)],
    ids=["lists", "tensors", "arrays"],
)
def test_c36_lists_tensors_and_arrays_give_the_same(kind: Any) -> None:
    tokens, lengths = [11, 12, 13, 14, 21, 22, 23], kind([4, 3])
    cu = masks.cu_seqlens(lengths)
    assert cu.tolist() == [0, 4, 7]
    for offsets_ in (cu, kind([0, 4, 7])):
        made = masks.labels(kind(tokens), offsets_, loss_mask=kind([0, 1, 1, 1, 0, 0, 1]))
        assert made.tolist() == [-100, 12, 13, 14, -100, -100, 23]
        assert masks.document_ids(offsets_, lengths=kind([4, 2])).tolist() == [0] * 4 + [1, 1, -1]
        assert masks.position_ids(offsets_, starts=kind([5, 0])).tolist() == [5, 6, 7, 8, 0, 1, 2]
        assert masks.dense(offsets_, prefix_lengths=kind([2, 0])).sum() == 10 + 1 + 6


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import brimful as bf
cu = bf.masks.cu_seqlens([3, 2], total=8)
made = [
    bf.masks.position_ids(cu), bf.masks.document_ids(cu), bf.masks.seq_idx(cu),
    bf.masks.labels(range(8), cu), bf.masks.shift_labels([1] * 8, cu),
    bf.masks.loss_weights([1] * 8, cu), *bf.masks.segment_bounds(cu),
    bf.masks.dense(cu, dtype="float32"), *bf.masks.block_mask_arrays(cu),
]
print({type(array).__module__ for array in made})
try:
    bf.masks.block_mask(cu)
except ModuleNotFoundError as error:
    print(error)
"""


def test_torch_is_needed_for_its_own_objects_only() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    kinds, error = done.stdout.splitlines()
    assert kinds == "{'numpy'}"
    assert error.startswith("bf.masks.block_mask needs torch")
    assert "brimful[torch]" in error


def test_c34_a_gap_moves_spans_too() -> None:
    lengths, spans = [3, 2, 4], [(1, 3), (1, 2), (2, 4)]
    cu = masks.cu_seqlens(lengths, align=4)
    mask = np.zeros(cu[-1], bool)
    for begin, (first, last) in zip(cu.tolist(), spans, strict=False):
        mask[begin + first : begin + last] = True
    shifted = masks.shift_labels(np.arange(12), cu, loss_mask=mask, lengths=lengths)
    assert shifted[shifted != -100].tolist() == [1, 2, 5, 10, 11]
    assert np.nonzero(shifted != -100)[0].tolist() == [0, 1, 4, 9, 10]
