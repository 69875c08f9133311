"""What a batch of any loader holds, counted from its tensors, arrays or lists.

Slots are the places in the batch, wherever its tensors are. What needs their values is counted in
host memory alone: a device is never waited for, and then the figure is None.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful.batch import Batch
from brimful.profiling.figures import BatchFigures

Array = npt.NDArray[Any]
Lengths = npt.NDArray[np.int64]

_IGNORE_LABEL = -100
_IDS = ("input_ids", "tokens")
_LABELS = ("labels", "shift_labels")
_CU_SEQLENS = ("cu_seqlens", "cu_seq_lens_q", "cu_seqlens_q", "cu_seq_lens")
_DEEPEST = 4  # levels of containers that are looked into


def figures_of(batch: Any) -> BatchFigures:
    """What one batch holds: of `Batch`, a mapping, dataclass, tuple or list of tensors or arrays.

    Never raises, whatever a batch is made of: what cannot be read is None.
    """
    try:
        if isinstance(batch, Batch):
            return _of_brimful(batch)
        if isinstance(batch, list) and len(batch) > 1 and isinstance(batch[0], (Mapping, Batch)):
            return _sum([figures_of(part) for part in batch])
        return _of_columns(batch)
    except Exception:  # of a batch's own methods, which may do anything
        return BatchFigures()


def _of_brimful(batch: Batch) -> BatchFigures:
    lengths = batch.lengths[batch.documents >= 0]
    return BatchFigures(
        slots=int(batch.cu_seqlens_host[-1]),
        tokens=batch.num_tokens,
        effective_tokens=batch.num_items,
        documents=lengths.size,
        attention_work=batch.attention_work,
        num_bytes=_num_bytes(batch) + batch.cu_seqlens_host.nbytes,
        lengths=tuple(lengths.tolist()),
    )


def _of_columns(batch: Any) -> BatchFigures:
    num_bytes = _num_bytes((batch,))
    columns = _columns(batch)
    ids = _first(columns, _IDS)
    if ids is None:
        return BatchFigures(num_bytes=num_bytes)
    slots = _size(ids)
    tokens, lengths = _tokens_and_lengths(columns, ids, slots)
    return BatchFigures(
        slots=slots,
        tokens=tokens,
        effective_tokens=_effective(columns, ids),
        documents=None if lengths is None else lengths.size,
        attention_work=None if lengths is None else int(lengths @ lengths),
        num_bytes=num_bytes,
        lengths=None if lengths is None else tuple(lengths.tolist()),
    )


def _effective(columns: Mapping[str, Any], ids: Any) -> int | None:
    """Labels that a loss is made of. A model that shifts `labels` predicts a row's first one from
    nothing, so leaves it out; `shift_labels`, and labels of another shape than the ids (of classes,
    of a decoder), are taken as they are.
    """
    shifted = columns.get("shift_labels")
    if shifted is not None:
        return _count_other(shifted, _IGNORE_LABEL)
    labels = columns.get("labels")
    if labels is None:
        return None
    return _count_other(labels, _IGNORE_LABEL, skip_first=_shape(labels) == _shape(ids))


def _sum(parts: list[BatchFigures]) -> BatchFigures:
    """Of items that nobody collated, or of micro-batches."""
    sums: dict[str, Any] = {}
    for name in ("slots", "tokens", "effective_tokens", "documents", "attention_work"):
        values = [getattr(part, name) for part in parts]
        sums[name] = None if None in values else sum(values)
    every = [part.lengths for part in parts]
    lengths = None if None in every else tuple(n for some in every for n in some or ())
    return BatchFigures(num_bytes=sum(part.num_bytes for part in parts), lengths=lengths, **sums)


def _tokens_and_lengths(
    columns: Mapping[str, Any], ids: Any, slots: int | None
) -> tuple[int | None, Lengths | None]:
    """Real tokens, and those of each segment: from what says it best."""
    mask = columns.get("attention_mask")
    if mask is not None and _size(mask) != slots:  # of [rows, heads, queries, keys]: says who sees
        mask = None
    real = None if mask is None else _host_array(mask)
    if mask is not None and real is None:
        return (_count_other(mask, 0), None) if isinstance(mask, list) else (None, None)
    boundaries = _first(columns, _CU_SEQLENS)
    if boundaries is not None:
        array = _host_array(boundaries)
        if array is None:
            return (slots if real is None else int(np.count_nonzero(real))), None
        ends: Lengths = array.reshape(-1).astype(np.int64)
        lengths = ends[1:] - ends[:-1]
        lengths = lengths[lengths > 0]
        if slots is None or lengths.sum() <= slots:  # else they are of something else: of patches
            return (int(lengths.sum()) if real is None else int(np.count_nonzero(real))), lengths
    positions = columns.get("position_ids")
    if positions is not None and _size(positions) == slots:
        array = _host_array(positions)
        if array is not None:
            return _of_positions(array, real)
    if real is None:
        return None, None
    return _of_mask(real)


def _of_positions(positions: Array, real: Array | None) -> tuple[int, Lengths]:
    """A segment begins at a row's start and wherever positions do not go on counting."""
    rows = np.atleast_2d(positions)
    begins = np.ones(rows.shape, bool)
    np.not_equal(rows[:, 1:], rows[:, :-1] + 1, out=begins[:, 1:])
    flat = begins.reshape(-1)
    if real is not None:
        kept = real.reshape(-1) != 0
        flat, tokens = flat[kept], int(np.count_nonzero(kept))
    else:
        tokens = flat.size
    if tokens == 0:
        return 0, np.zeros(0, np.int64)
    flat[0] = True
    return tokens, np.diff(np.append(np.flatnonzero(flat), tokens))


def _of_mask(mask: Array) -> tuple[int, Lengths]:
    """One segment a row; of a mask that numbers the documents of a row, one a number."""
    rows = _in_rows(mask)
    lengths, binary = _core.count_mask(rows)
    if not binary:
        begins = np.ones(rows.shape, bool)
        np.not_equal(rows[:, 1:], rows[:, :-1], out=begins[:, 1:])
        starts = np.flatnonzero(begins)
        lengths = np.diff(np.append(starts, rows.size))[rows.reshape(-1)[starts] != 0]
    if not lengths.all():
        lengths = lengths[lengths > 0]
    return int(lengths.sum()), lengths


# Access to batches of any kind


def _columns(batch: Any, depth: int = 0) -> Mapping[str, Any]:
    """The named columns of a batch, or of the first part of it that has ids; else none."""
    if isinstance(batch, Mapping):
        if any(name in batch for name in _IDS) or depth == _DEEPEST:
            return batch
        parts: Any = batch.values()
    elif dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        return _columns({f.name: getattr(batch, f.name) for f in dataclasses.fields(batch)}, depth)
    elif isinstance(batch, tuple) and hasattr(batch, "_asdict"):
        return _columns(batch._asdict(), depth)
    elif isinstance(batch, (tuple, list)):
        if depth == 0 and (unnamed := _ids_and_labels(batch)):
            return unnamed
        parts = batch
    else:
        named = _attributes(batch)
        return named if named or depth else _unnamed(batch)
    if depth == _DEEPEST:
        return {}
    for part in parts:
        if not isinstance(part, (str, bytes, int, float)) and (found := _columns(part, depth + 1)):
            return found
    return {}


def _attributes(batch: Any) -> Mapping[str, Any]:
    """Of an object that has ids as an attribute."""
    names = (*_IDS, *_LABELS, *_CU_SEQLENS, "attention_mask", "position_ids")
    if not any(hasattr(batch, name) for name in _IDS):
        return {}
    return {name: value for name in names if (value := getattr(batch, name, None)) is not None}


def _unnamed(batch: Any) -> Mapping[str, Any]:
    """A tensor or array of ids alone."""
    return {"input_ids": batch} if _is_integers(batch) else {}


def _ids_and_labels(parts: tuple[Any, ...] | list[Any]) -> Mapping[str, Any]:
    """A pair of ids and their next ones, and ids alone: the form of hand-written loaders."""
    if not 1 <= len(parts) <= 2 or not all(map(_is_integers, parts)):
        return {}
    if len(parts) == 1 or tuple(parts[0].shape) != tuple(parts[1].shape):
        return {"input_ids": parts[0]}
    return {"input_ids": parts[0], "shift_labels": parts[1]}


def _is_integers(value: Any) -> bool:
    """Whether it is a tensor or array of whole numbers in at least one dimension."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iu" and value.ndim > 0
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return False
    floating = value.is_floating_point() or value.is_complex() or value.dtype is torch.bool
    return value.ndim > 0 and not floating


def _first(columns: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((columns[name] for name in names if columns.get(name) is not None), None)


def _size(value: Any) -> int | None:
    """Numbers in a tensor, array or list, of lists too."""
    if isinstance(value, list):
        return sum(_size(part) or 0 for part in value) if _nested(value) else len(value)
    size = getattr(value, "numel", None)
    if callable(size):
        return int(size())
    return int(value.size) if isinstance(getattr(value, "size", None), int) else None


def _nested(values: list[Any]) -> bool:
    return bool(values) and not isinstance(values[0], (int, float, bool))


def _host_array(value: Any) -> Array | None:
    """The same memory as a numpy array; None where it is not in host memory."""
    if isinstance(value, np.ndarray):
        return value
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return None
    if value.dtype is torch.bfloat16:  # which numpy does not have
        value = value != 0
    array: Array = value.detach().numpy()
    return array


def _count_other(values: Any, number: int, *, skip_first: bool = False) -> int | None:
    """How many of them are not `number`; with `skip_first`, without the first one of each row, rows
    being what the last dimension runs along.
    """
    if isinstance(values, list):
        if _nested(values):
            counts = [_count_other(part, number, skip_first=skip_first) for part in values]
            return None if None in counts else sum(filter(None, counts))
        counted = values[1:] if skip_first else values
        return len(counted) - counted.count(number)
    array = _host_array(values)
    if array is None:
        return None
    if array.dtype.itemsize == 1:
        array = array.astype(np.int32)  # perhaps without a sign
    return _core.count_other(_in_rows(array), number, skip_first=skip_first)


def _in_rows(array: Array) -> Array:
    """[rows, width], of a type that is counted in. Fractions are cut: none is a label or a mask."""
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    elif array.dtype not in (np.int64, np.int32, np.uint8):
        array = array.astype(np.int64)
    rows, width = math.prod(array.shape[:-1]), array.shape[-1] if array.ndim else 1
    return np.ascontiguousarray(array.reshape(rows, width))


def _shape(value: Any) -> Any:
    """Of a tensor or array; of lists, the lengths of the innermost ones."""
    if not isinstance(value, list):
        return tuple(value.shape)
    return [_shape(part) for part in value] if _nested(value) else len(value)


def _num_bytes(value: Any, depth: int = 0) -> int:
    """Of all tensors and arrays in it."""
    found = 0
    for part in _parts(value):
        num_bytes = getattr(part, "nbytes", None)
        if isinstance(num_bytes, int):
            found += num_bytes
        elif depth < _DEEPEST:
            found += _num_bytes(part, depth + 1)
    return found


def _parts(value: Any) -> Iterable[Any]:
    """What a container holds."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, (tuple, list)):
        return value if value and not isinstance(value[0], (int, float)) else ()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return ()
