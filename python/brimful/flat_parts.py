"""Documents as a collator gets them, taken apart: arrays, tensors, lists or dicts of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError
from brimful.files import DTYPES
from brimful.memory import loss_mask, token_array, values_of_tokens

_DTYPES = frozenset(map(np.dtype, DTYPES))  # in the machine's byte order
_KEYS = ("input_ids", "labels", "loss_mask", "label", "attention_mask")


class FlatParts:
    """Documents taken apart: tokens, and what there is for each of them beside."""

    def __init__(
        self, documents: Any, loss_masks: Any, document_labels: Any, lengths: str | None
    ) -> None:
        self.documents = _as_list("documents", documents)
        self.tokens: list[npt.NDArray[Any]] = []
        self.masks: list[npt.NDArray[np.uint8] | None] = []
        self.labels: list[npt.NDArray[Any] | None] = []
        self.document_labels: list[Any] = []
        dicts = sum(isinstance(document, Mapping) for document in self.documents)
        if dicts and dicts == len(self.documents):
            if loss_masks is not None or document_labels is not None:
                raise FormatError(
                    "documents are dicts, which hold their masks and labels themselves: leave "
                    "loss_masks and document_labels out"
                )
            for i, document in enumerate(self.documents):
                self._add_dict(document, i, lengths)
            return
        if dicts:
            raise FormatError(
                f"{dicts} of {len(self.documents)} documents are dicts: give dicts only, or arrays"
            )
        if lengths is not None:
            raise FormatError(f"lengths={lengths!r} names a key of dicts; the documents are none")
        masks = self._each("loss_masks", loss_masks)
        self.document_labels = self._each("document_labels", document_labels)
        for i, (values, mask) in enumerate(zip(self.documents, masks, strict=True)):
            tokens = _tokens(values, f"document {i}")
            self.tokens.append(tokens)
            self.masks.append(None if mask is None else _mask(mask, tokens, f"document {i}"))
            self.labels.append(None)

    def _each(self, name: str, values: Any) -> list[Any]:
        if values is None:
            return [None] * len(self.documents)
        listed = _as_list(name, values)
        if len(listed) != len(self.documents):
            raise FormatError(f"{len(listed)} {name} for {len(self.documents)} documents")
        return listed

    def _add_dict(self, item: Mapping[str, Any], number: int, lengths: str | None) -> None:
        where = f"document {number}" if lengths is None else f"row {number}"
        item = {key: value for key, value in item.items() if value is not None}
        single = "labels" in item and _is_single(item["labels"])
        unknown = [key for key in item if key not in _KEYS and key != lengths]
        twice = "loss_mask" in item and "labels" in item and not single
        if "input_ids" not in item or unknown or twice:
            raise FormatError(
                f"{where}: keys {list(item)}; expected input_ids, with labels or loss_mask, and "
                "label, if wanted (rows that were packed elsewhere: name the key of their lengths "
                "with lengths=)"
            )
        tokens = _tokens(item["input_ids"], where)
        if "attention_mask" in item:
            attention = values_of_tokens(item, "attention_mask", tokens, where)
            if not np.all(attention == 1):
                raise FormatError(f"{where}: attention_mask hides tokens; give documents unpadded")
        mask = labels = None
        if "loss_mask" in item:
            mask = _mask(item["loss_mask"], tokens, where)
        label = item.get("label")
        if single:
            if label is not None:
                raise FormatError(f"{where}: both labels and label hold one number")
            label = item["labels"]
        elif "labels" in item:
            labels = _label_array(values_of_tokens(item, "labels", tokens, where), where)
        if lengths is None:
            self._add(tokens, mask, labels, label)
            return
        if label is not None:
            raise FormatError(f"{where}: one label for a row of several documents")
        begin = 0
        for length in _row_lengths(item, lengths, tokens, where):
            part = slice(begin, begin + length)
            self._add(
                tokens[part],
                None if mask is None else mask[part],
                None if labels is None else labels[part],
                None,
            )
            begin += length

    def _add(self, tokens: Any, mask: Any, labels: Any, label: Any) -> None:
        self.tokens.append(tokens)
        self.masks.append(mask)
        self.labels.append(labels)
        self.document_labels.append(label)

    def labels_of(self, documents: npt.NDArray[np.int64]) -> npt.NDArray[Any] | None:
        """The labels of these documents, int64, or float32 where they are no whole numbers."""
        absent = [i for i, label in enumerate(self.document_labels) if label is None]
        if len(absent) == len(self.document_labels):
            return None
        if absent:
            raise FormatError(f"document {absent[0]} has no label, and others have one")
        try:
            numbers = [np.asarray(label).item() for label in self.document_labels]
            whole = all(isinstance(number, int) for number in numbers)
            labels = np.asarray(numbers, np.int64 if whole else None)
        except (TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"labels of documents are one number each ({error})") from None
        if labels.dtype.kind not in "if":
            raise FormatError(f"labels of documents are numbers; found {labels.dtype}")
        return labels[documents].astype(np.int64 if whole else np.float32)


def _as_list(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise FormatError(f"{name} is a {type(values).__name__}; a list is expected")
    try:
        return list(values)
    except TypeError:
        raise FormatError(f"{name}={values!r}; a list is expected") from None


def _tokens(values: Any, where: str) -> npt.NDArray[Any]:
    """Token ids as a contiguous vector of a token dtype; what is one already goes through fast."""
    fits = type(values) is np.ndarray and values.ndim == 1 and values.dtype in _DTYPES
    return values if fits and values.flags.c_contiguous else token_array(values, None, where)


def _is_single(value: Any) -> bool:
    try:
        return np.ndim(value) == 0
    except ValueError:  # lists of unequal lengths
        return False


def _mask(values: Any, tokens: npt.NDArray[Any], where: str) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(loss_mask(values, tokens, where))


def _label_array(values: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    if values.size and values.dtype.kind not in "iu":
        raise FormatError(f"{where}: labels of dtype {values.dtype}; integers are expected")
    return np.ascontiguousarray(values, np.int64)


def _row_lengths(
    item: Mapping[str, Any], key: str, tokens: npt.NDArray[Any], where: str
) -> list[int]:
    """Lengths of the documents of a row that was packed elsewhere."""
    if key not in item:
        raise FormatError(
            f"{where} has no {key!r}, which lengths= names: without the lengths of its documents "
            "they cannot be told apart. Trainers that drop unused columns drop it too"
        )
    try:
        found = np.asarray(item[key])
    except (TypeError, ValueError, RuntimeError) as error:
        raise FormatError(f"{where}: {key} is no list of lengths ({error})") from None
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu") or (found < 0).any():
        raise FormatError(f"{where}: {key} is {item[key]!r}; lengths of documents are expected")
    lengths = [int(length) for length in found]  # whose sum no dtype limits
    if sum(lengths) != tokens.size:
        raise FormatError(
            f"{where}: {key} add up to {sum(lengths)}, and the row has {tokens.size} tokens"
        )
    return lengths
