"""How much of a file is in the page cache, asked of the system without reading it."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable

import numpy as np

_CHUNK = 1 << 30  # mapped at a time; the answer has a byte a page
_MOST_CHUNKS = 64  # asked of a file, evenly spread


def resident_share(paths: Iterable[str]) -> float | None:
    """Share of the files' bytes that is in memory, 0..1; None where the system does not tell.

    It tells only whoever may write to a file, or owns it. Of files above 64 GiB stretches are
    looked at, evenly spread.
    """
    asked = resident = 0.0
    for path in paths:
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            if status.st_uid != os.geteuid() and not os.access(path, os.W_OK):
                return None
            share = _share(file, status.st_size)
        finally:
            os.close(file)
        if share is None:
            return None
        asked += status.st_size
        resident += share * status.st_size
    return resident / asked if asked else None


def _share(file: int, size: int) -> float | None:
    chunks = range(0, size, _CHUNK)
    pages = found = 0
    for first in chunks[:: max(1, len(chunks) // _MOST_CHUNKS)]:
        length = min(_CHUNK, size - first)
        held = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
        try:
            # A private mapping: ctypes asks for one that could be written to, and nobody does.
            mapping = mmap.mmap(file, length, access=mmap.ACCESS_COPY, offset=first)
        except (OSError, ValueError):  # no memory to map it, or the file was cut meanwhile
            return None
        with mapping as mapped:
            start = ctypes.c_char.from_buffer(mapped)
            failed = _libc.mincore(
                ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(length), held
            )
            del start  # or the mapping could not be closed
        if failed:
            return None
        pages += len(held)
        found += int(np.count_nonzero(np.frombuffer(bytes(held), np.uint8) & 1))
    return found / pages if pages else 1.0


_libc = ctypes.CDLL(None)
