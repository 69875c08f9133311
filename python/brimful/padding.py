"""Padded rows to tokens end to end, and back, for models and losses that want the other form.

Copying is native and knows no types: a column is bytes, so that any dtype and any trailing
dimensions go through, of numpy arrays and of torch tensors, in host memory and on CUDA devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError
from brimful.masks.arguments import as_whole
from brimful.padding_columns import (
    as_offsets,
    check_covers,
    check_fill,
    check_place,
    column_kind,
    find_tokens,
    host_runs,
    like,
    on_device,
)

# What a slot without a token holds, by the column's name: nothing is trained on it, and it belongs
# to no document. Columns that are not named here hold 0.
_FILLS = {"labels": -100, "shift_labels": -100, "targets": -100, "document_ids": -1}
_POSITIONS = "position_ids"  # they count up on a tail, which is a segment of its own
_MASK = "attention_mask"


class Unpadded(NamedTuple):
    """Tokens end to end. What is an array or tensor here is what `attention_mask` was.

    Attributes:
        values: `[total, ...]`, or a dict of such columns.
        cu_seqlens: int32 `[segments + 1]`: a segment a row, and the tail's where there is one.
        max_seqlen: tokens of the longest segment, the tail included.
        num_tokens: without the tail.
    """

    values: Any
    cu_seqlens: Any
    max_seqlen: int
    num_tokens: int


def unpad(batch: Any, attention_mask: Any, *, multiple: int = 1, fill: Any = None) -> Unpadded:
    """Takes the padding out of padded rows: their tokens end to end, as varlen attention wants.

    Args:
        batch: a numpy array or torch tensor of shape [rows, width, ...], any dtype; or a mapping of
            names to such columns, one value a slot. Padding may be on the left, on the right and
            in between. An `attention_mask` in a mapping is left out of the result: where every
            token is real it says nothing, and models that are given one no longer look for
            documents.
        attention_mask: [rows, width] of 0 and 1 (or False and True), 1 where a token is.
        multiple: the total is rounded up to a multiple of it. What is added, in every column alike,
            is a tail: a segment of its own with labels -100, document_ids -1, position_ids from 0
            up, and 0 in other columns.
        fill: what a tail holds instead: a number for an array, a mapping of names to numbers for a
            mapping, such as {"input_ids": pad_token_id}.

    Returns:
        Unpadded(values, cu_seqlens, max_seqlen, num_tokens); values[cu_seqlens[i]:cu_seqlens[i+1]]
        are the tokens of row i, none where a row is all padding. `values[None]` is what models take
        that want [1, total]. Gradients flow back to tensors that require them.

    Raises:
        PlanError: a mask of another shape or with other values, a column that does not cover the
            mask, a fill that the dtype does not hold, more than 2**31 - 1 tokens.
        TypeError: what is neither array nor tensor; Python objects as values.
        DeviceError: a tensor that is neither in host memory nor on a CUDA device, or that is not
            where attention_mask is.

    On a CUDA device a kernel moves the tokens, on the current stream. The call waits once for the
    device, to learn how many there are.
    """
    where = find_tokens(attention_mask, as_whole("multiple", multiple))
    runs = host_runs(where)
    slots, tail = (runs.rows, runs.width), runs.total - runs.num_tokens

    def one(name: str, column: Any, filler: Any) -> Any:
        kind = column_kind(name, column)
        check_place(name, column, attention_mask)
        check_covers(name, column, slots, "as attention_mask has")
        out = kind.gather(where, column, runs.total)
        if tail and filler is None and name == _POSITIONS:
            check_fill(name, column, tail - 1)
            steps = np.arange(tail).reshape(-1, *[1] * (out.ndim - 1))
            out[runs.num_tokens :] = like(out, steps)
        elif tail:
            out[runs.num_tokens :] = check_fill(name, column, _filler(name, filler))
        return out

    values = _each_column(batch, fill, one)
    cu_seqlens = like(attention_mask, runs.cu_seqlens)
    return Unpadded(values, cu_seqlens, runs.max_seqlen, runs.num_tokens)


def repad(
    values: Any,
    cu_seqlens: Any,
    *,
    attention_mask: Any = None,
    rows: int | None = None,
    width: int | None = None,
    side: Literal["left", "right"] = "right",
    fill: Any = None,
) -> Any:
    """Puts tokens end to end back into padded rows, a segment a row: the inverse of `unpad`.

    Args:
        values: a numpy array or torch tensor of shape [total, ...], any dtype, or a mapping of
            names to such columns.
        cu_seqlens: [segments + 1], where each segment begins; from 0 to total.
        attention_mask: [rows, width]; each row's tokens go where it is 1, as they were before
            `unpad`. Segments behind its last row (a tail) are left out. Without it:
        rows: segments that become rows; those behind them are left out. None: all of them.
        width: slots of a row; None: the tokens of its longest segment.
        side: where the padding goes, "left" or "right".
        fill: what padding holds; a number for an array, a mapping of names to numbers for a
            mapping. None: labels -100, document_ids -1, other columns 0.

    Returns:
        [rows, width, ...] of the same dtype, or a dict of such columns. Gradients flow back to
        tensors that require them; those of a tail are 0.

    Raises:
        PlanError: cu_seqlens that falls or does not begin at 0 and end at total, fewer segments
            than rows, a segment longer than the width or than its row in the mask, a fill that the
            dtype does not hold.
        TypeError, DeviceError: as for `unpad`.

    On a CUDA device a kernel moves the tokens, on the current stream. The call waits for the
    device where cu_seqlens or attention_mask are there, and not otherwise.
    """
    offsets = as_offsets(cu_seqlens)
    if attention_mask is not None:
        if rows is not None or width is not None or side != "right":
            raise PlanError("attention_mask says where tokens go: leave rows, width and side out")
        where = find_tokens(attention_mask, 1)
        _core.check_segments(host_runs(where), offsets)
    else:
        where = _lay(offsets, rows, width, side)
    total = int(offsets[-1])
    why = f"as cu_seqlens ends at {total} (of a column [1, {total}, ...] give column[0])"

    def one(name: str, column: Any, filler: Any) -> Any:
        kind = column_kind(name, column)
        check_place(name, column, attention_mask)
        check_covers(name, column, (total,), why)
        there = where_on(column)
        return kind.scatter(there, column, check_fill(name, column, _filler(name, filler)))

    on_devices: dict[str, Any] = {}  # one map a device, for all of its columns

    def where_on(column: Any) -> Any:
        if not isinstance(where, _core.TokenRuns) or not on_device(column):
            return where
        from brimful.padding_device import lay_segments

        if (device := str(column.device)) not in on_devices:
            on_devices[device] = lay_segments(where, side == "left", column.device)
        return on_devices[device]

    return _each_column(values, fill, one)


def _lay(
    offsets: npt.NDArray[np.int64], rows: int | None, width: int | None, side: str
) -> _core.TokenRuns:
    if side not in ("left", "right"):
        raise PlanError(f'side={side!r} is unknown: choose "left" or "right"')
    num_rows = len(offsets) - 1 if rows is None else as_whole("rows", rows)
    longest = int(np.diff(offsets[: max(num_rows, 0) + 1]).max(initial=0))
    slots = longest if width is None else as_whole("width", width)
    return _core.lay_segments(offsets, num_rows, slots, side == "left")


def _each_column(batch: Any, fill: Any, one: Callable[[str, Any, Any], Any]) -> Any:
    """`one(name, column, fill)` for an array, or for each column of a mapping."""
    if not isinstance(batch, Mapping):
        if isinstance(fill, Mapping):
            raise PlanError("fill is a mapping, but the values are one array: give a number")
        return one("values", batch, fill)
    fills = {} if fill is None else fill
    if not isinstance(fills, Mapping):
        raise PlanError(
            f"fill is {fill!r}; for a mapping of columns it is a mapping of their names to numbers"
        )
    unknown = [repr(name) for name in fills if name not in batch]
    if unknown:
        raise PlanError(
            f"fill names {', '.join(unknown)}; the columns are {', '.join(map(repr, batch))}"
        )
    return {
        name: one(name, column, fills.get(name)) for name, column in batch.items() if name != _MASK
    }


def _filler(name: str, fill: Any) -> Any:
    return _FILLS.get(name, 0) if fill is None else fill
