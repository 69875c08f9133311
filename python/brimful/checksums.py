"""The checksums of manifests, for loaders that compare what they read with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from brimful import _core, manifest
from brimful._core import FormatError, PlanError
from brimful.corpus import Corpus
from brimful.shard_layout import MANIFEST, FileEntry, Shard

_ADVICE = (
    'verify="checksum" needs shards with a manifest, as brimful.ShardWriter and `brimful prepare` '
    "write them; leave verify out for other tokens"
)


def block_checks(corpus: Corpus) -> _core.BlockChecks:
    """What every file of a corpus must be. Compares indices and loss masks, and reads no tokens.

    Raises:
        PlanError: a file has no checksums.
        FormatError: a manifest cannot be read, or speaks of a file of another size.
        ReadError: an index or a loss mask is not what was written.
    """
    folders: dict[Path, dict[str, Shard]] = {}
    checksums = []
    for part in corpus._parts:
        for store in part.stores:
            if not store.in_file:
                raise PlanError(f"source {part.name!r} is in memory; {_ADVICE}")
            path = Path(store.name)
            if path.parent not in folders:
                folders[path.parent] = _shards(path.parent)
            shard = folders[path.parent].get(path.name)
            if shard is None:
                raise PlanError(f"{path}: no {MANIFEST} beside it names it; {_ADVICE}")
            _check_size(path, shard.bin)
            loss = None if shard.loss is None else int(shard.loss.xxh3, 16)
            checksums.append((_blocks(shard), int(shard.idx.xxh3, 16), loss))
    return _core.BlockChecks(corpus._native, checksums)


def _shards(folder: Path) -> dict[str, Shard]:
    if not (folder / MANIFEST).exists():
        return {}
    return {shard.bin.name: shard for shard in manifest.read(folder).shards}


def _blocks(shard: Shard) -> npt.NDArray[np.uint64]:
    return np.array([int(block, 16) for block in shard.bin.blocks], np.uint64)


def _check_size(path: Path, entry: FileEntry) -> None:
    size = path.stat().st_size
    if size != entry.bytes:
        raise FormatError(f"{path}: {size} bytes, expected {entry.bytes} by {MANIFEST}")
