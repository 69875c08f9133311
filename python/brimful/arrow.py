"""Datasets of Hugging Face and tables of Arrow as sources: their memory as it lies, chunk by chunk.

A row map (what `shuffle`, `select` and `filter` leave on a dataset) is honoured, not applied: the
tokens stay in file order, and `scatter` tells how far the map jumps about in them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import FormatError
from brimful.arrow_lists import (
    Lists,
    check_attention,
    lists_of,
    mask_of_column,
    mask_of_labels,
)
from brimful.extras import require

_TOKENS = "input_ids"
_MASKS = ("labels", "loss_mask")
_ATTENTION = "attention_mask"


def open_dataset(dataset: Any, *, name: str = "corpus") -> _core.Source:
    """A source over a table in memory or mapped from a file; a row is a document.

    Args:
        dataset: a `datasets.Dataset` or a `pyarrow.Table`, with a column `input_ids` of lists of
            integers and, if some tokens get no loss, `labels` (the token itself, or -100) or
            `loss_mask` (0 and 1); or such lists alone, as a `pyarrow.ChunkedArray` or `Array`. An
            `attention_mask` must be all ones. Other columns are not looked at, nor are those that
            `with_format(columns=...)` hides.
        name: of the source.

    Tokens are never copied. A loss mask costs a byte a token unless it is stored as bytes.

    Raises:
        FormatError: a column is missing or of another type; a row or value is null; labels, masks
            and tokens disagree. The row is that of the table under a row map.
    """
    arrow = require("pyarrow", "prepare", "an Arrow table")
    if isinstance(dataset, arrow.RecordBatch):
        dataset = arrow.Table.from_batches([dataset])
    if isinstance(dataset, arrow.Table):
        return _open_table(dataset, None, name)
    if isinstance(dataset, arrow.ChunkedArray | arrow.Array):
        return _open_table(arrow.table({_TOKENS: dataset}), None, name)
    if isinstance(dataset, dict):
        raise FormatError(f"a DatasetDict has splits; open one of {', '.join(map(repr, dataset))}")
    if not hasattr(dataset, "data") or not hasattr(dataset, "_indices"):
        raise FormatError(
            f"{type(dataset).__name__}: expected a Dataset or Table, whose rows have numbers; save "
            "a stream first"
        )
    if dataset.format["type"] == "custom":
        raise FormatError(
            "a transform is set on the dataset, which would be passed over; apply it with map(), "
            "or take it off with reset_format()"
        )
    rows = None if dataset._indices is None else _row_map(dataset._indices.column(0))
    columns = None if dataset.format["output_all_columns"] else dataset.format["columns"]
    return _open_table(_shown(dataset.data.table, columns), rows, name)


def is_saved_dataset(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder was made by `save_to_disk` of a Dataset or DatasetDict."""
    return any(Path(folder, file).is_file() for file in ("state.json", "dataset_dict.json"))


def open_saved(folder: str | os.PathLike[str], *, name: str = "corpus") -> _core.Source:
    """A source over a folder that `Dataset.save_to_disk` made; see `open_dataset`.

    Its files are mapped. Row maps beside them, which old versions wrote, are honoured.

    Raises:
        FormatError: it holds several splits, or a part of it is not what it should be.
        FileNotFoundError: a file that it names is not there.
    """
    folder = Path(folder)
    state = _read_state(folder)
    arrow = require("pyarrow", "prepare", "a saved dataset")
    table = arrow.concat_tables(_read_files(folder, state, "_data_files"))
    rows = None
    if state.get("_indices_data_files"):
        maps = _read_files(folder, state, "_indices_data_files")
        rows = _row_map(arrow.concat_tables(maps).column(0))
    columns = None if state.get("_output_all_columns") else state.get("_format_columns")
    if columns is not None and not isinstance(columns, list):
        raise FormatError(
            f"{folder / 'state.json'}: _format_columns is {columns!r}; save the dataset again"
        )
    return _open_table(_shown(table, columns, f"{folder}: "), rows, name, f"{folder}: ")


def scatter(rows: npt.NDArray[np.int64] | None) -> float:
    """Share of the steps of a row map that do not lead to the next row: 0.0 reads straight on, 1.0
    jumps at every document, which is slow on a disk. No map is 0.0.
    """
    if rows is None or rows.size < 2:
        return 0.0
    return float(np.count_nonzero(np.diff(rows) != 1) / (rows.size - 1))


def _open_table(
    table: Any, rows: npt.NDArray[np.int64] | None, name: str, origin: str = ""
) -> _core.Source:
    """`origin` begins messages."""
    names = table.schema.names
    if names.count(_TOKENS) != 1:
        raise FormatError(
            f"{origin}expected one column {_TOKENS!r}; found {', '.join(names) or 'no columns'}"
        )
    if all(mask in names for mask in _MASKS):
        raise FormatError(f"{origin}columns labels and loss_mask say the same; keep one of them")
    wanted = [column for column in (_TOKENS, *_MASKS, _ATTENTION) if column in names]
    stores = list(_stores(table.select(wanted).to_batches(), origin))
    return _core.Source(name, stores, rows)


def _stores(batches: list[Any], origin: str) -> Iterator[_core.TokenStore]:
    """A store a chunk; empty chunks are none."""
    row = 0
    for batch in batches:
        if len(batch):
            columns = {
                column: lists_of(
                    batch.column(i), f"{origin}column {column}", row, bools=column != _TOKENS
                )
                for i, column in enumerate(batch.schema.names)
            }
            yield _store(columns, f"{origin}rows {row} to {row + len(batch) - 1}")
        row += len(batch)


def _store(columns: dict[str, Lists], name: str) -> _core.TokenStore:
    tokens = columns[_TOKENS]
    if _ATTENTION in columns:
        check_attention(tokens, columns[_ATTENTION])
    if "labels" in columns:
        mask = mask_of_labels(tokens, columns["labels"])
    elif "loss_mask" in columns:
        mask = mask_of_column(tokens, columns["loss_mask"])
    else:
        return _core.arrow_store(name, tokens.values, tokens.offsets)
    # The mask has no values beside those of these rows, so the tokens must have none either.
    offsets = tokens.offsets
    if offsets[0]:
        offsets = offsets - offsets[0]
    return _core.arrow_store(name, tokens.values[tokens.span], offsets, mask)


def _shown(table: Any, columns: list[str] | None, origin: str = "") -> Any:
    """What a dataset's format lets its readers see: these columns, or all of them."""
    if columns is None:
        return table
    if _TOKENS in table.column_names and _TOKENS not in columns:
        raise FormatError(
            f"{origin}the format of the dataset shows the columns {columns} alone, without "
            f"{_TOKENS}; take it off with reset_format()"
        )
    return table.select([name for name in table.column_names if name in columns])


def _row_map(column: Any) -> npt.NDArray[np.int64]:
    """Row numbers as int64; a map in one piece is not copied."""
    parts = [part.to_numpy(zero_copy_only=True) for part in column.chunks if len(part)]
    if not parts:
        return np.empty(0, np.int64)
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    # Numbers past int64 turn negative, and are refused as out of range when the source is used.
    return rows.view(np.int64) if rows.itemsize == 8 else rows.astype(np.int64)


def _read_state(folder: Path) -> dict[str, Any]:
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(str(path.parent) for path in folder.glob("*/state.json"))
        raise FormatError(f"{folder}: has several splits; open one of {', '.join(splits)}")
    path = folder / "state.json"
    try:
        state = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON ({error}); save the dataset again") from None
    if not isinstance(state, dict):
        raise FormatError(f"{path}: expected an object; save the dataset again")
    if state.get("_format_type") == "custom":
        raise FormatError(f"{path}: a transform is set on the dataset; save it without one")
    known = {"_data_files", "_indices_data_files"}
    strange = [key for key, value in state.items() if "indices" in key and value]
    strange += [key for key in ("_inplace_history",) if _has_transforms(state.get(key))]
    if set(strange) - known:
        raise FormatError(
            f"{path}: {', '.join(sorted(set(strange) - known))} changes which rows there are, in a "
            "way that is not read; load the dataset with `datasets`, call flatten_indices() and "
            "save it again"
        )
    return state


def _has_transforms(history: Any) -> bool:
    """Changes that old versions of `datasets` made again when they loaded a dataset."""
    if not isinstance(history, list):
        return bool(history)
    return any(not isinstance(entry, dict) or any(entry.values()) for entry in history)


def _read_files(folder: Path, state: dict[str, Any], key: str) -> list[Any]:
    arrow = require("pyarrow", "prepare", "a saved dataset")
    entries = state.get(key)
    if not isinstance(entries, list) or not entries:
        raise FormatError(
            f"{folder / 'state.json'}: {key} is {entries!r}, expected a list of files"
        )
    tables = []
    for entry in entries:
        file = entry.get("filename") if isinstance(entry, dict) and len(entry) == 1 else None
        if not isinstance(file, str) or Path(file).name != file:
            raise FormatError(f"{folder / 'state.json'}: {key} has {entry!r}, expected a file name")
        path = folder / file
        path.stat()  # raises FileNotFoundError with the name
        try:
            table = arrow.ipc.open_stream(arrow.memory_map(str(path))).read_all()
            table.column_names  # noqa: B018  (which need not be text)
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FormatError(f"{path}: not a whole stream of Arrow ({error})") from None
        tables.append(table)
    return tables
