"""Dense masks: pair by pair what the definition says, in every dtype."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from mask_truth import many_lengths, offsets, pairs

dense = bf.masks.dense
windows = st.none() | st.integers(1, 70)


@st.composite
def prefixes_of(draw: st.DrawFn, lengths: list[int]) -> list[int] | None:
    """One a segment, also longer than it; or none at all."""
    if draw(st.booleans()):
        return None
    return draw(st.lists(st.integers(0, 70), min_size=len(lengths), max_size=len(lengths)))


@given(many_lengths(), windows, st.booleans(), st.data())
def test_dense_is_what_the_definition_says(
    lengths: list[int], window: int | None, causal: bool, data: st.DataObject
) -> None:
    cu, prefixes = offsets(lengths), data.draw(prefixes_of(lengths))
    expected = pairs(cu, causal=causal, window=window, prefixes=prefixes)
    given_: Any = {"causal": causal, "window": window, "prefix_lengths": prefixes}
    seen = dense(cu, **given_)
    assert seen.dtype == bool
    assert (seen == expected).all()
    for dtype in (np.float16, np.float32, np.float64):
        added = dense(cu, dtype=dtype, **given_)
        assert added.dtype == dtype
        assert (added == np.where(expected, 0, -np.inf)).all()
    # What was there before does not shine through.
    used = np.full(expected.shape, np.nan, np.float32)
    assert dense(cu, dtype=np.float32, out=used, **given_) is used
    assert (used == np.where(expected, 0, -np.inf)).all()
    again = np.ones(expected.shape, bool)
    assert (dense(cu, out=again, **given_) == expected).all()


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.bfloat16, torch.float16, torch.float32, torch.float64]
)
def test_dense_of_every_dtype_of_torch(dtype: torch.dtype) -> None:
    cu, expected = [0, 3, 3, 7], torch.from_numpy(pairs([0, 3, 3, 7], window=3))
    mask = dense(cu, window=3, dtype=dtype)
    if dtype != torch.bool:
        expected = torch.where(expected, 0.0, -torch.inf).to(dtype)
    assert mask.dtype == dtype
    assert torch.equal(mask, expected)
    out = torch.ones(7, 7).to(dtype)
    assert dense(cu, window=3, dtype=dtype, out=out) is out
    assert torch.equal(out, expected)
    with torch.device("meta"):  # torch's default device is another one
        assert torch.equal(dense(cu, window=3, dtype=dtype), expected)


def test_dense_of_rows_is_that_of_each_row() -> None:
    rows = [[3, 0, 2], [5], [1, 1, 1, 2]]
    prefixes = [[1, 0, 2], [3], [0, 0, 0, 1]]
    listed = dense([offsets(row) for row in rows], window=2, prefix_lengths=prefixes)
    flat = bf.masks.cu_seqlens(rows, keep_empty=True)
    flattened = dense(flat, rows=3, window=2, prefix_lengths=np.concatenate(prefixes))
    assert listed.shape == flattened.shape == (3, 1, 5, 5)
    assert (listed == flattened).all()
    for mask, row, prefix in zip(listed, rows, prefixes, strict=True):
        assert (mask[0] == pairs(offsets(row), window=2, prefixes=prefix)).all()
    assert dense(flat, rows=3, dtype=torch.bfloat16).shape == (3, 1, 5, 5)
    assert dense([torch.tensor([0, 5])]).shape == (1, 1, 5, 5)


def test_dense_of_nothing() -> None:
    assert dense([0]).shape == (0, 0)
    assert dense([0, 0, 0], dtype=torch.float32).shape == (0, 0)


def test_scores_with_the_mask_give_each_document_its_own_attention() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 9, 8)
    cu = [0, 4, 6, 9]
    attend = torch.nn.functional.scaled_dot_product_attention
    for mask in (dense(cu, dtype=torch.bool), dense(cu, dtype=torch.float32)):
        whole = attend(q, k, v, attn_mask=mask)
        parts = [
            attend(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], is_causal=True)
            for a, b in itertools.pairwise(cu)
        ]
        assert torch.allclose(whole, torch.cat(parts, 2), atol=1e-6)


def attention(mask: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """By hand, each query for itself: keys that it does not see take no part in any sum."""
    out = []
    for i, row in enumerate(torch.as_tensor(mask)):
        weights = torch.softmax(k[row] @ q[i], 0)
        out.append(weights @ v[row])
    return torch.stack(out)


@pytest.mark.parametrize("lengths", [[4, 2], [1, 1], [2, 5, 3], [6, 0, 1]])
def test_c14_a_change_in_one_document_changes_nothing_in_another(lengths: list[int]) -> None:
    torch.manual_seed(1)
    cu = bf.masks.cu_seqlens(lengths)
    mask = dense(cu)
    assert np.count_nonzero(mask) == sum(n * (n + 1) // 2 for n in lengths)
    q, k, v = torch.randn(3, cu[-1], 4)
    before = attention(mask, q, k, v)
    q[0], k[0], v[0] = torch.randn(3, 4)
    after = attention(mask, q, k, v)
    assert not torch.equal(before[: lengths[0]], after[: lengths[0]])
    assert torch.equal(before[lengths[0] :], after[lengths[0] :])


def test_c14_four_and_two_tokens_see_thirteen_pairs() -> None:
    assert np.count_nonzero(dense(bf.masks.cu_seqlens([4, 2]))) == 13


def test_c28_a_packed_row_sees_23_of_55_pairs() -> None:
    cu = bf.masks.cu_seqlens([4, 2, 4])
    assert np.count_nonzero(dense(cu)) == 23
    assert np.count_nonzero(dense([0, 10])) == 55
    assert np.count_nonzero(dense(cu, dtype=np.float32) == 0) == 23


@pytest.mark.slow
def test_c30_work_goes_by_slots_and_pairs_and_not_by_documents() -> None:
    """32,768 slots: 1 GiB of addresses, of which only what is written takes memory."""
    many = dense(bf.masks.cu_seqlens([8] * 4096))
    assert np.count_nonzero(many) == 147_456
    few = dense(bf.masks.cu_seqlens([4096] * 8))
    assert np.count_nonzero(few) == 8 * 4096 * 4097 // 2


def test_c30_only_pairs_that_are_seen_are_touched() -> None:
    """A cleared mask is written at what is seen and nowhere else, whatever the documents."""
    for lengths in ([8] * 64, [64] * 8, [512]):
        cu = bf.masks.cu_seqlens(lengths)
        marked = np.full((512, 512), 7, np.uint8)
        bf._core.write_dense_mask(cu, 1, True, None, None, 1, 0, True, marked)
        assert np.count_nonzero(marked == 1) == sum(n * (n + 1) // 2 for n in lengths)
        assert np.count_nonzero(marked == 7) == 512 * 512 - np.count_nonzero(marked == 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 0},
        {"window": -3},
        {"window": 2.5},
        {"prefix_lengths": [1]},
        {"prefix_lengths": [1, -1]},
        {"prefix_lengths": [[1, 1]]},
        {"rows": 0},
        {"causal": "no"},
        {"causal": None},
        {"rows": -1},
        {"rows": 2},
        {"rows": 4},
        {"dtype": np.int32},
        {"dtype": "no dtype"},
        {"dtype": np.complex64},
        {"dtype": np.longdouble},
        {"dtype": ">f4"},
        {"dtype": torch.int64},
        {"dtype": torch.complex64},
        {"dtype": torch.float8_e4m3fn},
        {"out": np.zeros((5, 4), bool)},
        {"out": np.zeros((5, 5), np.float32)},
        {"out": np.zeros((10, 5), bool)[::2]},
        {"out": np.zeros((5, 5), bool).T[::-1]},
        {"out": [[True] * 5] * 5},
        {"out": torch.zeros(5, 5)},
        {"out": torch.zeros(5, 5, dtype=torch.bool, device="meta")},
        {"dtype": torch.bfloat16, "out": np.zeros((5, 5), np.float16)},
    ],
    ids=str,
)
def test_what_dense_refuses(settings: dict[str, Any]) -> None:
    with pytest.raises(bf.PlanError):
        dense([0, 3, 5], **settings)


def test_dense_does_not_write_where_it_may_not() -> None:
    fixed = np.zeros((5, 5), bool)
    fixed.flags.writeable = False
    with pytest.raises(bf.PlanError, match="writable"):
        dense([0, 3, 5], out=fixed)


def test_rows_of_unequal_size_are_refused() -> None:
    with pytest.raises(bf.PlanError, match="3 to 4 slots"):
        dense([[0, 3], [0, 4]])
    with pytest.raises(bf.PlanError, match="leave rows out"):
        dense([[0, 3], [0, 3]], rows=2)
    with pytest.raises(bf.PlanError, match="one array for each row"):
        dense([[0, 3], [0, 3]], prefix_lengths=[1, 1])
    with pytest.raises(bf.PlanError, match="row 1 begins at 3, inside a segment"):
        dense([0, 2, 4, 6], rows=2)
