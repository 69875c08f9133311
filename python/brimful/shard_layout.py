"""What a folder of shards is made of: names, codes and headers of its files, and the records of
its manifest. A shard is a Megatron pair `<name>.bin` and `<name>.idx`, with `<name>.loss.bin` where
loss masks were given: uint8 [tokens] in .bin order, then int64 [documents] counts of effective
tokens.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
BLOCK_BYTES = 1 << 20
TEMPORARY_SUFFIX = ".brimful-tmp"

# Megatron's codes for the types of tokens; it has none for uint32.
TYPE_CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
INDEX_MAGIC = b"MMIDIDX\x00\x00"
INDEX_VERSION = 1
# Magic, version, type code, sequences, documents + 1. After it come int32 [sequences] lengths in
# tokens, int64 [sequences] pointers in bytes, and int64 [documents + 1] numbers of sequences.
INDEX_HEADER = struct.Struct("<9sQBQQ")


def disk_dtype(dtype: npt.DTypeLike) -> str:
    """numpy's name of a dtype that shards can have. Never a default."""
    try:
        name = np.dtype(dtype).name if dtype is not None else None
    except TypeError:
        name = None
    if name in TYPE_CODES:
        return name
    advice = "; its tokens go into int32 or int64" if name == "uint32" else ""
    raise FormatError(f"dtype={dtype!r}: shards hold {', '.join(TYPE_CODES)}{advice}")


def index_bytes(sequences: int, documents: int) -> int:
    """Size of an index."""
    return INDEX_HEADER.size + 12 * sequences + 8 * (documents + 1)


@dataclass(frozen=True)
class FileEntry:
    """A file of the folder: its size, the xxh3 of its bytes and, for tokens, of every block."""

    name: str
    bytes: int
    xxh3: str  # 64 bits as 16 hexadecimal digits
    blocks: tuple[str, ...] = field(
        default=(), repr=False
    )  # one a BLOCK_BYTES, the last is shorter

    def to_json(self) -> dict[str, Any]:
        known = {"name": self.name, "bytes": self.bytes, "xxh3": self.xxh3}
        return known | ({"blocks": list(self.blocks)} if self.blocks else {})


@dataclass(frozen=True)
class Shard:
    """One Megatron pair, and its loss masks where there are any."""

    name: str
    documents: int
    sequences: int
    tokens: int
    bin: FileEntry
    idx: FileEntry
    loss: FileEntry | None = None

    @property
    def files(self) -> tuple[FileEntry, ...]:
        return (self.bin, self.idx) + (() if self.loss is None else (self.loss,))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "documents": self.documents,
            "sequences": self.sequences,
            "tokens": self.tokens,
            "files": [entry.to_json() for entry in self.files],
        }


@dataclass(frozen=True)
class Manifest:
    """What a finished folder of shards holds; the order of the shards is that of the documents."""

    folder: Path
    dtype: str
    shards: tuple[Shard, ...]
    brimful: str  # the version that wrote it
    tokenizer: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] | None = None
    sources: tuple[Mapping[str, Any], ...] = ()  # the corpora that `extend` took in, in order

    @property
    def documents(self) -> int:
        return sum(shard.documents for shard in self.shards)

    @property
    def sequences(self) -> int:
        return sum(shard.sequences for shard in self.shards)

    @property
    def tokens(self) -> int:
        return sum(shard.tokens for shard in self.shards)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "brimful": self.brimful,
            "dtype": self.dtype,
            "documents": self.documents,
            "sequences": self.sequences,
            "tokens": self.tokens,
            "block_bytes": BLOCK_BYTES,
            "tokenizer": self.tokenizer,
            "provenance": self.provenance,
            "sources": list(self.sources),
            "shards": [shard.to_json() for shard in self.shards],
        }
