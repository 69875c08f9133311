"""The limit: the jobs of a loader as plain C loops, built for the machine they run on.

`FixedRows` and `Varlen` are made once, and each `run(batches)` of them does that many batches in
the calling thread and returns tokens a second. They write into as many buffers as a ring of `depth`
has slots. The compiler is `cc`, or what the environment variable CC names.

    PYTHONPATH=bench python -m rivals.limit
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

FLAGS = ("-O3", "-march=native", "-std=gnu11", "-pthread", "-shared", "-fPIC")
SLOTS_BEYOND_DEPTH = 1
"""A ring holds `depth` batches ready, and the one that its consumer has."""


@functools.cache
def build(source: str) -> ctypes.CDLL:
    """A C file of this folder, compiled. Raises CalledProcessError after the compiler's words."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "limit.so")
        compiler = os.environ.get("CC", "cc")
        path = Path(__file__).with_name(source)
        subprocess.run([compiler, *FLAGS, "-o", built, path], check=True)
        return ctypes.CDLL(str(built))


def library() -> ctypes.CDLL:
    """The loops of limit.c."""
    loops = build("limit.c")
    loops.fill_varlen.restype = ctypes.c_int64
    return loops


def touched(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """Memory that is there already, as a ring's is when it has gone round once."""
    array = np.empty(shape, dtype)
    array.fill(0)
    return array


def pointer(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class FixedRows:
    """`tokens` uint16 [any], read as rows of `seq_len`; all rows in random order, again and again.

    Batches of int64 [batch_size, seq_len].
    """

    def __init__(
        self,
        tokens: npt.NDArray[np.uint16],
        *,
        batch_size: int,
        seq_len: int,
        depth: int = 4,
        seed: int = 17,
    ) -> None:
        self._tokens = tokens
        self._shape = (batch_size, seq_len)
        self._order = np.random.default_rng(seed).permutation(len(tokens) // seq_len)
        self._done = 0  # rows of the order
        self.buffers = touched((depth + SLOTS_BEYOND_DEPTH, batch_size, seq_len), np.int64)

    def run(self, batches: int) -> float:
        batch_size, seq_len = self._shape
        rows = np.arange(self._done, self._done + batches * batch_size) % len(self._order)
        order = self._order[rows]
        self._done += batches * batch_size
        job = library().widen_rows
        begin = time.perf_counter()
        job(
            pointer(self._tokens),
            pointer(order),
            ctypes.c_int64(batches),
            ctypes.c_int64(batch_size),
            ctypes.c_int64(seq_len),
            pointer(self.buffers),
            ctypes.c_int64(len(self.buffers)),
        )
        return batches * batch_size * seq_len / (time.perf_counter() - begin)


class Varlen:
    """Whole documents of `tokens` in random order, end to end, `slots` tokens a batch.

    Document d is tokens [offsets[d], offsets[d + 1]), of one token or more. Columns: input_ids,
    labels, position_ids int64, document_ids int32 [buffers, slots]; cu_seqlens int32.
    """

    def __init__(
        self,
        tokens: npt.NDArray[np.uint16],
        offsets: npt.NDArray[np.int64],
        *,
        slots: int,
        depth: int = 4,
        seed: int = 17,
    ) -> None:
        self._tokens = tokens
        self._offsets = np.ascontiguousarray(offsets, np.int64)
        self._documents = len(offsets) - 1
        # Twice over, so that a run may go past the end.
        self._order = np.tile(np.random.default_rng(seed).permutation(self._documents), 2)
        self._done = 0  # documents of the order
        self._slots = slots
        count = depth + SLOTS_BEYOND_DEPTH
        self.columns = [touched((count, slots), np.int64) for _ in range(3)]
        self.columns.append(touched((count, slots), np.int32))
        self.cu_seqlens = touched((count, slots + 1), np.int32)

    def run(self, batches: int) -> float:
        order = self._order[self._done : self._done + self._documents]
        job = library().fill_varlen
        begin = time.perf_counter()
        taken = job(
            pointer(self._tokens),
            pointer(self._offsets),
            pointer(order),
            ctypes.c_int64(len(order)),
            ctypes.c_int64(batches),
            ctypes.c_int64(self._slots),
            *[pointer(column) for column in self.columns],
            pointer(self.cu_seqlens),
            ctypes.c_int64(len(self.cu_seqlens)),
        )
        seconds = time.perf_counter() - begin
        if taken < 0:
            raise ValueError(f"{batches} batches of {self._slots} tokens are more than there are")
        self._done = (self._done + taken) % self._documents
        return batches * self._slots / seconds
