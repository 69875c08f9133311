"""Which files hold the text, and what each of them is."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from brimful._core import FormatError

FORMATS = ("text", "jsonl", "parquet")
_FORMAT_OF_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_NOT_READ = (".zst", ".bz2", ".xz", ".lz4", ".zip", ".tar", ".tgz", ".7z")


@dataclass(frozen=True)
class Input:
    path: Path
    format: str  # one of FORMATS
    gzipped: bool
    bytes: int  # on disk


def find_inputs(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None
) -> list[Input]:
    """Files named by paths, glob patterns and folders, each once, in the order they are named.

    What a pattern or a folder gives is sorted by name; folders are searched to the bottom, without
    hidden files. `format` says what all files are; None tells by the name: .jsonl and .ndjson,
    .parquet, anything else is text. Text and JSON lines may be gzipped (.gz).

    Raises:
        FileNotFoundError: nothing has this name.
        FormatError: a name does not tell what is in the file, or it is of a kind that is not read.
    """
    if format is not None and format not in FORMATS:
        raise FormatError(f"format={format!r}: expected one of {', '.join(FORMATS)}")
    named = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    found: dict[str, Path] = {}
    for name in named:
        for path in _expand(Path(name)):
            found.setdefault(os.path.realpath(path), path)
    if not found:
        raise FormatError("no inputs: name files, folders or glob patterns")
    return [_describe(path, format) for path in found.values()]


def _expand(path: Path) -> Iterator[Path]:
    if path.is_dir():
        files = list(_walk(path))
        if not files:
            raise FormatError(f"{path}: no files in this folder")
        yield from files
    elif path.exists() or not glob.has_magic(str(path)):
        path.stat()  # raises FileNotFoundError with the name
        yield path
    else:
        names = sorted(glob.glob(str(path), recursive=True))
        files = [Path(name) for name in names if not os.path.isdir(name)]
        if not files:
            raise FileNotFoundError(f"{path}: no file has a name like this")
        yield from files


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(files) if not name.startswith("."))


def _describe(path: Path, format: str | None) -> Input:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FormatError(f"{path}: not a regular file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    suffix = "".join((suffixes[:-1] if gzipped else suffixes)[-1:])
    if suffix in _NOT_READ:
        raise FormatError(
            f"{path}: {suffix} is not read; unpack it, or leave it out by a pattern such as '*.txt'"
        )
    if format is None and suffix == ".json":
        raise FormatError(
            f"{path}: .json may be JSON lines or one text; say which by format='jsonl' or 'text'"
        )
    kind = format or _FORMAT_OF_SUFFIX.get(suffix, "text")
    if gzipped and kind == "parquet":
        raise FormatError(f"{path}: parquet inside gzip is not read; unpack it")
    return Input(path, kind, gzipped, status.st_size)
