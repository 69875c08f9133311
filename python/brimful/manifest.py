"""The manifest of a folder of shards, read without trust and compared with the files beside it.

It is written last, so a folder that has one is complete. `check` reads no tokens; `brimful.verify`
reads them all.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from brimful._core import FormatError
from brimful.shard_layout import (
    BLOCK_BYTES,
    INDEX_HEADER,
    INDEX_MAGIC,
    INDEX_VERSION,
    MANIFEST,
    SCHEMA_VERSION,
    TEMPORARY_SUFFIX,
    TYPE_CODES,
    FileEntry,
    Manifest,
    Shard,
    index_bytes,
)


def find(folder: str | os.PathLike[str]) -> Manifest | None:
    """The checked manifest of a folder, or None where there is none.

    Raises:
        FormatError: see `check`; also where a writer is still at work, or was killed, before it
            could write the manifest.
    """
    folder = Path(folder)
    if (folder / MANIFEST).exists():
        return check(folder)
    for name in sorted(os.listdir(folder)):
        if name.endswith(TEMPORARY_SUFFIX):
            raise FormatError(
                f"{folder}: unfinished shards ({name} is there, {MANIFEST} is not): their writer "
                "is still at work or was killed; wait for it, or write the shards again"
            )
    return None


def check(folder: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a folder and compare it with the files, without reading tokens.

    Checked: schema; names, sizes and headers of all files; counts of tokens, sequences and
    documents; that no other shard lies in the folder.

    Raises:
        FileNotFoundError: no manifest, or a file that it names is not there.
        FormatError: anything that does not agree, with what was found and what was expected.
    """
    folder = Path(folder)
    manifest = read(folder)
    for shard in manifest.shards:
        _check_shard(folder, shard, manifest.dtype)
    named = {entry.name for shard in manifest.shards for entry in shard.files}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".bin", ".idx")) and name not in named:
            raise FormatError(
                f"{folder / name}: not named by {MANIFEST}; move it out of the folder, or open the "
                "files by a glob, which does not look at the manifest"
            )
    return manifest


def read(folder: Path) -> Manifest:
    """The manifest of a folder, whatever the files are by now."""
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON ({error}); write the shards again") from None
    return _Reader(path).manifest(data)


def content(folder: Path) -> bytes:
    """The bytes of the manifest of a folder, empty where there is none."""
    path = folder / MANIFEST
    return path.read_bytes() if path.is_file() else b""


def mentions(content: bytes, file: str) -> bool:
    """Whether the bytes of a manifest, of any version and however damaged, mention a file."""
    return json.dumps(file, ensure_ascii=False).encode(errors="surrogateescape") in content


def _check_shard(folder: Path, shard: Shard, dtype: str) -> None:
    """Sizes that follow from the counts, sizes on disk, and the header of the index."""
    sizes = [
        (shard.bin, shard.tokens * np.dtype(dtype).itemsize),
        (shard.idx, index_bytes(shard.sequences, shard.documents)),
    ]
    if shard.loss is not None:
        sizes.append((shard.loss, shard.tokens + 8 * shard.documents))
    for entry, size in sizes:
        if entry.bytes != size:
            raise FormatError(
                f"{folder / MANIFEST}: {entry.name} has {entry.bytes} bytes, but {shard.tokens} "
                f"tokens of {dtype}, {shard.sequences} sequences and {shard.documents} documents "
                f"make {size}"
            )
        _check_size(folder / entry.name, size)
    path = folder / shard.idx.name
    with path.open("rb") as file:
        start = file.read(INDEX_HEADER.size)
    if len(start) < INDEX_HEADER.size:  # it has shrunk meanwhile
        _check_size(path, shard.idx.bytes)
    header = INDEX_HEADER.unpack(start.ljust(INDEX_HEADER.size, b"\0"))
    expected = (INDEX_MAGIC, INDEX_VERSION, TYPE_CODES[dtype], shard.sequences, shard.documents + 1)
    names = ("magic", "version", "type code", "number of sequences", "number of document starts")
    for name, found, wanted in zip(names, header, expected, strict=True):
        if found != wanted:
            raise FormatError(f"{path}: {name} is {found!r}, expected {wanted!r} by {MANIFEST}")


def _check_size(path: Path, size: int) -> None:
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, f"{MANIFEST} names it, but it is not there; copy it here again", str(path)
        ) from None
    if found != size:
        raise FormatError(
            f"{path}: {found} bytes, expected {size} by {MANIFEST}; "
            "it was changed, or not copied whole"
        )


class _Reader:
    """Takes JSON of unknown origin apart; what is not as expected names the file and the key."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _error(self, key: str, found: object, expected: str) -> FormatError:
        text = repr(found)
        text = text if len(text) <= 80 else text[:77] + "..."
        return FormatError(f"{self._path}: {key} is {text}, expected {expected}")

    def _get(self, data: object, where: str, key: str) -> Any:
        if not isinstance(data, dict):
            raise self._error(where.rstrip(".") or "the file", data, "an object")
        if key not in data:
            raise FormatError(f"{self._path}: {where}{key} is missing; is this brimful's manifest?")
        return data[key]

    def _count(self, data: object, where: str, key: str) -> int:
        value = self._get(data, where, key)
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise self._error(where + key, value, "a count of 63 bits")
        return value

    def _text(self, data: object, where: str, key: str) -> str:
        value = self._get(data, where, key)
        if not isinstance(value, str):
            raise self._error(where + key, value, "text")
        return value

    def _list(self, data: object, where: str, key: str) -> list[Any]:
        value = self._get(data, where, key)
        if not isinstance(value, list):
            raise self._error(where + key, value, "a list")
        return value

    def _object(self, data: object, key: str) -> dict[str, Any] | None:
        value = self._get(data, "", key)
        if value is not None and not isinstance(value, dict):
            raise self._error(key, value, "an object or null")
        return value

    def manifest(self, data: object) -> Manifest:
        version = self._count(data, "", "schema_version")
        if version != SCHEMA_VERSION:
            raise FormatError(
                f"{self._path}: schema_version is {version}, this brimful reads {SCHEMA_VERSION}; "
                "update brimful, or write the shards again"
            )
        if self._count(data, "", "block_bytes") != BLOCK_BYTES:
            raise self._error("block_bytes", self._get(data, "", "block_bytes"), str(BLOCK_BYTES))
        dtype = self._text(data, "", "dtype")
        if dtype not in TYPE_CODES:
            raise self._error("dtype", dtype, f"one of {', '.join(TYPE_CODES)}")
        sources = self._list(data, "", "sources")
        if not all(isinstance(source, dict) for source in sources):
            raise self._error("sources", sources, "a list of objects")
        shards = self._list(data, "", "shards")
        manifest = Manifest(
            folder=self._path.parent,
            dtype=dtype,
            shards=tuple(self._shard(shard, f"shards[{i}].") for i, shard in enumerate(shards)),
            brimful=self._text(data, "", "brimful"),
            tokenizer=self._object(data, "tokenizer"),
            provenance=self._object(data, "provenance"),
            sources=tuple(sources),
        )
        for key in ("documents", "sequences", "tokens"):
            if self._count(data, "", key) != getattr(manifest, key):
                expected = f"{getattr(manifest, key)}, the sum over the shards"
                raise self._error(key, self._get(data, "", key), expected)
        if len({shard.name for shard in manifest.shards}) != len(manifest.shards):
            raise FormatError(f"{self._path}: two shards have the same name")
        return manifest

    def _shard(self, data: object, where: str) -> Shard:
        name = self._text(data, where, "name")
        # What cannot be printed holds, among others, what no file name can: NUL and surrogates.
        if not name.isprintable() or not name or name.startswith(".") or set(name) & set("/\\"):
            raise self._error(where + "name", name, "the name of a file in this folder")
        entries = self._list(data, where, "files")
        files = {}
        for i, item in enumerate(entries):
            entry = self._entry(item, f"{where}files[{i}].")
            files[entry.name] = entry
        bin, idx, loss = (f"{name}{suffix}" for suffix in (".bin", ".idx", ".loss.bin"))
        if len(files) != len(entries) or not {bin, idx} <= set(files) <= {bin, idx, loss}:
            raise self._error(where + "files", list(files), f"{bin}, {idx} and perhaps {loss}")
        blocks = -(-files[bin].bytes // BLOCK_BYTES)
        if len(files[bin].blocks) != blocks:
            found = f"{len(files[bin].blocks)} checksums"
            raise self._error(f"{where}files: blocks of {bin}", found, f"{blocks}, one a MiB")
        return Shard(
            name=name,
            documents=self._count(data, where, "documents"),
            sequences=self._count(data, where, "sequences"),
            tokens=self._count(data, where, "tokens"),
            bin=files[bin],
            idx=files[idx],
            loss=files.get(loss),
        )

    def _entry(self, data: object, where: str) -> FileEntry:
        has_blocks = isinstance(data, dict) and "blocks" in data
        blocks = self._list(data, where, "blocks") if has_blocks else []
        for value in [self._text(data, where, "xxh3"), *blocks]:
            if (
                not isinstance(value, str)
                or len(value) != 16
                or set(value) - set("0123456789abcdef")
            ):
                raise self._error(where + "xxh3", value, "16 hexadecimal digits")
        return FileEntry(
            name=self._text(data, where, "name"),
            bytes=self._count(data, where, "bytes"),
            xxh3=self._text(data, where, "xxh3"),
            blocks=tuple(blocks),
        )
