"""List columns of Arrow as arrays: the memory they lie in and their offsets, never a copy.

A chunk may be a slice of a longer array, its values another slice; nothing is joined, so that no
offset can outgrow its 32 bits. What is null, or no integer, is an error that names the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError
from brimful.extras import require
from brimful.runs import BLOCK

_TOKEN_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_IGNORE_LABEL = -100


@dataclass(frozen=True)
class Lists:
    """Rows of a chunk: row i is values[offsets[i]:offsets[i + 1]]."""

    where: str  # the column, for messages
    first_row: int  # of the table
    values: npt.NDArray[Any]
    offsets: npt.NDArray[Any]  # int32 or int64 [rows + 1], the first may be above 0

    @property
    def span(self) -> slice:
        return slice(int(self.offsets[0]), int(self.offsets[-1]))

    def row_of(self, position: int) -> int:
        """The row of the table whose list has the value at a position after the first."""
        inside = self.offsets[0] + position
        return self.first_row + int(np.searchsorted(self.offsets, inside, "right")) - 1

    def block(self, start: int) -> npt.NDArray[Any]:
        """Some values from a position on, counted from the first of these rows."""
        return self.values[self.span][start : start + BLOCK]


def lists_of(chunk: Any, where: str, first_row: int, *, bools: bool = False) -> Lists:
    """The lists of an Arrow array of integers, or of bools where these are asked for.

    `first_row` is the table's number of the first of them.
    """
    arrow = require("pyarrow", "prepare", "an Arrow table")
    kind, types = chunk.type, arrow.types
    is_fixed = types.is_fixed_size_list(kind)
    if not (is_fixed or types.is_list(kind) or types.is_large_list(kind)):
        raise FormatError(
            f"{where}: type {kind}; expected lists of integers (list, large_list, fixed_size_list)"
        )
    dtype = str(kind.value_type)
    if dtype not in _TOKEN_DTYPES and not (bools and dtype == "bool"):
        advice = "; cast it to int64" if dtype == "uint64" else ""
        raise FormatError(f"{where}: type {kind}; expected lists of integers{advice}")
    try:
        chunk.validate()
    except arrow.ArrowInvalid as error:
        raise FormatError(f"{where}, rows from {first_row}: damaged ({error})") from None
    if chunk.null_count:
        raise FormatError(
            f"{where}, row {first_row + _first_null(chunk)}: null; leave the row out, or put an "
            "empty list there"
        )
    if is_fixed:
        offsets = (chunk.offset + np.arange(len(chunk) + 1, dtype=np.int64)) * kind.list_size
    else:
        offsets = chunk.offsets.to_numpy(zero_copy_only=True)
    first, end = int(offsets[0]), int(offsets[-1])
    part = chunk.values.slice(first, end - first)
    if dtype == "bool":  # bits, which become bytes of these rows alone
        offsets = offsets - first
        values = part.fill_null(False).to_numpy(zero_copy_only=False).view(np.uint8)
    else:
        values = _memory(chunk.values, dtype)
    lists = Lists(where, first_row, values, offsets)
    if part.null_count:
        row = lists.row_of(_first_null(part))
        raise FormatError(f"{where}, row {row}: a value in it is null; expected integers")
    return lists


def _first_null(array: Any) -> int:
    return int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])


def _memory(child: Any, dtype: str) -> npt.NDArray[Any]:
    """The values of an Arrow array where they lie."""
    buffer = child.buffers()[1]
    if buffer is None:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, len(child), child.offset * np.dtype(dtype).itemsize)


def check_same_rows(tokens: Lists, other: Lists) -> None:
    """Two columns have lists of the same lengths."""
    lengths, others = np.diff(tokens.offsets), np.diff(other.offsets)
    wrong = np.flatnonzero(lengths != others)
    if wrong.size:
        i = int(wrong[0])
        raise FormatError(
            f"{other.where}, row {tokens.first_row + i}: {others[i]} values for {lengths[i]} tokens"
        )


def mask_of_labels(tokens: Lists, labels: Lists) -> npt.NDArray[np.uint8]:
    """The loss mask that labels mean: 0 where they are -100, 1 where they are the token itself."""
    check_same_rows(tokens, labels)
    mask = np.empty(tokens.span.stop - tokens.span.start, np.uint8)
    for start, ids, targets in _blocks(tokens, labels):
        kept = targets != _IGNORE_LABEL
        mask[start : start + kept.size] = kept
        wrong = np.flatnonzero(kept & (targets != ids))
        if wrong.size:
            i = int(wrong[0])
            raise FormatError(
                f"{labels.where}, row {tokens.row_of(start + i)}: label {targets[i]} where the "
                f"token is {ids[i]}; a label is the token itself or -100, and is not shifted"
            )
    return mask


def mask_of_column(tokens: Lists, column: Lists) -> npt.NDArray[np.uint8]:
    """A loss mask of 0 and 1; a view where it is stored as bytes."""
    check_same_rows(tokens, column)
    _check_values(tokens, column, 0, "a loss mask holds 0 (no loss) and 1 (loss) only")
    mask: npt.NDArray[np.uint8] = column.values[column.span].astype(np.uint8, copy=False)
    return mask


def check_attention(tokens: Lists, column: Lists) -> None:
    """Nothing is padding: an attention mask is 1 everywhere."""
    check_same_rows(tokens, column)
    _check_values(tokens, column, 1, "padding is no part of a document; remove it")


def _check_values(tokens: Lists, column: Lists, low: int, problem: str) -> None:
    for start, _, values in _blocks(tokens, column):
        wrong = np.flatnonzero((values < low) | (values > 1))
        if wrong.size:
            i = int(wrong[0])
            row = tokens.row_of(start + i)
            raise FormatError(f"{column.where}, row {row}: holds {values[i]}; {problem}")


def _blocks(
    tokens: Lists, other: Lists
) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]:
    for start in range(0, tokens.span.stop - tokens.span.start, BLOCK):
        yield start, tokens.block(start), other.block(start)
