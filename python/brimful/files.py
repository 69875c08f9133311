"""A token file: which format it is, and its tokens mapped and checked."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brimful import _core, manifest
from brimful._core import FormatError
from brimful.boundaries import Boundary, cut_file
from brimful.corpus import SourceInfo
from brimful.paths import LOSS_SUFFIX, index_of
from brimful.shard_layout import MANIFEST

FORMATS = ("megatron", "llm.c", "raw", "npy")
DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")
_LLMC_MAGICS = (20240520, 20240801)


@dataclass(frozen=True)
class FileOptions:
    """What the caller declared, checked: it holds for every file that is opened."""

    format: str | None = None
    dtype: str | None = None
    boundary: Boundary | None = None
    rows: str = "documents"
    loss_masks: bool | None = None  # None: where a mask lies beside the tokens


@dataclass(frozen=True)
class OpenedFile:
    store: _core.TokenStore
    info: SourceInfo


def parse_dtype(dtype: Any) -> str | None:
    """numpy's name of a token dtype given as name, numpy dtype or numpy type. Never a default."""
    if dtype is None:
        return None
    with contextlib.suppress(TypeError):
        found: np.dtype[Any] = np.dtype(dtype)
        if found.name in DTYPES and found.isnative:
            return str(found.name)
    raise FormatError(f"dtype={dtype!r}: expected one of {', '.join(DTYPES)}")


def open_file(path: Path, options: FileOptions) -> OpenedFile:
    """Open one token file, of the format that it has or that was declared."""
    format = options.format or _detect(path)
    if options.rows == "sequences" and format != "megatron":
        raise FormatError(f'{path}: rows="sequences" needs a Megatron index; this file is {format}')
    if options.loss_masks and format != "megatron":
        raise FormatError(f"{path}: loss masks lie beside Megatron files; this file is {format}")
    if format == "megatron":
        return _open_megatron(path, options)
    boundaries = "file"
    if format == "llm.c":
        store = _core.open_llmc(path, options.dtype)
    elif format == "npy":
        store, is_matrix = _core.open_npy(path, options.dtype)
        boundaries = "matrix rows" if is_matrix else boundaries
    else:
        store = _core.open_raw(path, _declared_dtype(path, options))
    if options.boundary is not None and boundaries == "file":
        store = cut_file(store, path, format, options.boundary)
        boundaries = str(options.boundary)
    return OpenedFile(store, store_info(store, format, boundaries))


def check_masks_are_there(paths: Iterable[Path], options: FileOptions) -> None:
    """No manifest beside the files names a loss mask that is gone: all tokens would get loss.

    Raises:
        FormatError: one does.
    """
    if options.loss_masks is not None or options.format not in (None, "megatron"):
        return
    seen: dict[Path, bytes] = {}
    for path in paths:
        if options.format is None and index_of(path) is None:
            continue
        loss = _megatron_files(path)[2]
        if loss.exists():
            continue
        if path.parent not in seen:
            content = manifest.content(path.parent)
            seen[path.parent] = content if LOSS_SUFFIX.encode() in content else b""
        if manifest.mentions(seen[path.parent], loss.name):
            raise FormatError(
                f"{loss}: not there, but {MANIFEST} names it; copy it here again, or leave loss "
                "masks out by loss_masks=False"
            )


def store_info(
    store: _core.TokenStore, format: str, boundaries: str, unit: str = "documents"
) -> SourceInfo:
    """Describe a store; the name is given when it becomes part of a source."""
    return SourceInfo(
        name="",
        format=format,
        dtype=store.dtype,
        unit=unit,
        boundaries=boundaries,
        loss_masks="all" if store.has_loss_mask else "none",
        documents=len(store),
        tokens=store.num_tokens,
    )


def _open_megatron(path: Path, options: FileOptions) -> OpenedFile:
    bin, idx, loss = _megatron_files(path)
    wants_loss = loss.exists() if options.loss_masks is None else options.loss_masks
    store = _core.open_megatron(bin, idx, loss if wants_loss else None, options.rows, options.dtype)
    return OpenedFile(store, store_info(store, "megatron", "index", options.rows))


def _megatron_files(path: Path) -> tuple[Path, Path, Path]:
    """Tokens, index and loss mask of the Megatron pair that a path names."""
    prefix = path.with_suffix("") if path.suffix in (".bin", ".idx") else path
    bin, idx, loss = (prefix.with_name(prefix.name + s) for s in (".bin", ".idx", LOSS_SUFFIX))
    return bin, idx, loss


def _detect(path: Path) -> str:
    """The format by what lies beside the file and by its first bytes; never by its size."""
    if index_of(path) is not None:
        return "megatron"
    if not stat.S_ISREG(path.stat().st_mode):
        raise FormatError(f"{path}: not a regular file; only files that can be mapped are read")
    with path.open("rb") as file:
        head = file.read(6)
    if head == b"\x93NUMPY" or path.suffix == ".npy":
        return "npy"
    return "llm.c" if int.from_bytes(head[:4], "little") in _LLMC_MAGICS else "raw"


def _declared_dtype(path: Path, options: FileOptions) -> str:
    """A headerless file does not tell its dtype, and most sizes fit several: ask, never guess."""
    if options.dtype is not None:
        return options.dtype
    size = path.stat().st_size
    fits = [name for name in DTYPES if size % np.dtype(name).itemsize == 0]
    raise FormatError(
        f"{path}: no header and no {path.with_suffix('.idx').name}, so declare the dtype, as in "
        f'dtype="uint16"; {size} bytes fit {", ".join(fits)}{text_hint(path)}'
    )


def text_hint(path: Path) -> str:
    """What to add to an error about a file that begins like a text: no control characters in it,
    which integers of two bytes and more all but always have.
    """
    with path.open("rb") as file:
        head = file.read(256)
    is_text = bool(head) and not any(byte < 32 and byte not in b"\t\n\f\r" for byte in head)
    is_parquet = head.startswith(b"PAR1")
    return ". Is it a text? Run `brimful prepare` first" if is_text or is_parquet else ""
