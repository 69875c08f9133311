"""What a caller hands to a writer, as arrays that are known to fit: token ids and loss masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError
from brimful.runs import BLOCK, Items


def integer_array(values: Any, where: str) -> npt.NDArray[Any]:
    """A one-dimensional array of integers of any size and width; nothing is rounded or wrapped."""
    try:
        if hasattr(values, "detach"):  # a torch tensor, wherever it lives
            values = values.detach().cpu()
        array = np.asarray(values)
        if array.dtype.kind in "fO" and not isinstance(values, np.ndarray):
            array = np.asarray(values, dtype=object)  # ints beyond 64 bits, or a float among ints
    except (TypeError, ValueError, RuntimeError) as error:
        raise FormatError(f"{where}: expected a list of token ids ({error})") from None
    if array.ndim != 1:
        raise FormatError(f"{where}: shape {array.shape}; a document has one dimension")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind == "O":
        for position, value in enumerate(array):
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                found = f"{value!r} ({type(value).__name__})"
                raise FormatError(f"{where}: token {position} is {found}; token ids are integers")
    elif array.dtype.kind not in "iu":
        raise FormatError(f"{where}: dtype {array.dtype}; token ids are integers")
    return array


def first_outside(values: Items, low: int, high: int) -> int | None:
    """Position of the first value that is not in low..high."""
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        if block.min() < low or block.max() > high:
            return start + int(np.argmax((block < low) | (block > high)))
    return None


def loss_mask_array(values: Any, tokens: int, where: str) -> npt.NDArray[np.uint8]:
    """A loss mask of one 0 or 1 (or bool) a token, as uint8."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise FormatError(f"{where}: expected a loss mask of 0 and 1 ({error})") from None
    if array.shape != (tokens,):
        raise FormatError(
            f"{where}: a loss mask of shape {array.shape} for {tokens} tokens; "
            "it has one entry for each"
        )
    if array.size == 0:
        return np.empty(0, np.uint8)
    if array.dtype.kind not in "biu":
        raise FormatError(f"{where}: a loss mask of dtype {array.dtype}; expected bool or 0 and 1")
    position = None if array.dtype.kind == "b" else first_outside(array, 0, 1)
    if position is not None:
        raise FormatError(
            f"{where}: the loss mask is {array[position]} at token {position}; "
            "expected 0 (no loss) or 1 (loss)"
        )
    return array.astype(np.uint8, copy=False)
