"""Unpadding and padding again: exact for any mask, dtype and shape, in every column alike."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf

NUMPY_DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    ">i4",
)
TORCH_DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bfloat16,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.float8_e4m3fn,
)


@st.composite
def masks(draw: st.DrawFn) -> np.ndarray:
    """[rows, width]: padding left, right, on both sides or anywhere; empty rows; no rows at all."""
    rows, width = draw(st.integers(0, 5)), draw(st.integers(0, 9))
    kind = draw(st.sampled_from(["left", "right", "both", "any", "none", "all"]))
    mask = np.zeros((rows, width), bool)
    for row in mask:
        first, end = sorted(draw(st.tuples(st.integers(0, width), st.integers(0, width))))
        if kind == "any":
            row[:] = draw(st.lists(st.booleans(), min_size=width, max_size=width))
        else:
            first = 0 if kind in ("right", "none") else first
            end = width if kind in ("left", "none") else end
            row[first:end] = kind != "all"
    return mask


trailing_shapes = st.sampled_from([(), (1,), (3,), (2, 2), (0,)])
multiples = st.sampled_from([1, 2, 7, 8, 64])


def numbered(mask: np.ndarray, trailing: tuple[int, ...]) -> np.ndarray:
    """A column whose values tell their slot: row * 20 + place + 1, and 0.1 more a trailing step."""
    rows, width = mask.shape
    slots = np.arange(rows)[:, None] * 20 + np.arange(width) + 1
    steps = np.arange(np.prod(trailing, dtype=int)).reshape(trailing) * 0.1
    return slots.reshape(rows, width, *[1] * len(trailing)) + steps


@given(masks(), st.sampled_from(NUMPY_DTYPES), trailing_shapes, multiples)
def test_numpy_goes_there_and_back(
    mask: np.ndarray, dtype: str, trailing: tuple[int, ...], multiple: int
) -> None:
    column = numbered(mask, trailing).astype(dtype)
    values, cu_seqlens, max_seqlen, num_tokens = bf.unpad(column, mask, multiple=multiple)
    assert values.dtype == column.dtype
    assert cu_seqlens.dtype == np.int32
    assert num_tokens == mask.sum()
    assert len(values) == cu_seqlens[-1] == -(-num_tokens // multiple) * multiple
    assert np.array_equal(values[:num_tokens], column[mask])
    assert not values[num_tokens:].any()
    tail = len(values) > num_tokens
    expected = [0, *mask.sum(1).cumsum().tolist()] + [len(values)] * tail
    assert cu_seqlens.tolist() == expected
    assert max_seqlen == max(np.diff(expected), default=0)

    back = bf.repad(values, cu_seqlens, attention_mask=mask)
    assert back.dtype == column.dtype
    keep = mask.reshape(*mask.shape, *[1] * len(trailing))
    assert np.array_equal(back, np.where(keep, column, 0).astype(dtype))


@given(masks(), st.sampled_from(TORCH_DTYPES), trailing_shapes, multiples)
def test_torch_goes_there_and_back(
    mask: np.ndarray, dtype: torch.dtype, trailing: tuple[int, ...], multiple: int
) -> None:
    column = torch.from_numpy(numbered(mask, trailing)).to(dtype)
    unpadded = bf.unpad(column, torch.from_numpy(mask), multiple=multiple)
    values, n = unpadded.values, unpadded.num_tokens
    assert values.dtype == column.dtype
    assert unpadded.cu_seqlens.dtype == torch.int32
    assert bytes_of(values[:n]) == bytes_of(column[torch.from_numpy(mask)])
    back = bf.repad(values, unpadded.cu_seqlens, attention_mask=torch.from_numpy(mask))
    assert back.dtype == column.dtype
    assert back.shape == column.shape
    assert bytes_of(back[torch.from_numpy(mask)]) == bytes_of(values[:n])
    assert not any(bytes_of(back[torch.from_numpy(~mask)]))


def bytes_of(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@given(
    st.lists(st.integers(0, 6), max_size=5),
    st.integers(0, 3),
    st.sampled_from(["left", "right"]),
    st.integers(0, 4),
)
def test_segments_become_rows_with_padding_on_one_side(
    lengths: list[int], room: int, side: Any, tail: int
) -> None:
    cu_seqlens = np.cumsum([0, *lengths, tail])
    values = np.arange(1, cu_seqlens[-1] + 1)
    width = max(lengths, default=0) + room
    padded = bf.repad(values, cu_seqlens, rows=len(lengths), width=width, side=side, fill=-7)
    assert padded.shape == (len(lengths), width)
    for row, first, length in zip(padded.tolist(), cu_seqlens.tolist(), lengths, strict=False):
        tokens = list(range(first + 1, first + length + 1))
        gap = [-7] * (width - length)
        assert row == (gap + tokens if side == "left" else tokens + gap)
    # Unpadding by what is no fill gives the values without the tail.
    unpadded = bf.unpad(padded, padded != -7)
    assert unpadded.values.tolist() == values[: sum(lengths)].tolist()
    assert unpadded.cu_seqlens.tolist() == cu_seqlens[:-1].tolist()


def test_rows_are_all_segments_and_as_wide_as_the_longest_unless_told() -> None:
    assert bf.repad(np.array([1, 2, 3, 4]), [0, 3, 3, 4]).tolist() == [
        [1, 2, 3],
        [0, 0, 0],
        [4, 0, 0],
    ]


@pytest.mark.parametrize("dtype", ["i8,i4", "i1", "i1,i1,i1", "V40000"])
def test_padding_of_any_size_of_value_is_filled_to_its_end(dtype: str) -> None:
    # 12 and 3 bytes divide no power of two.
    padded = bf.repad(np.zeros(1, dtype), [0, 1], width=9_000 if dtype != "V40000" else 5, fill=1)
    assert padded[0, 0] == np.zeros(1, dtype)[0]
    assert np.all(padded[0, 1:] == np.full(1, 1, dtype))


def c27_batch(make: Any) -> tuple[dict[str, Any], Any]:
    """Lengths 3 and 2 in two rows of 4, in every column that a batch can have."""
    mask = np.array([[1, 1, 1, 0], [0, 0, 1, 1]])
    ids = np.array([[11, 12, 13, 0], [0, 0, 21, 22]])
    batch = {
        "input_ids": ids,
        "labels": np.where(mask, ids, -100),
        "targets": np.where(mask, ids, -100),
        "shift_labels": np.where(mask, ids, -100),
        "position_ids": np.array([[0, 1, 2, 0], [0, 0, 0, 1]]),
        "document_ids": np.array([[0, 0, 0, -1], [-1, -1, 0, 0]], np.int32),
        "loss_mask": mask.astype(bool),
        "loss_weights": mask.astype(np.float32),
        "advantages": mask * 0.5,
        "hidden": np.ones((2, 4, 3), np.float16),
    }
    return {name: make(column) for name, column in batch.items()}, make(mask)


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_c27_every_column_is_rounded_up_alike(make: Any) -> None:
    batch, mask = c27_batch(make)
    unpadded = bf.unpad(batch, mask, multiple=8)
    values = unpadded.values
    assert list(values) == list(batch)
    assert {len(column) for column in values.values()} == {8}
    assert values["input_ids"].tolist() == [11, 12, 13, 21, 22, 0, 0, 0]
    for name in ("labels", "targets", "shift_labels"):
        assert values[name].tolist() == [11, 12, 13, 21, 22, -100, -100, -100]
    assert values["position_ids"].tolist() == [0, 1, 2, 0, 1, 0, 1, 2]
    assert values["document_ids"].tolist() == [0, 0, 0, 0, 0, -1, -1, -1]
    for name in ("loss_mask", "loss_weights"):
        assert values[name].tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
    assert values["hidden"].sum() == 5 * 3
    assert unpadded.cu_seqlens.tolist() == [0, 3, 5, 8]
    assert (unpadded.max_seqlen, unpadded.num_tokens) == (3, 5)

    back = bf.repad(values, unpadded.cu_seqlens, attention_mask=mask)
    for name in ("input_ids", "labels", "document_ids", "loss_mask", "loss_weights", "advantages"):
        assert back[name].tolist() == batch[name].tolist(), name
        assert back[name].dtype == batch[name].dtype


@pytest.mark.parametrize("multiple", [1, 5])
def test_c27_a_total_that_fits_gets_no_tail(multiple: int) -> None:
    batch, mask = c27_batch(np.asarray)
    unpadded = bf.unpad(batch, mask, multiple=multiple)
    assert unpadded.cu_seqlens.tolist() == [0, 3, 5]
    assert {len(column) for column in unpadded.values.values()} == {5}


def test_fills_may_be_named() -> None:
    batch, mask = c27_batch(np.asarray)
    unpadded = bf.unpad(batch, mask, multiple=8, fill={"input_ids": 9, "position_ids": 4})
    assert unpadded.values["input_ids"].tolist()[5:] == [9, 9, 9]
    assert unpadded.values["position_ids"].tolist()[5:] == [4, 4, 4]
    assert unpadded.values["labels"].tolist()[5:] == [-100] * 3
    back = bf.repad(
        unpadded.values, unpadded.cu_seqlens, attention_mask=mask, fill={"input_ids": 9}
    )
    assert back["input_ids"].tolist() == [[11, 12, 13, 9], [9, 9, 21, 22]]
    assert bf.unpad(batch["input_ids"], mask, multiple=8, fill=9).values.tolist()[5:] == [9, 9, 9]
    logits = bf.repad(np.ones(3, np.float32), [0, 1, 3], fill=-np.inf)
    assert logits.tolist() == [[1, -np.inf], [1, 1]]


def test_the_mask_itself_is_not_passed_on() -> None:
    batch, mask = c27_batch(np.asarray)
    unpadded = bf.unpad({**batch, "attention_mask": mask}, mask)
    assert "attention_mask" not in unpadded.values


def test_gradients_go_back_to_where_the_tokens_came_from() -> None:
    mask = torch.tensor([[0, 1, 1, 0], [1, 0, 1, 1]])
    padded = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)

    def there(x: torch.Tensor) -> torch.Tensor:
        return bf.unpad(x, mask, multiple=8).values

    def and_back(x: torch.Tensor) -> torch.Tensor:
        unpadded = bf.unpad(x, mask, multiple=8)
        return bf.repad(unpadded.values**2, unpadded.cu_seqlens, attention_mask=mask, fill=5)

    for function in (there, and_back):
        assert torch.autograd.gradcheck(function, padded)
        assert torch.autograd.gradgradcheck(function, padded)
    there(padded).sum().backward()
    assert padded.grad is not None
    assert torch.equal(padded.grad, mask[..., None].expand(2, 4, 3).double())


def test_gradients_of_a_tail_are_nought() -> None:
    values = torch.randn(8, requires_grad=True)
    bf.repad(values, [0, 2, 5, 8], rows=2).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1] * 5 + [0] * 3


def test_what_needs_no_gradient_gets_none() -> None:
    assert not bf.unpad(torch.ones(1, 2), torch.ones(1, 2)).values.requires_grad


def test_views_of_any_strides_are_read_in_their_own_order() -> None:
    mask = np.array([[1, 1, 0], [1, 0, 0]])
    column = np.arange(24).reshape(3, 2, 4)[::-1, :, ::2].transpose(1, 0, 2)
    assert np.array_equal(bf.unpad(column, mask).values, column[mask == 1])
    tensor = torch.arange(6).reshape(3, 2).t()
    assert bf.unpad(tensor, mask.T.copy().T).values.tolist() == tensor[mask == 1].tolist()
    assert bf.unpad(torch.ones(1).expand(2, 3), mask).values.tolist() == [1, 1, 1]
    single = torch.tensor([[3.0, 4.0]])[:, ::2]  # contiguous, with a stride of 2
    assert bf.unpad(single, np.ones((1, 1))).values.tolist() == [3]
    assert bf.repad(single[0], [0, 1], width=2).tolist() == [[3, 0]]
    conjugate = torch.tensor([[1 + 2j, 3 + 4j]]).conj()
    assert bf.unpad(conjugate, np.array([[0, 1]])).values.tolist() == [3 - 4j]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32, torch.bfloat16])
def test_masks_of_any_dtype_say_the_same(dtype: torch.dtype) -> None:
    mask = torch.tensor([[1, 0, 1]]).to(dtype)
    assert bf.unpad(torch.tensor([[5, 6, 7]]), mask).values.tolist() == [5, 7]


@pytest.mark.parametrize(
    "mask",
    [
        np.array([[1, 2]]),
        np.array([[0.0, -np.inf]]),
        np.array([[0.5, 1.0]]),
        np.array([[np.nan, 1.0]]),
        np.array([[-1, 1]], np.int8),
        np.array([[256, 1]]),
        np.ones(2),
        np.ones((1, 1, 1, 2)),
        torch.tensor([[0.0, float("-inf")]]),
    ],
    ids=["2", "additive", "half", "nan", "-1", "256", "flat", "of heads", "torch"],
)
def test_masks_of_another_kind_are_refused(mask: Any) -> None:
    with pytest.raises(bf.PlanError, match="attention_mask"):
        bf.unpad(np.zeros((1, 2)), mask)


@pytest.mark.parametrize(
    ("shape", "name"), [((2, 3), "labels"), ((4, 2), "labels"), ((2,), "scores"), ((), "scores")]
)
def test_columns_that_do_not_cover_the_mask_are_named(shape: tuple[int, ...], name: str) -> None:
    batch = {"input_ids": np.zeros((2, 4)), name: np.zeros(shape)}
    with pytest.raises(bf.PlanError, match=rf"{name} has the shape .*\[2, 4, ...\] is expected"):
        bf.unpad(batch, np.ones((2, 4)))


@pytest.mark.parametrize(
    ("cu_seqlens", "words"),
    [
        ([], "segments"),
        ([1, 4], "begin with 0, found 1"),
        ([0, 3, 2, 4], "falls from 3 to 2"),
        ([0, 3], "ends at 3"),
        ([0, 5], "ends at 5"),
        ([0, 2**40], "2147483647"),
        ([[0, 4]], "shape"),
        ([0.0, 4.0], "float64"),
    ],
)
def test_offsets_that_cannot_be_are_refused(cu_seqlens: Any, words: str) -> None:
    with pytest.raises(bf.PlanError) as error:
        bf.repad(np.zeros(4), cu_seqlens)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"width": 2}, "segment 1 has 3 tokens"),
        ({"width": -1}, "width is -1"),
        ({"width": 2**62}, "width is"),
        ({"width": True}, "width is True"),
        ({"rows": 3}, "2 segments; 3 rows"),
        ({"rows": -1}, "-1 rows"),
        ({"rows": 1.5}, "rows is 1.5"),
        ({"side": "top"}, "side"),
        ({"attention_mask": np.ones((1, 1)), "width": 3}, "leave rows, width and side out"),
        ({"attention_mask": np.array([[1, 0], [1, 1]])}, "row 1 of attention_mask has 2"),
        ({"attention_mask": np.ones((3, 1))}, "2 segments; 3 rows"),
        ({"fill": {"values": 0}}, "fill is a mapping"),
        ({"fill": "x"}, "a number is expected"),
    ],
)
def test_rows_that_cannot_be_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(bf.PlanError) as error:
        bf.repad(np.zeros(4), [0, 1, 4], **arguments)
    assert words in str(error.value)


def test_a_batch_of_one_row_is_told_to_go_without_it() -> None:
    with pytest.raises(bf.PlanError, match=r"give column\[0\]"):
        bf.repad(np.zeros((1, 4)), [0, 1, 4])


@pytest.mark.parametrize(
    ("multiple", "words"),
    [(0, "multiple is 0"), (-8, "-8"), (2**31, "2147483648"), (1.5, "1.5"), (2**70, "multiple")],
)
def test_multiples_that_cannot_be_are_refused(multiple: Any, words: str) -> None:
    with pytest.raises(bf.PlanError) as error:
        bf.unpad(np.zeros((1, 2)), np.ones((1, 2)), multiple=multiple)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (np.zeros((1, 3), np.uint8), "labels"),
        (np.zeros((1, 3), bool), "document_ids"),
        (torch.zeros((1, 3), dtype=torch.uint8), "labels"),
        (torch.zeros((1, 3), dtype=torch.bool), "labels"),
    ],
)
def test_a_fill_that_the_dtype_does_not_hold_is_an_error(column: Any, name: str) -> None:
    with pytest.raises(bf.PlanError, match=f"{name} would be filled with"):
        bf.unpad({name: column}, np.ones((1, 3)), multiple=8)
    assert len(bf.unpad({name: column}, np.ones((1, 3))).values[name]) == 3


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
@pytest.mark.parametrize("make", [np.zeros, lambda *how: torch.from_numpy(np.zeros(*how))])
def test_a_fill_beyond_any_dtype_is_an_error(make: Any, dtype: Any) -> None:
    for fill in (10**400, -(10**400), 1e39):
        with pytest.raises(bf.PlanError, match="values would be filled with"):
            bf.unpad(make((1, 3), dtype), np.ones((1, 3)), multiple=8, fill=fill)


@pytest.mark.parametrize(
    ("fill", "words"),
    [(7, "for a mapping of columns"), ({"x": 0}, "'x'"), ({"a": "z"}, "a number is expected")],
)
def test_fills_that_name_nothing_are_refused(fill: Any, words: str) -> None:
    with pytest.raises(bf.PlanError) as error:
        bf.unpad({"a": np.zeros((1, 3))}, np.ones((1, 3)), multiple=8, fill=fill)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([[1, 2]], "list"),
        (None, "NoneType"),
        (np.array([[object(), None]]), "Python objects"),
        (np.ma.masked_array([[1, 2]], [[0, 1]]), "masked array"),
        (torch.eye(2).to_sparse(), "sparse"),
    ],
)
def test_what_is_no_column_is_a_type_error(column: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        bf.unpad(column, np.ones((1, 2)))


def test_tensors_elsewhere_are_refused() -> None:
    with pytest.raises(bf.DeviceError, match=r"meta; .* \.cpu\(\)"):
        bf.unpad(torch.zeros((1, 2), device="meta"), np.ones((1, 2)))
