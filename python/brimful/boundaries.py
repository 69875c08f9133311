"""Document boundaries by a rule about one token id, for tokens that come without an index.

Finding them reads every token once, so the result for a file is kept in a small cache file beside
it, or in the user's cache directory where that place cannot be written. A cache file is 56 bytes of
header (magic, SHA-256 of what it belongs to, number of offsets, their hash) and int64 offsets in
tokens; it is used only when all of that fits, and is mapped, not copied.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import FormatError, ReadError

CACHE_SUFFIX = ".documents"
_RULES = ("end", "start", "pair")
_HEADER = struct.Struct("<8s32sQQ")
_MAGIC = b"BRIMDOC1"


@dataclass(frozen=True)
class Boundary:
    """A rule: documents end after token `id`, start at it, or lie between two of it ("pair")."""

    rule: str
    id: int

    def __str__(self) -> str:
        return f"{self.rule} token {self.id}"


def parse_eos(eos: Any) -> Boundary | None:
    """The rule meant by `eos=`: None, a token id, or ("end" | "start" | "pair", token id)."""
    if eos is None:
        return None
    rule: Any
    token: Any
    rule, token = eos if isinstance(eos, tuple) and len(eos) == 2 else ("end", eos)
    if (
        rule not in _RULES
        or isinstance(token, bool)
        or not isinstance(token, int | np.integer)
        or abs(int(token)) >= 2**63
    ):
        raise FormatError(
            f'eos={eos!r}: expected a token id, or ("end", id), ("start", id) or ("pair", id)'
        )
    return Boundary(rule, int(token))


def cut(store: _core.TokenStore, boundary: Boundary) -> _core.TokenStore:
    """The same tokens as documents that `boundary` tells apart. Reads every token once."""
    return _core.with_offsets(store, _find(store, boundary))


def cut_file(
    store: _core.TokenStore, path: Path, format: str, boundary: Boundary
) -> _core.TokenStore:
    """`cut` for the only store of a file, with the offsets kept in a cache file."""
    before = path.stat()
    facts: list[str | int] = [
        before.st_size,
        before.st_mtime_ns,
        format,
        store.dtype,
        store.num_tokens,
    ]
    facts += [boundary.rule, boundary.id]
    for cache in _cache_files(path, boundary):
        digest = _digest([_identity(path, cache), *facts])
        with contextlib.suppress(OSError, FormatError):
            return _cut_by(cache, digest, store)
    offsets = _find(store, boundary)
    after = path.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ReadError(f"{path}: changed while its documents were looked for; open it again")
    for cache in _cache_files(path, boundary):
        digest = _digest([_identity(path, cache), *facts])
        with contextlib.suppress(OSError, FormatError):
            _write(cache, digest, offsets)
            return _cut_by(cache, digest, store)
    return _core.with_offsets(store, offsets)


def _find(store: _core.TokenStore, boundary: Boundary) -> npt.NDArray[np.int64]:
    return _core.find_boundaries(store, boundary.rule, boundary.id)


def _cache_files(path: Path, boundary: Boundary) -> Iterator[Path]:
    """Where the cache of a token file may be: beside it, else in the user's cache directory."""
    name = f"{path.name}.{boundary.rule}-{boundary.id}{CACHE_SUFFIX}"
    yield path.with_name(name)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    yield Path(home) / "brimful" / f"{key}.{name}"


def _identity(path: Path, cache: Path) -> str:
    """A cache beside its file may move with it; one in the user's directory belongs to one path."""
    return path.name if cache.parent == path.parent else str(path.resolve())


def _digest(facts: list[str | int]) -> bytes:
    return hashlib.sha256(json.dumps(facts).encode()).digest()


def _cut_by(cache: Path, digest: bytes, store: _core.TokenStore) -> _core.TokenStore:
    """The store with the offsets of a cache file, which is read in place."""
    with cache.open("rb") as file:
        header = file.read(_HEADER.size)
    if len(header) != _HEADER.size:
        raise FormatError(f"{cache}: truncated")
    magic, found, count, checksum = _HEADER.unpack(header)
    if magic != _MAGIC or found != digest:
        raise FormatError(f"{cache}: belongs to another file, or to an earlier state of it")
    return _core.with_cached_offsets(store, cache, _HEADER.size, count, checksum)


def _write(cache: Path, digest: bytes, offsets: npt.NDArray[np.int64]) -> None:
    """Names the file when it is whole, so that no reader ever sees half of one."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    header = _HEADER.pack(_MAGIC, digest, len(offsets), _core.hash_words(offsets))
    try:
        _write_nameless(cache, header, offsets)
    except OSError:  # NFS, for one, has no files without a name
        _write_renamed(cache, header, offsets)


def _write_nameless(cache: Path, header: bytes, offsets: npt.NDArray[np.int64]) -> None:
    """Leaves nothing behind when the process is killed."""
    descriptor = os.open(cache.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(header)
        offsets.tofile(file)
        file.flush()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(cache)  # of an earlier state of the token file, or damaged
        with contextlib.suppress(FileExistsError):  # another process was faster
            # With a directory given, which an absolute path ignores, the link is followed.
            os.link(f"/proc/self/fd/{descriptor}", cache, src_dir_fd=descriptor)


def _write_renamed(cache: Path, header: bytes, offsets: npt.NDArray[np.int64]) -> None:
    descriptor, name = tempfile.mkstemp(prefix=cache.name, suffix=".tmp", dir=cache.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o644)
            file.write(header)
            offsets.tofile(file)
        os.replace(name, cache)
    except BaseException:
        os.unlink(name)
        raise
