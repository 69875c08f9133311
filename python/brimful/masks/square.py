"""Dense masks: a value for each pair of query and key."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError
from brimful.masks.arguments import as_flag, as_rows, as_window, is_torch_dtype, wants_torch

UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Square(NamedTuple):
    """A mask and what is written into it."""

    mask: Any
    bits: npt.NDArray[Any]  # its memory, as unsigned integers
    seen: int
    unseen: int
    cleared: bool  # holds `unseen` everywhere


def dense(
    cu_seqlens: Any,
    *,
    causal: bool = True,
    window: int | None = None,
    prefix_lengths: Any = None,
    rows: int | None = None,
    dtype: Any = bool,
    out: Any = None,
) -> Any:
    """A mask with a value for each pair of query and key: for scaled_dot_product_attention and
    tests.

    It takes total x total values a row; `block_mask` takes a small fraction of that.

    Args:
        cu_seqlens: `[segments + 1]`, or a list of them, one a row, all of the same size.
        causal: a query sees no key behind itself.
        window: a query sees keys less than this far away (q - k < window; flash-attention's number
            is one less). None: any distance.
        prefix_lengths: `[segments]`, or a list of them: the first tokens of each segment, which all
            of its queries see. None: none.
        rows: cu_seqlens stands for this many rows of equal size.
        dtype: bool (True: sees), or a float dtype of numpy or torch, to be added to scores (0:
            sees, -inf: does not); it must be the query's.
        out: written instead of a new mask, of the same shape, dtype and kind.

    Returns:
        `[total, total]`; where rows are given `[rows, 1, L, L]`, L = total / rows.

    Raises:
        PlanError: a window below 1, prefixes below 0 or not one a segment, rows that begin inside a
            segment, a dtype that is neither bool nor a float, an `out` that does not fit.
    """
    given = as_rows(cu_seqlens, rows, prefix_lengths)
    width = _core.check_rows(given.cu_seqlens, given.number)
    shape = (width, width) if given.rows is None else (given.rows, 1, width, width)
    square = _square(shape, dtype, out, is_torch_dtype(dtype) or wants_torch(cu_seqlens, out))
    _core.write_dense_mask(
        given.cu_seqlens,
        given.number,
        as_flag("causal", causal),
        as_window(window),
        given.prefix_lengths,
        square.seen,
        square.unseen,
        square.cleared,
        square.bits,
    )
    return square.mask


def _square(shape: tuple[int, ...], dtype: Any, out: Any, as_torch: bool) -> Square:
    if as_torch:
        from brimful.masks.square_torch import square

        return square(shape, dtype, out)
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if not (kind == np.bool_ or (kind.kind == "f" and kind.itemsize in UNSIGNED and kind.isnative)):
        raise PlanError(f"dtype is {dtype!r}; bool or a float of at most 64 bits is expected")
    cleared = out is None and kind == np.bool_
    if out is None:
        # Zeros that nobody touches cost nothing; other values are written once, row by row.
        out = np.zeros(shape, kind) if cleared else np.empty(shape, kind)
    else:
        kept = isinstance(out, np.ndarray) and out.flags.c_contiguous and out.flags.writeable
        check_out(out, shape, kind, kept)
    unsigned = UNSIGNED[kind.itemsize]
    values = [True, False] if kind == np.bool_ else [0, -np.inf]
    seen, unseen = np.array(values, kind).view(unsigned)
    return Square(out, out.view(unsigned), int(seen), int(unseen), cleared)


def check_out(out: Any, shape: tuple[int, ...], dtype: Any, usable: bool) -> None:
    """PlanError unless it can be written in place of a new mask."""
    if not usable or tuple(out.shape) != shape or out.dtype != dtype:
        raise PlanError(
            f"out is {type(out).__name__} {getattr(out, 'dtype', '')} "
            f"{list(getattr(out, 'shape', []))}; {dtype} {list(shape)} is expected, contiguous, "
            "writable and in host memory"
        )
