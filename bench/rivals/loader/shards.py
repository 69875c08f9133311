"""A small corpus for bench_fill.py: one pair of shards, known by its seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import brimful as bf

DOCUMENTS = 20_000
SEQ_LEN = 4096
DTYPE = "uint16"


@dataclass(frozen=True)
class Shards:
    """Lognormal lengths, 600 tokens on average, at most SEQ_LEN; random tokens."""

    folder: Path

    @property
    def bin_path(self) -> Path:
        """The tokens end to end, without a header."""
        (path,) = self.folder.glob("*.bin")
        return path

    @cached_property
    def corpus(self) -> bf.Corpus:
        return bf.open(self.folder)

    @cached_property
    def tokens(self) -> NDArray[np.uint16]:
        """The same file as a numpy map."""
        return np.memmap(self.bin_path, DTYPE, mode="c")  # torch wants to be able to write

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """First token of each document in the file [documents]."""
        lengths = self.corpus.lengths
        return np.cumsum(lengths) - lengths


def write_shards(folder: Path, *, seed: int = 1) -> Shards:
    """About 12 million tokens, 24 MB."""
    rng = np.random.default_rng(seed)
    lengths = rng.lognormal(math.log(600) - 0.5, 1.0, DOCUMENTS).astype(np.int64)
    shards = Shards(folder)
    with bf.ShardWriter(folder, dtype=DTYPE) as writer:
        for length in np.clip(lengths, 1, SEQ_LEN).tolist():
            writer.add(rng.integers(0, 50_000, length, dtype=np.uint16))
    return shards
