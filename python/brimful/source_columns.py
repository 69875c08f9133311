"""Columns of numbers, one number a source, as a state holds them.

Few are a list. Many are text: the bytes of little-endian numbers, all first bytes first, which
makes small numbers short, compressed by zlib and written in base64.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import StateError

MOST_LISTED = 16


def pack(column: npt.NDArray[Any]) -> list[Any] | str:
    """A column fit for JSON: [sources] of float64 or of unsigned or non-negative integers."""
    if len(column) <= MOST_LISTED:
        return [None if value == math.inf else value for value in column.tolist()]
    ordered = np.ascontiguousarray(column.astype(column.dtype.newbyteorder("<")))
    by_byte = ordered.view(np.uint8).reshape(len(column), -1).T
    return base64.b64encode(zlib.compress(by_byte.tobytes(), 1)).decode("ascii")


def unpack(value: object, dtype: Any, count: int, where: str) -> npt.NDArray[Any]:
    """The column again, of `count` numbers. Throws StateError for anything else."""
    found = (
        _listed(value, dtype) if isinstance(value, (list, tuple)) else _text(value, dtype, count)
    )
    if found is None or len(found) != count or (found < 0).any() or np.isnan(found).any():
        raise StateError(
            f"the state's {where} is no column of {count} numbers from 0 up, one a source"
        )
    return found


def _listed(values: list[Any] | tuple[Any, ...], dtype: Any) -> npt.NDArray[Any] | None:
    floats = np.dtype(dtype).kind == "f"
    numbers = []
    for value in values:
        if floats and value is None:
            numbers.append(math.inf)
        elif isinstance(value, bool) or not isinstance(value, (int, float) if floats else int):
            return None
        else:
            numbers.append(value)
    try:
        return np.array(numbers, dtype)
    except OverflowError:
        return None


def _text(value: object, dtype: Any, count: int) -> npt.NDArray[Any] | None:
    if not isinstance(value, str):
        return None
    size = np.dtype(dtype).itemsize
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(base64.b64decode(value, validate=True), count * size + 1)
    except (binascii.Error, ValueError, zlib.error):
        return None
    if len(data) != count * size or not inflate.eof:
        return None
    by_byte = np.frombuffer(data, np.uint8).reshape(size, count)
    little = np.dtype(dtype).newbyteorder("<")
    column: npt.NDArray[Any] = np.ascontiguousarray(by_byte.T).view(little).reshape(count)
    return column.astype(dtype)
