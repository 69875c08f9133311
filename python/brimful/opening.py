"""`brimful.open`: anything that holds tokens, as a corpus."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeGuard

import numpy as np

from brimful import _core
from brimful._core import FormatError
from brimful.arrow import is_saved_dataset, open_dataset, open_saved, scatter
from brimful.boundaries import Boundary, parse_eos
from brimful.corpus import Corpus, join_info
from brimful.files import (
    FORMATS,
    FileOptions,
    OpenedFile,
    check_masks_are_there,
    open_file,
    parse_dtype,
    store_info,
)
from brimful.memory import open_array, open_arrays, open_dicts
from brimful.paths import check_name, list_files

# The name of the only source of an opened corpus. States hold names, never paths, so that a corpus
# may move; `mix` gives better ones.
_NAME = "corpus"


def open(
    source: Any,
    *,
    format: Literal["megatron", "llm.c", "raw", "npy"] | None = None,
    dtype: Any = None,
    eos: int | tuple[str, int] | None = None,
    rows: Literal["documents", "sequences"] = "documents",
    loss_masks: bool | Sequence[Any] | None = None,
) -> Corpus:
    """Open tokens as a corpus of one source. Files are mapped and checked, not read.

    Args:
        source: a path, a glob pattern, a directory or a list of these; a Hugging Face Dataset, the
            directory where `save_to_disk` put one, or a pyarrow Table; a list of arrays (a document
            each); a list of dicts with `input_ids` and, if some tokens get no loss, `labels` or
            `loss_mask`; or one array (a matrix holds a document a row).
        format: what the files are, where name and first bytes do not tell: "megatron" (.bin with
            .idx), "llm.c", "raw" (headerless) or "npy".
        dtype: of the tokens of headerless files, such as "uint16": they do not tell it. Tokens in
            memory are stored so, and must fit.
        eos: how documents are told apart in tokens without an index: the id after which a document
            ends, or ("end", id), ("start", id), ("pair", id). A pair opens and closes a document
            with the same id. Where there is an index (or a list, or a matrix) that one decides.
            None: a file is one document.
        rows: what counts as a document of a Megatron file: its "documents" or its "sequences".
        loss_masks: None takes `<name>.loss.bin` where it lies beside a Megatron file, True demands
            it, False leaves it. For a list of arrays: a list of as many arrays of 0 and 1.

    Raises:
        FormatError: something is not what it promises, or does not tell what it is.
        FileNotFoundError: nothing has this name.
    """
    if format is not None and format not in FORMATS:
        raise FormatError(f"format={format!r}: expected one of {', '.join(FORMATS)}")
    if rows not in ("documents", "sequences"):
        raise FormatError(f'rows={rows!r}: expected "documents" or "sequences"')
    dtype_name = parse_dtype(dtype)
    boundary = parse_eos(eos)
    is_path = isinstance(source, str | os.PathLike)
    if is_path:
        check_name(source)
    is_saved = is_path and is_saved_dataset(source)
    if is_saved or _is_table(source):
        given = (format, dtype, eos, loss_masks)
        if rows == "sequences" or any(argument is not None for argument in given):
            raise FormatError("a dataset tells all of itself; leave the other arguments out")
        opener = open_saved if is_saved else open_dataset
        corpus = _table_corpus(opener(source, name=_NAME))
        if is_saved:
            corpus._made_by = functools.partial(open, _absolute(source))
        return corpus
    # An empty list may hold no files or no arrays: loss_masks= tells.
    are_paths = _is_list(source) and _are_all(source, str | os.PathLike)
    if is_path or (are_paths and (source or isinstance(loss_masks, bool | None))):
        if not isinstance(loss_masks, bool | None):
            raise FormatError(
                "loss_masks: for files give None, True or False; arrays go with arrays"
            )
        options = FileOptions(format, dtype_name, boundary, rows, loss_masks)
        paths = list_files([source] if is_path else source, format)
        check_masks_are_there(paths, options)
        corpus = _corpus([open_file(path, options) for path in paths])
        corpus._made_by = functools.partial(
            open,
            _absolute(source) if is_path else [_absolute(path) for path in source],
            format=format, dtype=dtype, eos=eos, rows=rows, loss_masks=loss_masks,
        )  # fmt: skip
        return corpus
    if format is not None or rows == "sequences" or isinstance(loss_masks, bool):
        raise FormatError("format=, rows= and a loss_masks= of True or False go with files")
    return _corpus(_open_memory(source, dtype_name, boundary, loss_masks))


def _absolute(path: str | os.PathLike[str]) -> str:
    """The same file or pattern, whatever the working directory is."""
    return os.path.abspath(path)


def _is_table(source: Any) -> bool:
    """Told by the module of its type, so that nothing is imported to answer."""
    return type(source).__module__.split(".")[0] in ("datasets", "pyarrow")


def _is_list(source: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(source, list | tuple)


def _are_all(items: Sequence[Any], kind: Any) -> bool:
    return all(isinstance(item, kind) for item in items)


def _open_memory(
    source: Any, dtype: str | None, boundary: Boundary | None, masks: Sequence[Any] | None
) -> list[OpenedFile]:
    if isinstance(source, np.ndarray) and masks is None:
        return [open_array(source, dtype, boundary)]
    if _is_list(source):
        if source and _are_all(source, Mapping) and masks is None:
            return open_dicts(source, dtype)
        if not any(isinstance(item, str | os.PathLike | Mapping) for item in source):
            return open_arrays(source, dtype, masks)
    raise FormatError(
        f"cannot open {type(source).__name__}: expected a path, a pattern, a directory, a Dataset, "
        "an array, or a list of only paths, only arrays or only dicts"
        + ("" if masks is None else " (loss_masks= goes with a list of arrays)")
    )


def _corpus(opened: list[OpenedFile]) -> Corpus:
    source = _core.Source(_NAME, [file.store for file in opened])
    info = join_info(_NAME, [file.info for file in opened])
    return Corpus(_core.Corpus([source]), (source,), (info,))


def _table_corpus(source: _core.Source) -> Corpus:
    """A row map decides how many documents there are, so the counts come from the corpus."""
    native = _core.Corpus([source])
    boundaries = "list column"
    if source.rows is not None:
        boundaries += f", row map with scatter {scatter(source.rows):.2f}"
    stores = [store_info(store, "arrow", boundaries) for store in source.stores]
    info = dataclasses.replace(
        join_info(_NAME, stores), documents=native.num_documents, tokens=native.num_tokens
    )
    return Corpus(native, (source,), (info,))
