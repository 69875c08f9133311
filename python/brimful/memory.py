"""Tokens in memory: arrays, lists of arrays and lists of dicts.

Arrays are not copied and must not be changed while the corpus is in use; but neighbours below a
mebibyte and of the same dtype are copied together, because a million arrays of their own would cost
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
from brimful.tokens import first_outside, integer_array, loss_mask_array

_IN_PLACE_BYTES = 1 << 20
_IGNORE_LABEL = -100
DOCUMENT_KEYS = frozenset(("input_ids", "labels", "loss_mask", "attention_mask"))


@dataclass(frozen=True)
class Document:
    tokens: npt.NDArray[Any]
    mask: npt.NDArray[np.uint8] | None


def token_array(values: Any, dtype: str | None, where: str) -> npt.NDArray[Any]:
    """Token ids as a vector of a token dtype, in one piece; copies only where it must.

    The dtype is the one declared, else that of the array, else (lists, uint64, ...) int64.
    """
    refuse_masked(values, where)
    array = integer_array(values, where)
    own = getattr(values, "dtype", array.dtype) if array.size == 0 else array.dtype
    target = np.dtype(dtype or (own.name if getattr(own, "name", "") in DTYPES else "int64"))
    if array.dtype != target:
        limits = np.iinfo(target)
        position = first_outside(array, limits.min, limits.max)
        if position is not None:
            raise FormatError(f"{where}: token {position} is {array[position]}, not of {target}")
    return np.ascontiguousarray(array, target)


def open_arrays(
    arrays: Sequence[Any], dtype: str | None, loss_masks: Sequence[Any] | None
) -> list[OpenedFile]:
    """One document an array (or list of ints), each with its loss mask where these are given."""
    masks = None if loss_masks is None else _mask_list(loss_masks)
    if masks is not None and len(masks) != len(arrays):
        raise FormatError(f"{len(masks)} loss masks for {len(arrays)} arrays")

    def documents() -> Iterator[Document]:
        for i, values in enumerate(arrays):
            tokens = token_array(values, dtype, f"array {i}")
            mask = None
            if masks is not None:
                mask = loss_mask(masks[i], tokens, f"array {i}")
            yield Document(tokens, mask)

    return _open_documents(documents())


def open_dicts(items: Sequence[Mapping[str, Any]], dtype: str | None) -> list[OpenedFile]:
    """One document a dict: `input_ids`, and `labels` or `loss_mask` where some get no loss."""

    def documents() -> Iterator[Document]:
        for i, item in enumerate(items):
            yield document_of(item, dtype, f"document {i}")

    return _open_documents(documents())


def document_of(
    item: Mapping[str, Any], dtype: str | None, where: str, *, other_keys: bool = False
) -> Document:
    """The document in a dict: `input_ids`, and `labels` or `loss_mask` where some get no loss.

    A label of -100 means no loss; any other must be the token itself. An `attention_mask` must be
    all ones: padding is no part of a document. What is None is as good as absent. Other keys are
    an error, unless `other_keys`.
    """
    there = {key for key, value in item.items() if value is not None}
    unknown = not other_keys and not there <= DOCUMENT_KEYS
    if "input_ids" not in there or unknown or {"labels", "loss_mask"} <= there:
        raise FormatError(
            f"{where}: keys {sorted(there)} with values; expected input_ids, with labels or "
            f"loss_mask if some tokens get no loss{'' if other_keys else ', and nothing else'}"
        )
    tokens = token_array(item["input_ids"], dtype, where)
    if "attention_mask" in there:
        attention = values_of_tokens(item, "attention_mask", tokens, where)
        if not np.all(attention == 1):
            raise FormatError(f"{where}: attention_mask hides tokens; give documents unpadded")
    mask = None
    if "labels" in there:
        mask = _mask_of_labels(values_of_tokens(item, "labels", tokens, where), tokens, where)
    elif "loss_mask" in there:
        mask = loss_mask(item["loss_mask"], tokens, where)
    return Document(tokens, mask)


def open_array(array: npt.NDArray[Any], dtype: str | None, boundary: Boundary | None) -> OpenedFile:
    """A vector as one document or as many as `boundary` finds; a matrix as one document a row."""
    if array.ndim not in (1, 2):
        raise FormatError(f"an array of {array.ndim} dimensions; expected one or two")
    values = token_array(array.reshape(-1), dtype, "array")
    rows, columns = (1, values.size) if array.ndim == 1 else array.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * columns
    if array.ndim == 1 and values.size == 0:
        offsets = offsets[:1]
    store = _core.arrow_store("array", values, offsets)
    if array.ndim == 2:
        return OpenedFile(store, store_info(store, "memory", "matrix rows"))
    if boundary is None:
        return OpenedFile(store, store_info(store, "memory", "array"))
    store = cut(store, boundary)
    return OpenedFile(store, store_info(store, "memory", str(boundary)))


def refuse_masked(values: Any, where: str) -> None:
    """numpy would hand out what lies under the mask."""
    if isinstance(values, np.ma.MaskedArray):
        raise FormatError(
            f"{where}: a masked array, whose mask would be lost; give .compressed(), or .data"
        )


def _mask_list(masks: Any) -> list[Any]:
    try:
        return list(masks)
    except TypeError:
        raise FormatError(f"loss_masks={masks!r}: expected a list of one mask an array") from None


def loss_mask(values: Any, tokens: npt.NDArray[Any], where: str) -> npt.NDArray[np.uint8]:
    refuse_masked(values, f"{where}: loss mask")
    return loss_mask_array(values, tokens.size, where)


def values_of_tokens(
    item: Mapping[str, Any], key: str, tokens: npt.NDArray[Any], where: str
) -> npt.NDArray[Any]:
    """What a dict has under a key, one value a token."""
    refuse_masked(item[key], f"{where}: {key}")
    try:
        values = np.asarray(item[key])
    except (TypeError, ValueError, RuntimeError) as error:
        raise FormatError(f"{where}: {key} is no list of one number a token ({error})") from None
    if values.shape != tokens.shape:
        raise FormatError(f"{where}: {key} of shape {values.shape} for tokens of {tokens.shape}")
    return values


def _mask_of_labels(
    labels: npt.NDArray[Any], tokens: npt.NDArray[Any], where: str
) -> npt.NDArray[np.uint8]:
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
