"""Compares every byte of a folder of shards with the checksums of its manifest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brimful.extras import require
from brimful.shard_layout import BLOCK_BYTES, INDEX_HEADER, FileEntry, Manifest, Shard


@dataclass(frozen=True)
class Damage:
    """A place where the bytes on disk are not those that were written."""

    file: Path
    block: int | None  # of BLOCK_BYTES, in a file of tokens
    documents: range | None  # numbers in the folder's order, where the index can still tell

    def __str__(self) -> str:
        if self.block is None:
            return f"{self.file}: the checksum differs"
        text = f"{self.file}: the checksum of block {self.block} (from byte "
        text += f"{self.block * BLOCK_BYTES}) differs"
        if not self.documents:
            return text
        return f"{text}; it holds tokens of documents {self.documents[0]} to {self.documents[-1]}"


def verify(manifest: Manifest) -> Iterator[Damage]:
    """Read every byte and yield what differs from the checksums; nothing when all is as written.

    Takes a manifest from `brimful.manifest.check`. Reads one block at a time.
    """
    first = 0
    for shard in manifest.shards:
        yield from _verify_shard(manifest.folder, shard, first)
        first += shard.documents


def _verify_shard(folder: Path, shard: Shard, first: int) -> Iterator[Damage]:
    """`first` is the number of the shard's first document."""
    intact = True
    for entry in shard.files[1:]:
        if _hash_file(folder / entry.name) != entry.xxh3:
            intact = intact and entry is not shard.idx
            yield Damage(folder / entry.name, None, None)
    for block in _bad_blocks(folder / shard.bin.name, shard.bin):
        documents = _documents_of(folder, shard, block) if intact else None
        if documents is not None:
            documents = range(first + documents.start, first + documents.stop)
        yield Damage(folder / shard.bin.name, block, documents)


def _hash_file(path: Path) -> str:
    state = require("xxhash", "prepare", "reading checksums").xxh3_64()
    with path.open("rb") as file:
        while data := file.read(BLOCK_BYTES):
            state.update(data)
    return str(state.hexdigest())


def _bad_blocks(path: Path, entry: FileEntry) -> Iterator[int]:
    xxhash = require("xxhash", "prepare", "reading checksums")
    with path.open("rb") as file:
        for block, expected in enumerate(entry.blocks):
            if xxhash.xxh3_64_hexdigest(file.read(BLOCK_BYTES)) != expected:
                yield block


def _documents_of(folder: Path, shard: Shard, block: int) -> range:
    """Documents of the shard with a byte in a block; binary search in the mapped index."""
    index = np.memmap(folder / shard.idx.name, np.uint8, "r")
    at = INDEX_HEADER.size + 4 * shard.sequences
    pointers = index[at : at + 8 * shard.sequences].view("<i8")
    starts = index[at + 8 * shard.sequences :].view("<i8")
    first = bisect_right(pointers, block * BLOCK_BYTES) - 1
    end = bisect_left(pointers, (block + 1) * BLOCK_BYTES)
    return range(bisect_right(starts, first) - 1, bisect_left(starts, end))
