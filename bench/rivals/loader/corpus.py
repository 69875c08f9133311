"""The corpus that all loaders of bench_loader.py read, made once from a seed and kept.

Lognormal lengths (mean 979, median 449, 99 % below 8,251, at most 100,000 tokens), random tokens,
uint16. The same tokens stand in two forms: `rows.npy`, all of them end to end as a matrix of rows
of SEQ_LEN, for jobs without documents; `shards/`, Megatron's .bin and .idx. Rivals convert these
into what they read, in folders beside them.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEQ_LEN = 4096
VOCAB_SIZE = 50_257
TOKENS = 350_000_000
_MEDIAN, _SIGMA, _LONGEST = 449, 1.2515, 100_000


@dataclass(frozen=True)
class Corpus:
    folder: Path

    @property
    def rows_path(self) -> Path:
        return self.folder / "rows.npy"

    @property
    def shards(self) -> Path:
        return self.folder / "shards"

    @property
    def prefix(self) -> Path:
        """Megatron's name for the shard: without .bin or .idx."""
        (path,) = self.shards.glob("*.bin")
        return path.with_suffix("")

    @cached_property
    def rows(self) -> NDArray[np.uint16]:
        """[rows, SEQ_LEN], mapped."""
        mapped: NDArray[np.uint16] = np.load(self.rows_path, mmap_mode="r")
        return mapped

    @cached_property
    def tokens(self) -> NDArray[np.uint16]:
        """The tokens of all documents end to end, mapped."""
        return np.memmap(self.prefix.with_suffix(".bin"), np.uint16, mode="r")

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First token of each document, and behind the last [documents + 1]."""
        mapped: NDArray[np.int64] = np.load(self.folder / "offsets.npy")
        return mapped

    def warm(self) -> None:
        """Reads both forms of the tokens once, so that they are in the page cache."""
        read_all(self.rows_path)
        read_all(self.shards)

    def converted(self, name: str, convert: Callable[[Path], None]) -> Path:
        """The folder `name`, filled by `convert` if it is not there yet; never half filled."""
        folder = self.folder / name
        if not folder.exists():
            unfinished = self.folder / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            convert(unfinished)
            os.rename(unfinished, folder)
        return folder


def read_all(path: Path) -> None:
    """Reads a file, or all files below a folder."""
    for file_path in [path] if path.is_file() else path.rglob("*"):
        if file_path.is_file():
            with file_path.open("rb", buffering=0) as file:
                while file.read(1 << 24):
                    pass


def lengths_of(tokens: int, seed: int = 1) -> NDArray[np.int64]:
    """Lengths of documents that have about this many tokens in all."""
    generator = np.random.default_rng(seed)
    mean = _MEDIAN * math.exp(_SIGMA**2 / 2)
    drawn = generator.lognormal(math.log(_MEDIAN), _SIGMA, int(tokens / mean))
    return drawn.clip(1, _LONGEST).astype(np.int64)


def corpus_at(folder: Path, tokens: int = TOKENS) -> Corpus:
    """The corpus in `folder / <millions of tokens>`, written if it is not there yet."""
    root = Corpus(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return Corpus(root.converted(f"{tokens // 1_000_000}m", lambda path: _write(path, tokens)))


def _write(folder: Path, count: int) -> None:
    import brimful as bf

    lengths = lengths_of(count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    np.save(folder / "offsets.npy", offsets)
    tokens = np.random.default_rng(2).integers(0, VOCAB_SIZE, offsets[-1], np.uint16)
    with bf.ShardWriter(folder / "shards", dtype="uint16") as writer:
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            writer.add(tokens[begin:end])
    rows = len(tokens) // SEQ_LEN
    np.save(folder / "rows.npy", tokens[: rows * SEQ_LEN].reshape(rows, SEQ_LEN))
