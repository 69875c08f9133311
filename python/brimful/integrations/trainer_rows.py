"""Rows of datasets as trainers write them, as the documents and loss masks that they mean.

Rows that were packed elsewhere are a column of tokens beside one with the lengths of the documents
in each row; where that column is passed over, positions run on over the row and documents see each
other. What TRL and chat templates call `assistant_masks` and `completion_mask` are loss masks;
where they are passed over, everything is trained on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError
from brimful.extras import require

# The column of this name that TRL's packing writes means lengths wherever it is met.
KNOWN_LENGTHS = "seq_lengths"
# Columns that say 0 for a token without a loss. They may be there together.
KNOWN_MASKS = ("assistant_masks", "completion_mask")
_LABELS = ("labels", "loss_mask")


def documents_of(
    dataset: Any, lengths: str | None = None, masks: Iterable[str] = KNOWN_MASKS
) -> Any:
    """The data itself where its rows are documents that say all; else a `pyarrow.Table` with a
    document a row.

    Args:
        dataset: what `brimful.open` takes. Rows are looked into of a `datasets.Dataset` or a
            `pyarrow.Table`. Tokens are not copied unless the dataset is shuffled or in several
            chunks.
        lengths: name of the column of lengths; None: "seq_lengths" where there is one.
        masks: columns that are loss masks where there are no `labels` and no `loss_mask`.

    Raises:
        FormatError: a column that is named is not there; lengths or masks do not fit their row.
    """
    names = getattr(dataset, "column_names", None)
    if not isinstance(names, list):
        if lengths is not None:
            raise FormatError(
                f"lengths={lengths!r} names a column of a Dataset or a Table; found "
                f"{type(dataset).__name__}"
            )
        return dataset
    if lengths is not None and lengths not in names:
        raise FormatError(
            f"no column {lengths!r} with the lengths of the documents in each row, which lengths= "
            f"names; found {', '.join(names)}. Without it documents cannot be told apart; keep it "
            f"where columns are removed"
        )
    if lengths is None and KNOWN_LENGTHS in names:
        lengths = KNOWN_LENGTHS
    told = any(name in names for name in _LABELS)
    wanted = [] if told else [name for name in masks if name in names]
    if lengths is None and not wanted:
        return dataset
    return _documents(_table(dataset), lengths, wanted)


def _table(dataset: Any) -> Any:
    if getattr(dataset, "_indices", None) is not None:
        dataset = dataset.flatten_indices()
    return dataset.data.table if hasattr(dataset, "data") else dataset


def _documents(table: Any, lengths: str | None, masks: list[str]) -> Any:
    arrow = require("pyarrow", "prepare", "an Arrow table")
    tokens = _lists(table, "input_ids")
    of_rows = _lengths(tokens)
    ends = (
        np.cumsum(of_rows) if lengths is None else _ends(_lists(table, lengths), of_rows, lengths)
    )
    offsets = np.concatenate([[0], ends]).astype(np.int64)

    def column(values: Any) -> Any:
        return arrow.LargeListArray.from_arrays(offsets, values)

    columns = {"input_ids": column(tokens.flatten())}
    for name in _LABELS:
        if name in table.column_names:
            columns[name] = column(_values(table, name, of_rows))
    if masks:
        has_loss = [_values(table, name, of_rows).to_numpy(False) != 0 for name in masks]
        columns["loss_mask"] = column(np.logical_and.reduce(has_loss).astype(np.uint8))
    return arrow.table(columns)


def _ends(lists: Any, of_rows: npt.NDArray[Any], key: str) -> npt.NDArray[np.int64]:
    """Where each document ends, over all rows."""
    ends = np.cumsum(lists.flatten().to_numpy(False), dtype=np.int64)
    last = np.cumsum(_lengths(lists))  # how many documents there are up to each row's end
    told = np.diff(np.concatenate([[0], ends])[np.concatenate([[0], last])])
    _compare(told, of_rows, f"{key} add up to", "input_ids has")
    return ends


def _values(table: Any, name: str, of_rows: npt.NDArray[Any]) -> Any:
    lists = _lists(table, name)
    _compare(_lengths(lists), of_rows, f"{name} has", "input_ids has")
    return lists.flatten()


def _compare(found: npt.NDArray[Any], expected: npt.NDArray[Any], one: str, other: str) -> None:
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        row = int(wrong[0])
        raise FormatError(f"row {row}: {one} {found[row]}, and {other} {expected[row]}")


def _lengths(lists: Any) -> npt.NDArray[Any]:
    lengths: npt.NDArray[Any] = lists.value_lengths().to_numpy(False).astype(np.int64)
    return lengths


def _lists(table: Any, name: str) -> Any:
    """A column of lists of integers in one piece, without nulls."""
    arrow = require("pyarrow", "prepare", "an Arrow table")
    if table.column_names.count(name) != 1:
        raise FormatError(f"expected one column {name!r}; found {', '.join(table.column_names)}")
    column = table.column(name).combine_chunks()
    kind = column.type
    if not (arrow.types.is_list(kind) or arrow.types.is_large_list(kind)) or not (
        arrow.types.is_integer(kind.value_type) or arrow.types.is_boolean(kind.value_type)
    ):
        raise FormatError(f"column {name}: type {kind}; expected lists of integers")
    if column.null_count or column.flatten().null_count:
        raise FormatError(f"column {name} has empty values (null)")
    return column
