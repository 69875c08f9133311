"""Mends a Megatron index whose pointers were summed wrong, which the lengths beside them tell.

Nothing but the pointers changes, and only where lengths and the size of the tokens agree.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import numpy as np

from brimful._core import FormatError
from brimful.shard_layout import INDEX_HEADER, INDEX_MAGIC, INDEX_VERSION, TYPE_CODES, index_bytes

_DTYPES = {code: np.dtype(name) for name, code in TYPE_CODES.items()}


def rebuild_pointers(index: str | os.PathLike[str]) -> int:
    """Write the pointers of an .idx file again from its lengths.

    The new index takes the place of the old one in one step. `brimful.open` checks the rest.

    Returns:
        How many pointers were wrong; 0 leaves the file alone.

    Raises:
        FormatError: no Megatron index, or lengths that do not add up to the size of the .bin file.
        FileNotFoundError: the .idx or the .bin file is not there.
    """
    path = Path(index)
    data = bytearray(path.read_bytes())
    if len(data) < INDEX_HEADER.size:
        raise FormatError(f"{path}: {len(data)} bytes; a Megatron index has at least 34")
    magic, version, code, sequences, entries = INDEX_HEADER.unpack_from(data)
    if (magic, version) != (INDEX_MAGIC, INDEX_VERSION) or code not in _DTYPES or entries == 0:
        raise FormatError(f"{path}: not a Megatron index of tokens")
    if len(data) != index_bytes(sequences, entries - 1):
        raise FormatError(
            f"{path}: {len(data)} bytes, expected {index_bytes(sequences, entries - 1)} for "
            f"{sequences} sequences and {entries} document entries"
        )
    lengths = np.frombuffer(data, "<i4", sequences, INDEX_HEADER.size)
    pointers = np.frombuffer(data, "<i8", sequences, INDEX_HEADER.size + 4 * sequences)
    ends = np.cumsum(lengths, dtype=np.int64) * _DTYPES[code].itemsize
    size = path.with_suffix(".bin").stat().st_size
    if (lengths < 0).any() or (ends[-1] if sequences else 0) != size:
        raise FormatError(
            f"{path}: its lengths do not add up to the {size} bytes of "
            f"{path.with_suffix('.bin').name}, so they cannot tell where sequences begin"
        )
    right = ends - lengths * np.int64(_DTYPES[code].itemsize)
    wrong = int(np.count_nonzero(right != pointers))
    if wrong:
        pointers[:] = right
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    return wrong
