"""The DATA of `brimful pack`: document lengths from shards, a saved dataset or a file of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import brimful as bf
from brimful.arrow import is_saved_dataset
from brimful.cli.source import Source
from brimful.files import text_hint

LENGTH_FILES = (".txt", ".npy")


@dataclass(frozen=True)
class Lengths:
    """Document lengths of one DATA argument, int64 [documents]."""

    data: str
    kind: str
    values: NDArray[np.int64]

    def as_dict(self) -> dict[str, Any]:
        return {
            "data": self.data,
            "kind": self.kind,
            "documents": len(self.values),
            "tokens": int(self.values.sum()),
        }


def read_lengths(path: Path) -> NDArray[np.int64]:
    """Document lengths from a .txt (integers between blanks) or a one-dimensional integer .npy."""
    if path.suffix != ".npy":
        return np.array(list(_lengths_of_lines(path)), np.int64)
    try:
        lengths = np.load(path, allow_pickle=False)
    # MemoryError: a header may speak of more than there is.
    except (ValueError, EOFError, MemoryError) as error:
        raise bf.FormatError(f"{path}: no file of document lengths: {error}") from None
    if not isinstance(lengths, np.ndarray):
        lengths.close()
        raise bf.FormatError(f"{path}: an archive of arrays; one array of lengths is expected")
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise bf.FormatError(
            f"{path}: document lengths must be a one-dimensional array of integers, "
            f"found {lengths.dtype} of shape {lengths.shape}"
        )
    if lengths.dtype == np.uint64 and len(lengths) and lengths.max() > np.iinfo(np.int64).max:
        raise bf.FormatError(f"{path}: a length of {lengths.max()} tokens does not fit 64 bits")
    result: NDArray[np.int64] = lengths.astype(np.int64)
    if len(result) and result.min() < 0:
        i = int(result.argmin())
        raise bf.FormatError(f"{path}: document {i} has {result[i]} tokens; lengths are from 0")
    return result


def _lengths_of_lines(path: Path) -> Iterator[int]:
    try:
        text = path.read_text()
    except UnicodeDecodeError as error:
        raise bf.FormatError(f"{path}: no file of document lengths: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        for word in line.split():
            try:
                length = int(word)
            except ValueError:
                raise bf.FormatError(
                    f"{path}, line {number}: {_shortened(word)!r} is no document length; a whole "
                    f"number of tokens is expected{text_hint(path)}"
                ) from None
            if not 0 <= length < 2**63:
                raise bf.FormatError(
                    f"{path}, line {number}: a document of {_shortened(word)} tokens; lengths are "
                    "from 0 to 2**63 - 1"
                )
            yield length


def _shortened(word: str) -> str:
    return word if len(word) <= 40 else word[:37] + "..."


def read_source(source: Source) -> Lengths:
    """Lengths of shards or of a saved dataset, or out of a file of lengths."""
    path = Path(source.data)
    if path.suffix in LENGTH_FILES and path.is_file() and source.format is None:
        return Lengths(source.data, "document lengths", read_lengths(path))
    kind = "dataset" if is_saved_dataset(path) else "token shards"
    return Lengths(source.data, kind, source.open().lengths)
