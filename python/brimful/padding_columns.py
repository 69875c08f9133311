"""Columns as `unpad` and `repad` take them: what they may be, and the bytes they are made of."""

from __future__ import annotations

import math
import sys
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import DeviceError, PlanError


class ColumnKind(Protocol):
    """What can be done with a kind of column: numpy's here, torch's in `padding_torch`."""

    def gather(self, where: Any, padded: Any, total: int) -> Any:
        """[rows, width, ...] -> [total, ...], 0 after the tokens."""

    def scatter(self, where: Any, values: Any, fill: Any) -> Any:
        """[total, ...] -> [rows, width, ...] with `fill` where there is no token."""

    def holds(self, dtype: Any, number: Any) -> bool:
        """Whether the dtype holds the number."""


class _Numpy:
    def gather(self, where: _core.TokenRuns, padded: Any, total: int) -> Any:
        out = np.empty((total, *padded.shape[2:]), padded.dtype)
        _core.gather_tokens(where, items(padded, 2), items(out, 1))
        out[where.num_tokens :] = 0
        return out

    def scatter(self, where: _core.TokenRuns, values: Any, fill: Any) -> Any:
        out = np.empty((where.rows, where.width, *values.shape[1:]), values.dtype)
        pattern = items(np.full(1, fill, values.dtype), 1)
        _core.scatter_tokens(where, items(values, 1), pattern, items(out, 2))
        return out

    def holds(self, dtype: Any, number: Any) -> bool:
        if dtype.kind in "iu":
            return within(number, np.iinfo(dtype))
        if dtype.kind in "fc":
            return within(number, np.finfo(dtype), whole=False)
        return number in (0, 1)


def within(number: float, limits: Any, *, whole: bool = True) -> bool:
    """Whether a number lies between limits.min and limits.max, both included. What is not finite is
    within those of dtypes that are not `whole`.
    """
    try:
        value = float(number)
    except OverflowError:
        return False
    if whole:
        return value.is_integer() and bool(limits.min <= number <= limits.max)
    return not math.isfinite(value) or float(limits.min) <= value <= float(limits.max)


def items(array: npt.NDArray[Any], leading: int) -> npt.NDArray[np.uint8]:
    """The bytes of an array, [items, bytes of an item], where an item is what the dimensions after
    the leading ones hold. A view where the array is contiguous.
    """
    count, each = math.prod(array.shape[:leading]), math.prod(array.shape[leading:])
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat.reshape(count, each * array.itemsize)


def is_tensor(value: Any) -> bool:
    """Whether it is torch's; torch is not imported to answer."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def on_device(value: Any) -> bool:
    """Whether it is a tensor in a CUDA device's memory."""
    return is_tensor(value) and bool(value.is_cuda)


def column_kind(name: str, value: Any) -> ColumnKind:
    """How to handle a numpy array or a torch tensor; anything else is an error."""
    if is_tensor(value):
        from brimful.padding_torch import Torch

        if value.device.type != "cpu" and not on_device(value):
            raise DeviceError(
                f"{name} is on {value.device}; unpad and repad work in host memory and on CUDA "
                "devices: give .cpu()"
            )
        if str(value.layout) != "torch.strided":
            raise TypeError(f"{name} is a tensor of layout {value.layout}: give a dense one")
        return Torch()
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: fill it first")
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"{name} is a {type(value).__name__}; a numpy array or a torch tensor is expected"
        )
    if value.dtype.hasobject:
        raise TypeError(f"{name} holds Python objects ({value.dtype}); numbers are expected")
    return _Numpy()


def check_place(name: str, column: Any, mask: Any) -> None:
    """DeviceError unless the column is where attention_mask is; None is everywhere."""
    places = [str(given.device) if is_tensor(given) else "cpu" for given in (column, mask)]
    if mask is not None and places[0] != places[1]:
        raise DeviceError(
            f"{name} is on {places[0]} and attention_mask on {places[1]}: give both on one device"
        )


def check_covers(name: str, column: Any, covered: tuple[int, ...], why: str) -> None:
    """PlanError unless the shape begins with `covered`."""
    if tuple(column.shape[: len(covered)]) != covered:
        raise PlanError(
            f"{name} has the shape {list(column.shape)}; "
            f"[{', '.join(map(str, covered))}, ...] is expected, {why}"
        )


def check_fill(name: str, column: Any, fill: Any) -> Any:
    """The fill; PlanError unless it is a number that the column's dtype holds."""
    if not isinstance(fill, int | float | np.integer | np.floating):
        raise PlanError(f"fill of {name} is {fill!r}; a number is expected")
    if not column_kind(name, column).holds(column.dtype, fill):
        raise PlanError(
            f"{name} would be filled with {fill}, which {column.dtype} does not hold; "
            "give fill= or another dtype"
        )
    return fill


def find_tokens(mask: Any, multiple: int) -> Any:
    """Where attention_mask is 1, in memory that can be read where it is: `_core.TokenRuns`, or
    `DeviceRuns` of a mask on a device.
    """
    if not on_device(mask):
        return _core.find_tokens(as_mask(mask), multiple)
    column_kind("attention_mask", mask)
    from brimful.padding_device import find_tokens as find_on_device

    return find_on_device(mask, multiple)


def host_runs(where: Any) -> _core.TokenRuns:
    """The counts of what `find_tokens` found."""
    return where if isinstance(where, _core.TokenRuns) else where.runs


def as_mask(mask: Any) -> npt.NDArray[np.uint8]:
    """attention_mask as 0 and 1, [rows, width]; PlanError where it holds anything else."""
    column_kind("attention_mask", mask)
    given = mask.detach() if is_tensor(mask) else mask
    if is_tensor(given):
        given = (given.double() if given.is_floating_point() else given).numpy()
    if given.ndim != 2:
        raise PlanError(
            f"attention_mask has the shape {list(given.shape)}; [rows, width] is expected, "
            "a value a slot"
        )
    tokens = given == 1
    strange = given[~tokens & (given != 0)]
    if len(strange):
        raise PlanError(
            f"attention_mask holds {strange[0]}; 1 for a token and 0 for padding are expected"
        )
    return np.ascontiguousarray(tokens).view(np.uint8)


def as_offsets(cu_seqlens: Any) -> npt.NDArray[np.int64]:
    """cu_seqlens as int64 [segments + 1]; what they say is checked natively."""
    given = cu_seqlens.detach().cpu().numpy() if is_tensor(cu_seqlens) else np.asarray(cu_seqlens)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise PlanError(
            f"cu_seqlens has the shape {list(given.shape)} and the dtype {given.dtype}; integers, "
            "[segments + 1], are expected"
        )
    return np.ascontiguousarray(given, np.int64)


def like(column: Any, array: npt.NDArray[Any]) -> Any:
    """The array as a tensor where the column is one, on its device."""
    if not is_tensor(column):
        return array
    return sys.modules["torch"].from_numpy(array).to(column.device)
