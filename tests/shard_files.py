"""Writes token files byte by byte, as their formats say, so that tests need no other writer."""

import struct
from pathlib import Path

import numpy as np

MEGATRON_CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}


def megatron_index(lengths, documents, code, pointers=None, version=1):
    """The bytes of an .idx file; pointers follow from the lengths unless given."""
    size = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 8, 7: 4, 8: 2}.get(code, 1)
    if pointers is None:
        pointers = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64) * size)[:-1]])
        pointers = pointers[: len(lengths)]
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", version, code, len(lengths), len(documents))
    return (
        head
        + np.array(lengths, "<i4").tobytes()
        + np.array(pointers, "<i8").tobytes()
        + np.array(documents, "<i8").tobytes()
    )


def write_megatron(prefix, tokens, lengths, documents=None, dtype="uint16"):
    """Writes prefix.bin and prefix.idx; without `documents` every sequence is one."""
    if documents is None:
        documents = range(len(lengths) + 1)
    prefix = Path(prefix)
    prefix.with_name(prefix.name + ".bin").write_bytes(np.array(tokens, dtype).tobytes())
    index = megatron_index(lengths, list(documents), MEGATRON_CODES[dtype])
    prefix.with_name(prefix.name + ".idx").write_bytes(index)
    return prefix


def llmc_bytes(tokens, dtype="uint16", magic=None, version=None, count=None):
    default = {"uint16": (20240520, 1), "uint32": (20240801, 7)}[dtype]
    header = np.zeros(256, "<i4")
    header[0] = default[0] if magic is None else magic
    header[1] = default[1] if version is None else version
    header[2] = len(tokens) if count is None else count
    return header.tobytes() + np.array(tokens, dtype).tobytes()


def documents_of(corpus):
    return [document.tolist() for document in corpus]
