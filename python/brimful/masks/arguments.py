"""What callers hand to the functions of masks, as arrays that the core takes."""

from __future__ import annotations

import operator
import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from brimful._core import DeviceError, PlanError
from brimful.padding_columns import is_tensor

_MOST = np.iinfo(np.int32).max


class Rows(NamedTuple):
    """Rows end to end, all of the same size."""

    cu_seqlens: npt.NDArray[np.int32]  # flattened
    rows: int | None  # None: not asked for, so that results have no axis of rows
    prefix_lengths: npt.NDArray[np.int64] | None  # [segments]

    @property
    def number(self) -> int:
        return 1 if self.rows is None else self.rows


def as_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise PlanError(f"{name} is {value!r}; True or False is expected")
    return bool(value)


def as_whole(name: str, value: Any) -> int:
    try:
        if not isinstance(value, bool) and abs(number := operator.index(value)) < 2**63:
            return number
    except TypeError:
        pass
    raise PlanError(f"{name} is {value!r}; a whole number is expected")


def as_window(window: Any) -> int | None:
    return None if window is None else as_whole("window", window)


def as_block_size(block_size: Any) -> tuple[int, int]:
    """Slots of a block of queries, and of keys."""
    if isinstance(block_size, tuple | list):
        if len(block_size) != 2:
            raise PlanError(
                f"block_size is {block_size}; a number or (of queries, of keys) is expected"
            )
        return as_whole("block_size", block_size[0]), as_whole("block_size", block_size[1])
    return (as_whole("block_size", block_size),) * 2


def as_array(name: str, values: Any) -> npt.NDArray[Any]:
    """A list, an array or a tensor in host memory, as numpy has it."""
    if is_tensor(values):
        if values.device.type != "cpu":
            raise DeviceError(f"{name} is on {values.device}: give {name}.cpu()")
        values = values.detach()
    try:
        array = values.numpy() if is_tensor(values) else np.asarray(values)
    except (ValueError, RuntimeError, TypeError) as error:
        raise PlanError(f"{name} is no array of integers ({error})") from None
    return array if array.size else array.astype(np.int64)


def as_numbers(name: str, values: Any) -> npt.NDArray[np.int64]:
    """Integers of one dimension, one a segment or document."""
    array = as_array(name, values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise PlanError(
            f"{name} has the shape {list(array.shape)} and the dtype {array.dtype}; integers of "
            "one dimension are expected"
        )
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise PlanError(f"{name} holds {array.max()}, more than int64 does")
    return np.ascontiguousarray(array, np.int64)


def as_cu_seqlens(cu_seqlens: Any) -> npt.NDArray[np.int32]:
    """[segments + 1]; whether it begins at 0 and never falls is checked where it is used."""
    if type(cu_seqlens) is np.ndarray and cu_seqlens.dtype == np.int32 and cu_seqlens.ndim == 1:
        given = cu_seqlens
    else:
        wide = as_numbers("cu_seqlens", cu_seqlens)
        if len(wide) and (wide.max() > _MOST or wide.min() < -_MOST):
            raise PlanError(
                f"cu_seqlens holds {max(wide.max(), wide.min(), key=abs)}, more than int32 counts"
            )
        given = wide.astype(np.int32)
    if not len(given) or given[0] != 0 or given[-1] < 0:
        raise PlanError(
            f"cu_seqlens is {given.tolist()[:8]}...; it begins at 0 and ends at the number of slots"
        )
    return np.ascontiguousarray(given)


def total_of(offsets: npt.NDArray[np.int32]) -> int:
    return int(offsets[-1])


def as_segment_values(
    name: str, values: Any, offsets: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64] | None:
    """[segments] integers, or None."""
    if values is None:
        return None
    given = as_numbers(name, values)
    if len(given) != len(offsets) - 1:
        raise PlanError(
            f"{name} has {len(given)} values, and cu_seqlens {len(offsets) - 1} segments: "
            "give one a segment"
        )
    return given


def as_num_documents(num_documents: Any, offsets: npt.NDArray[np.int32]) -> int:
    if num_documents is None:
        return len(offsets) - 1
    return as_whole("num_documents", num_documents)


def as_tokens(name: str, values: Any, total: int) -> npt.NDArray[Any]:
    """Integers that the core reads, [total]."""
    array = as_array(name, values)
    if array.dtype.kind not in "iu" or array.size != total:
        raise PlanError(
            f"{name} has the shape {list(array.shape)} and the dtype {array.dtype}; integers, one "
            f"a slot, are expected, and cu_seqlens ends at {total}"
        )
    if array.dtype == np.uint64 or not array.dtype.isnative:
        array = as_numbers(name, array.reshape(-1))
    return np.ascontiguousarray(array).reshape(-1)


def as_loss_mask(loss_mask: Any, offsets: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8] | None:
    """0 and 1, [total], or None."""
    if loss_mask is None:
        return None
    array = as_array("loss_mask", loss_mask)
    total = total_of(offsets)
    if array.size != total:
        short = int(np.searchsorted(offsets, array.size, side="right")) - 1
        where = f", and ends in segment {short}" if array.size < total else ""
        raise PlanError(
            f"loss_mask has {array.size} values{where}; one a slot is expected, and cu_seqlens "
            f"ends at {total}"
        )
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if array.dtype.kind not in "iuf" or not ((array == 0) | (array == 1)).all():
        raise PlanError("loss_mask holds other values than 0 (no loss) and 1 (loss)")
    return np.ascontiguousarray(array, np.uint8).reshape(-1)


def is_nested(values: Any) -> bool:
    """Whether it is a list of what has a dimension itself: one for each row."""
    if not isinstance(values, list | tuple) or not values:
        return False
    return isinstance(values[0], list | tuple) or getattr(values[0], "ndim", 0) > 0


def as_rows(cu_seqlens: Any, rows: Any, prefix_lengths: Any) -> Rows:
    """cu_seqlens of rows, given as a list of one each or flattened."""
    if not is_nested(cu_seqlens):
        offsets = as_cu_seqlens(cu_seqlens)
        count = None if rows is None else as_whole("rows", rows)
        return Rows(offsets, count, as_segment_values("prefix_lengths", prefix_lengths, offsets))
    if rows is not None:
        raise PlanError("cu_seqlens is a list with one for each row: leave rows out")
    each = [as_cu_seqlens(row) for row in cu_seqlens]
    totals = [total_of(row) for row in each]
    if min(totals) != max(totals):
        raise PlanError(
            f"the rows have {min(totals)} to {max(totals)} slots; rows of equal size are expected"
        )
    if totals[0] * len(each) > _MOST:
        raise PlanError(f"{len(each)} rows of {totals[0]} slots are more than int32 counts")
    flat = np.concatenate(
        [np.zeros(1, np.int32), *(row[1:] + i * totals[i] for i, row in enumerate(each))]
    ).astype(np.int32)
    if prefix_lengths is None:
        return Rows(flat, len(each), None)
    if not is_nested(prefix_lengths) or len(prefix_lengths) != len(each):
        raise PlanError("prefix_lengths must be a list with one array for each row, as cu_seqlens")
    pairs = zip(prefix_lengths, each, strict=True)
    prefixes = [as_segment_values("prefix_lengths", given, row) for given, row in pairs]
    return Rows(flat, len(each), np.concatenate(prefixes))  # type: ignore[arg-type]


def is_torch_dtype(dtype: Any) -> bool:
    """Whether it is one of torch's dtypes; torch is not imported to answer."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dtype, torch.dtype)


def wants_torch(*given: Any) -> bool:
    """Whether one of them is a tensor, or a list of tensors."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    for value in given:
        one = value[0] if isinstance(value, list | tuple) and value else value
        if isinstance(one, torch.Tensor):
            return True
    return False


def result_like(array: npt.NDArray[Any], *given: Any) -> Any:
    """The array, as a tensor where one of the arguments is one."""
    return sys.modules["torch"].from_numpy(array) if wants_torch(*given) else array
