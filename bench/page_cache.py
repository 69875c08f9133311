"""Putting a file out of the page cache, and looking whether it is."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np


def drop(path: Path) -> None:
    """Drops the file's pages. Pages that a process maps and has touched may stay."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def cached_share(path: Path) -> float:
    """Share of the file's pages that are in memory, as mincore(2) says, 0..1."""
    mapped = np.memmap(path, np.uint8, "r")
    pages = np.zeros(-(-len(mapped) // mmap.PAGESIZE), np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    status = libc.mincore(
        ctypes.c_void_p(mapped.ctypes.data),
        ctypes.c_size_t(len(mapped)),
        ctypes.c_void_p(pages.ctypes.data),
    )
    if status:
        raise OSError(ctypes.get_errno(), f"mincore of {path}")
    return float((pages & 1).mean())
