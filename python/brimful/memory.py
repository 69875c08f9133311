"""Tokens in memory: arrays, lists of arrays and lists of dicts.

Arrays of a mebibyte or more stay where they are and must not be changed while the corpus is in use.
Smaller neighbours of the same dtype are copied together: a million arrays of their own would cost
more memory than their tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import FormatError
from brimful.boundaries import Boundary, cut
from brimful.files import DTYPES, OpenedFile, store_info

_IN_PLACE_BYTES = 1 << 20
_IGNORE_LABEL = -100
_KEYS = ("input_ids", "labels", "loss_mask", "attention_mask")


@dataclass(frozen=True)
class Document:
    tokens: npt.NDArray[Any]
    mask: npt.NDArray[np.uint8] | None


def token_array(values: Any, where: str) -> npt.NDArray[Any]:
    """Integers as an array of a token dtype, in one piece; copies only where it must."""
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)  # what numpy makes of an empty list
    if array.dtype == np.uint64:
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise FormatError(f"{where}: token {array.max()} is beyond int64")
        array = array.astype(np.int64)
    native = array.dtype.newbyteorder("=")
    if native.name not in DTYPES:
        raise FormatError(f"{where}: dtype {array.dtype}; expected one of {', '.join(DTYPES)}")
    return np.ascontiguousarray(array, native)


def loss_mask_array(values: Any, tokens: npt.NDArray[Any], where: str) -> npt.NDArray[np.uint8]:
    """A loss mask of one 0 or 1 (or bool) a token, as uint8."""
    array = np.asarray(values)
    if array.shape != tokens.shape:
        raise FormatError(
            f"{where}: a loss mask of shape {array.shape} for tokens of {tokens.shape}"
        )
    if array.size and array.dtype.kind not in "biu":
        raise FormatError(f"{where}: a loss mask of dtype {array.dtype}; expected bool or integers")
    mask = np.ascontiguousarray(array, np.uint8)
    if mask.size and (mask.max() > 1 or not np.array_equal(mask, array)):
        raise FormatError(f"{where}: a loss mask holds 0 (no loss) and 1 (loss) only")
    return mask


def open_arrays(
    arrays: Sequence[Any], dtype: str | None, loss_masks: Sequence[Any] | None
) -> list[OpenedFile]:
    """One document an array (or list of ints), each with its loss mask where these are given."""
    if loss_masks is not None and len(loss_masks) != len(arrays):
        raise FormatError(f"{len(loss_masks)} loss masks for {len(arrays)} arrays")

    def documents() -> Iterator[Document]:
        for i, values in enumerate(arrays):
            tokens = _tokens_of(values, dtype, f"array {i}")
            mask = None
            if loss_masks is not None:
                mask = loss_mask_array(loss_masks[i], tokens, f"loss mask {i}")
            yield Document(tokens, mask)

    return _open_documents(documents())


def open_dicts(items: Sequence[Mapping[str, Any]], dtype: str | None) -> list[OpenedFile]:
    """One document a dict: `input_ids`, and `labels` or `loss_mask` where some get no loss.

    A label of -100 means no loss; any other must be the token itself. An `attention_mask` must be
    all ones: padding is no part of a document.
    """

    def documents() -> Iterator[Document]:
        for i, item in enumerate(items):
            where = f"document {i}"
            unknown = [key for key in item if key not in _KEYS]
            if "input_ids" not in item or unknown or {"labels", "loss_mask"} <= item.keys():
                raise FormatError(
                    f"{where}: keys {list(item)}; expected input_ids, with labels or loss_mask "
                    "if some tokens get no loss, and nothing else"
                )
            tokens = _tokens_of(item["input_ids"], dtype, where)
            if "attention_mask" in item and not np.all(np.asarray(item["attention_mask"]) == 1):
                raise FormatError(f"{where}: attention_mask hides tokens; give documents unpadded")
            mask = None
            if "labels" in item:
                mask = _mask_of_labels(item["labels"], tokens, where)
            elif "loss_mask" in item:
                mask = loss_mask_array(item["loss_mask"], tokens, where)
            yield Document(tokens, mask)

    return _open_documents(documents())


def open_array(array: npt.NDArray[Any], dtype: str | None, boundary: Boundary | None) -> OpenedFile:
    """A vector as one document or as many as `boundary` finds; a matrix as one document a row."""
    if array.ndim not in (1, 2):
        raise FormatError(f"an array of {array.ndim} dimensions; expected one or two")
    values = _declared(token_array(array, "array"), dtype, "array")
    rows, columns = (1, values.size) if array.ndim == 1 else values.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * columns
    if array.ndim == 1 and values.size == 0:
        offsets = offsets[:1]
    store = _core.arrow_store("array", values.reshape(-1), offsets)
    if array.ndim == 2:
        return OpenedFile(store, store_info(store, "memory", "matrix rows"))
    if boundary is None:
        return OpenedFile(store, store_info(store, "memory", "array"))
    store = cut(store, boundary)
    return OpenedFile(store, store_info(store, "memory", str(boundary)))


def _tokens_of(values: Any, dtype: str | None, where: str) -> npt.NDArray[Any]:
    tokens = _declared(token_array(values, where), dtype, where)
    if tokens.ndim != 1:
        raise FormatError(f"{where}: {tokens.ndim} dimensions; a document has one")
    return tokens


def _declared(tokens: npt.NDArray[Any], dtype: str | None, where: str) -> npt.NDArray[Any]:
    if dtype is not None and tokens.dtype.name != dtype:
        raise FormatError(
            f"{where}: holds {tokens.dtype.name}, but dtype={dtype} was declared; leave dtype out"
        )
    return tokens


def _mask_of_labels(values: Any, tokens: npt.NDArray[Any], where: str) -> npt.NDArray[np.uint8]:
    labels = np.asarray(values)
    if labels.shape != tokens.shape:
        raise FormatError(f"{where}: labels of shape {labels.shape} for tokens of {tokens.shape}")
    mask: npt.NDArray[np.bool_] = np.not_equal(labels, _IGNORE_LABEL)
    wrong = np.flatnonzero(mask & (labels != tokens))
    if wrong.size:
        i = int(wrong[0])
        raise FormatError(
            f"{where}: label {labels[i]} at token {i}, which is {tokens[i]}; a label is the token "
            "itself or -100 (labels are not shifted)"
        )
    return mask.astype(np.uint8)


def _open_documents(documents: Iterable[Document]) -> list[OpenedFile]:
    stores: list[_core.TokenStore] = []
    small: list[Document] = []
    for document in documents:
        big = document.tokens.nbytes >= _IN_PLACE_BYTES
        if small and (big or document.tokens.dtype != small[0].tokens.dtype):
            stores.append(_join(small))
            small = []
        if big:
            stores.append(_join([document]))
        else:
            small.append(document)
    if small:
        stores.append(_join(small))
    return [OpenedFile(store, store_info(store, "memory", "list")) for store in stores]


def _join(documents: Sequence[Document]) -> _core.TokenStore:
    """Documents of one dtype as one store; a single one is not copied."""
    offsets = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(document.tokens) for document in documents], out=offsets[1:])
    masks = None
    if any(document.mask is not None for document in documents):
        masks = [
            np.ones(len(document.tokens), np.uint8) if document.mask is None else document.mask
            for document in documents
        ]
    tokens = [document.tokens for document in documents]
    if len(documents) == 1:
        return _core.arrow_store("array", tokens[0], offsets, masks and masks[0])
    return _core.arrow_store(
        "arrays", np.concatenate(tokens), offsets, masks and np.concatenate(masks)
    )
