"""Rows that were packed elsewhere, as the documents that they hold.

Trainers keep such rows as a column of tokens beside one with the lengths of the documents in each
row. Where that column is passed over, positions run on over the row and documents see each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from brimful._core import FormatError
from brimful.extras import require

# The column of this name that TRL's packing writes means lengths wherever it is met.
KNOWN_LENGTHS = "seq_lengths"
_COLUMNS = ("input_ids", "labels", "loss_mask")


def documents_of(dataset: Any, lengths: str | None) -> Any:
    """The data itself where its rows are documents; else a `pyarrow.Table` with a row a document.

    Args:
        dataset: what `brimful.open` takes. Rows are looked into of a `datasets.Dataset` or a
            `pyarrow.Table` with a column of lengths. Tokens are not copied unless the dataset is
            shuffled or in several chunks.
        lengths: name of the column; None: "seq_lengths" where there is one.

    Raises:
        FormatError: the column is not there, or lengths do not add up to those of their row.
    """
    names = getattr(dataset, "column_names", None)
    if not isinstance(names, list):
        names = None
    if lengths is None and (names is None or KNOWN_LENGTHS not in names):
        return dataset
    key = KNOWN_LENGTHS if lengths is None else lengths
    if names is None:
        raise FormatError(
            f"lengths={key!r} names a column of a Dataset or a Table; found "
            f"{type(dataset).__name__}"
        )
    if key not in names:
        raise FormatError(
            f"no column {key!r} with the lengths of the documents in each row, which lengths= "
            f"names; found {', '.join(names)}. Without it documents cannot be told apart; keep it "
            f"where columns are removed"
        )
    return _split(_table(dataset), key)


def _table(dataset: Any) -> Any:
    if getattr(dataset, "_indices", None) is not None:
        dataset = dataset.flatten_indices()
    return dataset.data.table if hasattr(dataset, "data") else dataset


def _split(table: Any, key: str) -> Any:
    arrow = require("pyarrow", "prepare", "an Arrow table")
    of_rows = _lists(table, key)
    of_documents = np.concatenate(
        [[0], np.cumsum(of_rows.flatten().to_numpy(False), dtype=np.int64)]
    )
    ends_of_rows = np.cumsum(of_rows.value_lengths().to_numpy(False), dtype=np.int64)
    tokens_of_rows = np.diff(of_documents[np.concatenate([[0], ends_of_rows])])
    documents = {}
    for name in _COLUMNS:
        if name not in table.column_names:
            continue
        column = _lists(table, name)
        found = column.value_lengths().to_numpy(False)
        wrong = np.flatnonzero(found != tokens_of_rows)
        if wrong.size:
            row = int(wrong[0])
            raise FormatError(
                f"row {row}: {key} add up to {tokens_of_rows[row]}, and {name} has {found[row]}"
            )
        documents[name] = arrow.LargeListArray.from_arrays(of_documents, column.flatten())
    return arrow.table(documents)


def _lists(table: Any, name: str) -> Any:
    """A column of lists in one piece, without nulls."""
    column = table.column(name).combine_chunks()
    if isinstance(column, list) or not hasattr(column, "flatten"):
        raise FormatError(f"column {name} is no column of lists")
    if column.null_count or column.flatten().null_count:
        raise FormatError(f"column {name} has empty values (null)")
    return column
