"""The documents of a loader's dataset: opened as they lie, or read once into temporary shards."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from brimful._core import FormatError, PlanError
from brimful.caller import warn_caller
from brimful.corpus import Corpus
from brimful.drop_in.items import ItemForm, own_form
from brimful.drop_in.temporary import TemporaryFolder
from brimful.memory import DOCUMENT_KEYS, Document, document_of, token_array
from brimful.opening import open
from brimful.shards import ShardWriter
from brimful.tokens import first_outside

_AT_ONCE = 256  # items asked for together, where a dataset has `__getitems__`
_WRITE_SHARDS = (
    "Write its documents to shards once (with brimful.ShardWriter(folder, dtype=...) as writer: "
    "writer.add(token_ids)) and give their folder"
)
_DTYPE = np.dtype(np.int32)  # of the temporary shards: any vocabulary fits


def corpus_of(dataset: Any, ingest: str | None) -> tuple[Corpus, Any]:
    """The corpus that a loader reads, of whatever it was given as its dataset.

    Args:
        dataset: a Corpus, or anything that `brimful.open` takes; with `ingest="once"` also a
            map-style dataset.
        ingest: None opens what holds tokens already. "once" reads every item of a map-style
            dataset, 0 to `len(dataset) - 1`, and writes what it holds to shards in a temporary
            folder, which goes with the corpus. What lies in files, or in a table of Arrow, is not
            read: it is mapped already.

    Returns:
        The corpus, and the first item that was read; None where none was.

    Raises:
        PlanError: the dataset is none of this; it says what to do.
        FormatError: an item is no token data; it says which one, and what was found.
    """
    if isinstance(dataset, Corpus):
        return dataset, None
    if ingest == "once" and not is_mapped(dataset):
        if not _is_map_style(dataset):
            raise PlanError(
                f'ingest="once" reads items 0 to len(dataset) - 1, and the {_kind(dataset)} has '
                f"none or no length. {_WRITE_SHARDS}"
            )
        return _read_once(dataset)
    if isinstance(dataset, str | os.PathLike | list | tuple | np.ndarray):
        return open(dataset), None
    try:
        return open(dataset), None
    except FormatError as error:
        advice = _WRITE_SHARDS
        if _is_map_style(dataset):
            advice = 'Give ingest="once" to have its items read, if they are token ids'
        raise PlanError(
            f"settings of brimful's own ask for packed tokens, and the dataset cannot be opened as "
            f"tokens: {error}. {advice}, or leave those settings out for torch's own loading"
        ) from None


def form_of_items(dataset: Any, item: Any, *, masked: bool) -> ItemForm:
    """The form of what torch's loader would take from a dataset, by its first item.

    What torch cannot run as a dataset of documents (a corpus, files, a table, one long array) gives
    int64 tensors, or dicts of `input_ids` and `labels` where it is `masked`.

    Args:
        item: the first one, where it was read already.
        masked: some documents have loss masks.
    """
    if item is None and not isinstance(dataset, Corpus) and not is_mapped(dataset) and len(dataset):
        item = dataset[0]
        if isinstance(item, Mapping):
            _warn_of_others(dataset, [key for key in item if key not in DOCUMENT_KEYS])
    if isinstance(item, Mapping) or (hasattr(item, "__len__") and np.ndim(item) == 1):
        return ItemForm(item, masked=masked)
    return own_form(masked=masked)


def is_mapped(dataset: Any) -> bool:
    """Whether it is a path, a list of paths, or a table of Arrow."""
    if isinstance(dataset, list | tuple):
        return bool(dataset) and all(isinstance(item, str | os.PathLike) for item in dataset)
    is_table = type(dataset).__module__.split(".")[0] == "pyarrow"
    return is_table or isinstance(dataset, str | os.PathLike)


def _is_map_style(dataset: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dataset, torch.utils.data.IterableDataset):
        return False  # it inherits a __getitem__ that only raises
    return hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")


def _read_once(dataset: Any) -> tuple[Corpus, Any]:
    """Every item of a map-style dataset, as shards in a folder that goes with the corpus."""
    folder = TemporaryFolder()
    try:
        first = _write_items(dataset, folder.path / "shards")
        corpus = open(folder.path / "shards")
    except BaseException:
        folder.remove()
        raise
    corpus._keep.append(folder)
    return corpus, first


def _write_items(dataset: Any, shards: Path) -> Any:
    """Returns the first item; None where there is none."""
    first_item = None
    others: dict[str, None] = {}  # in the order in which they were met
    with ShardWriter(shards, dtype=_DTYPE) as writer:
        for first, items in _items(dataset):
            documents = [
                _document(item, f"item {first + i} of the {_kind(dataset)}", others)
                for i, item in enumerate(items)
            ]
            first_item = items[0] if first == 0 else first_item
            writer.add_batch(*_end_to_end(documents))
    _warn_of_others(dataset, others)
    return first_item


def _warn_of_others(dataset: Any, others: Collection[str]) -> None:
    if others:
        warn_caller(
            f"items of the {_kind(dataset)} hold more than token data, which is left out: "
            f"{', '.join(map(repr, others))}"
        )


def _items(dataset: Any) -> Iterator[tuple[int, list[Any]]]:
    """Neighbouring items with the number of the first, asked for as torch's loader does."""
    together = getattr(dataset, "__getitems__", None)
    size = len(dataset)
    for first in range(0, size, _AT_ONCE):
        numbers = list(range(first, min(first + _AT_ONCE, size)))
        if not together:
            yield first, [_asked(dataset.__getitem__, i, f"item {i}") for i in numbers]
            continue
        items = list(_asked(together, numbers, f"items {first} to {numbers[-1]}"))
        if len(items) != len(numbers):
            raise FormatError(
                f"__getitems__ of the {_kind(dataset)} gave {len(items)} items for the "
                f"{len(numbers)} from {first} to {numbers[-1]}"
            )
        yield first, items


def _asked(get: Callable[[Any], Any], what: Any, name: str) -> Any:
    """An answer of the dataset. Its exceptions keep their type, and tell what was asked for."""
    try:
        return get(what)
    except StopIteration as error:  # which would not leave a generator as what it is
        raise RuntimeError(
            f"the dataset raised StopIteration when ingest asked for {name}"
        ) from error
    except Exception as error:
        error.add_note(f"raised by the dataset when ingest asked for {name}")
        raise


def _document(item: Any, where: str, others: dict[str, None]) -> Document:
    """The document in an item; names of what else it holds go to `others`."""
    if isinstance(item, Mapping):
        others |= dict.fromkeys(str(key) for key in item if key not in DOCUMENT_KEYS)
        document = document_of(item, None, where, other_keys=True)
    elif isinstance(item, str | bytes) or not hasattr(item, "__len__"):
        raise FormatError(f"{where}: found a {_kind(item)}; {_WANTED}")
    else:
        try:
            document = Document(token_array(item, None, where), None)
        except FormatError as error:
            raise FormatError(f"{error}; found a {_kind(item)}; {_WANTED}") from None
    tokens = document.tokens
    if tokens.dtype.itemsize >= _DTYPE.itemsize and tokens.dtype != _DTYPE:
        limits = np.iinfo(_DTYPE)
        position = first_outside(tokens, limits.min, limits.max)
        if position is not None:
            raise FormatError(
                f"{where}: token {position} is {tokens[position]}; no vocabulary is that large "
                f"(ids that ingest takes are of {_DTYPE})"
            )
    return document


def _end_to_end(documents: list[Document]) -> tuple[Any, list[int], Any]:
    """Tokens, lengths and loss mask of documents; a mask of None where none of them has one."""
    lengths = [document.tokens.size for document in documents]
    masks = None
    if any(document.mask is not None for document in documents):
        masks = np.concatenate(
            [
                np.ones(size, np.uint8) if document.mask is None else document.mask
                for document, size in zip(documents, lengths, strict=True)
            ]
        )
    return np.concatenate([document.tokens for document in documents]), lengths, masks


_WANTED = "expected token ids, [n], or a dict of input_ids and perhaps labels"


def _kind(value: Any) -> str:
    return type(value).__name__
