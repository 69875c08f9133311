"""One shard while it is written: its files have temporary names and are hashed on their way out.

Memory does not grow with the shard: tokens and masks pass through a buffer of one block, lengths
and counts through spools, which are files without a name and so go away with the process.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.extras import require
from brimful.runs import Items, Run
from brimful.shard_layout import (
    BLOCK_BYTES,
    INDEX_HEADER,
    INDEX_MAGIC,
    INDEX_VERSION,
    TEMPORARY_SUFFIX,
    TYPE_CODES,
    FileEntry,
    Shard,
)


class HashedFile:
    """A new file, under a temporary name until it is published."""

    def __init__(self, path: Path, dtype: str, *, keep_blocks: bool = False) -> None:
        xxhash = require("xxhash", "prepare", "writing shards")
        self.path = path
        self.temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
        self._file = self.temporary.open("xb")
        self._digest = xxhash.xxh3_64_hexdigest
        self._whole = xxhash.xxh3_64()
        self._blocks: list[str] | None = [] if keep_blocks else None
        self._buffer = np.empty(BLOCK_BYTES // np.dtype(dtype).itemsize, dtype)
        self._fill = 0  # items in the buffer

    def write(self, values: Items, start: int, stop: int) -> None:
        """Append values[start:stop], cast to the dtype of the file, where they fit."""
        whole = self._buffer.size
        while start < stop:
            n = min(whole - self._fill, stop - start)
            part = values[start : start + n]
            start += n
            if n == whole and part.dtype == self._buffer.dtype and part.flags.c_contiguous:
                self._emit(part)
                continue
            self._buffer[self._fill : self._fill + n] = part
            self._fill += n
            if self._fill == whole:
                self._emit(self._buffer)
                self._fill = 0

    def write_bytes(self, values: npt.NDArray[Any]) -> None:
        """Append an array as it lies in memory, to a file of bytes."""
        self.write(values.view(np.uint8), 0, values.nbytes)

    def _emit(self, block: npt.NDArray[Any]) -> None:
        self._whole.update(block)
        if self._blocks is not None:
            self._blocks.append(self._digest(block))
        self._file.write(block.data)

    def finish(self) -> FileEntry:
        """Bring everything to the disk. The file keeps its temporary name."""
        if self._fill:
            self._emit(self._buffer[: self._fill])
            self._fill = 0
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        self._file.close()
        blocks = tuple(self._blocks or ())
        return FileEntry(self.path.name, size, str(self._whole.hexdigest()), blocks)

    def discard(self) -> None:
        self._file.close()
        self.temporary.unlink(missing_ok=True)


class Spool:
    """Numbers put aside on disk, in order."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._dtype = np.dtype(dtype)

    def extend(self, values: npt.NDArray[np.int64]) -> None:
        self._file.write(values.astype(self._dtype, copy=False).data)

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """All numbers from the first, some at a time. Nothing may be added in between."""
        self._file.seek(0)
        while data := self._file.read(BLOCK_BYTES):
            yield np.frombuffer(data, self._dtype)

    def close(self) -> None:
        self._file.close()


class ShardFile:
    """A shard that takes documents until it is finished, and then waits under temporary names."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self.documents = 0
        self.sequences = 0
        self.tokens = 0
        self._folder = folder
        self._name = name
        self._dtype = np.dtype(dtype)
        self._lengths = Spool(folder, "int32")  # of sequences, in tokens
        self._ends = Spool(folder, "int64")  # of documents, in sequences
        self._effective = Spool(folder, "int64")  # tokens with a label, of documents
        self._bin = HashedFile(folder / f"{name}.bin", dtype, keep_blocks=True)
        self._files = [self._bin]
        self._loss: HashedFile | None = None

    def append(self, run: Run, start: int, stop: int) -> None:
        """Take in documents start to stop of a run; their tokens are known to fit the dtype."""
        if start == stop:
            return
        first = int(run.sequence_ends[start - 1]) if start else 0
        ends = run.sequence_ends[start:stop]
        begin = int(run.token_ends[start - 1]) if start else 0
        end = int(run.token_ends[stop - 1])
        if run.loss_mask is not None and self._loss is None:
            self._loss = HashedFile(self._folder / f"{self._name}.loss.bin", "uint8")
            self._files.append(self._loss)
            self._write_ones(self._loss, self.tokens)
        if run.loss_mask is not None and self._loss is not None:
            self._loss.write(run.loss_mask, begin, end)
        elif self._loss is not None:
            self._write_ones(self._loss, end - begin)
        self._bin.write(run.tokens, begin, end)
        self._lengths.extend(run.sequence_lengths[first : int(ends[-1])])
        self._ends.extend(ends - first + self.sequences)
        self._effective.extend(run.effective(start, stop))
        self.documents += stop - start
        self.sequences += int(ends[-1]) - first
        self.tokens += end - begin

    @staticmethod
    def _write_ones(loss: HashedFile, count: int) -> None:
        loss.write(np.broadcast_to(np.uint8(1), count), 0, count)

    def finish(self) -> Shard:
        idx = HashedFile(self._folder / f"{self._name}.idx", "uint8")
        self._files.append(idx)
        self._write_index(idx)
        if self._loss is not None:
            for counts in self._effective.blocks():
                self._loss.write_bytes(counts)
        entries = {file.path.suffixes[0]: file.finish() for file in self._files}
        for spool in (self._lengths, self._ends, self._effective):
            spool.close()
        return Shard(
            name=self._name,
            documents=self.documents,
            sequences=self.sequences,
            tokens=self.tokens,
            bin=entries[".bin"],
            idx=entries[".idx"],
            loss=entries.get(".loss"),
        )

    def _write_index(self, idx: HashedFile) -> None:
        code = TYPE_CODES[self._dtype.name]
        header = INDEX_HEADER.pack(
            INDEX_MAGIC, INDEX_VERSION, code, self.sequences, self.documents + 1
        )
        idx.write_bytes(np.frombuffer(header, np.uint8))
        for lengths in self._lengths.blocks():
            idx.write_bytes(lengths)
        pointer = 0
        for lengths in self._lengths.blocks():
            ends = pointer + np.cumsum(lengths, dtype=np.int64) * self._dtype.itemsize
            starts = np.concatenate(([pointer], ends[:-1])).astype("int64")
            idx.write_bytes(starts)
            pointer = int(ends[-1])
        idx.write_bytes(np.zeros(1, np.int64))  # the first document begins at sequence 0
        for document_ends in self._ends.blocks():
            idx.write_bytes(document_ends)

    def publish(self) -> Iterator[Path]:
        """Give the files their final names, the index last, and yield each once it has it."""
        for file in sorted(self._files, key=lambda file: file.path.suffix == ".idx"):
            os.rename(file.temporary, file.path)
            yield file.path

    def discard(self) -> None:
        for file in self._files:
            file.discard()
        for spool in (self._lengths, self._ends, self._effective):
            spool.close()
