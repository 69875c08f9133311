"""Reads what a writer left by Megatron's published layout, with nothing of brimful's."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np

HEADER = 34


def read_pair(path: Path) -> dict[str, Any]:
    """A Megatron pair read by its published layout, with nothing of brimful's."""
    index = path.with_suffix(".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code = int.from_bytes(index[9:17], "little"), index[17]
    sequences = int.from_bytes(index[18:26], "little")
    documents = int.from_bytes(index[26:34], "little")
    assert version == 1
    assert len(index) == HEADER + 12 * sequences + 8 * documents
    dtype = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}[code]
    at = HEADER + 4 * sequences
    return {
        "lengths": np.frombuffer(index[HEADER:at], "<i4"),
        "pointers": np.frombuffer(index[at : at + 8 * sequences], "<i8"),
        "documents": np.frombuffer(index[at + 8 * sequences :], "<i8"),
        "tokens": np.frombuffer(path.with_suffix(".bin").read_bytes(), dtype),
        "dtype": np.dtype(dtype).name,
    }


def read_documents(folder: Path) -> list[list[int]]:
    found = []
    for path in sorted(folder.glob("*.idx")):
        pair = read_pair(path)
        ends = np.concatenate(([0], np.cumsum(pair["lengths"], dtype=np.int64)))
        item = np.dtype(pair["dtype"]).itemsize
        assert pair["pointers"].tolist() == (ends[:-1] * item).tolist()
        starts = ends[pair["documents"]]
        assert starts[-1] == pair["tokens"].size
        found += [pair["tokens"][a:b].tolist() for a, b in itertools.pairwise(starts)]
    return found


def read_masks(folder: Path) -> tuple[list[int], list[int]]:
    """All masks and all counts of effective tokens, of shards that have them."""
    masks: list[int] = []
    counts: list[int] = []
    for path in sorted(folder.glob("*.loss.bin")):
        tokens = read_pair(path.with_suffix("").with_suffix(".idx"))["tokens"].size
        data = path.read_bytes()
        masks += data[:tokens]
        counts += np.frombuffer(data[tokens:], "<i8").tolist()
    return masks, counts


def leftovers(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []
