"""Parcels for tests, what they must expand to, and a kernel's answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from brimful import _core
from places import Cuda, Host

IGNORE = -100
PAD = 7
DTYPES = {
    "input_ids": np.int64,
    "labels": np.int64,
    "shift_labels": np.int64,
    "position_ids": np.int64,
    "document_ids": np.int32,
    "loss_weights": np.float32,
    "segment_begin": np.int32,
    "segment_end": np.int32,
}


@dataclass(frozen=True)
class Parcel:
    """As csrc/device/parcel.hpp has it, with a bool a slot for its bits."""

    cu_seqlens: Any
    lengths: Any
    document_ids: Any
    tokens: Any  # uint16, uint32 or int64 [total]
    row: int
    first_positions: Any = None
    next_tokens: Any = None
    labelled: Any = None

    @property
    def total(self) -> int:
        return len(self.tokens)

    def shape(self) -> _core.ParcelShape:
        return _core.ParcelShape(
            segments=len(self.lengths),
            total=self.total,
            token_bytes=self.tokens.itemsize,
            first_positions=self.first_positions is not None,
            next_tokens=self.next_tokens is not None,
            label_bits=self.labelled is not None,
        )

    def block(self) -> np.ndarray:
        """The bytes that travel."""
        at = self.shape().offsets
        block = np.full(at.bytes, 0xEE, np.uint8)

        def put(offset: int, array: Any, dtype: Any) -> None:
            if array is not None:
                flat = np.ascontiguousarray(array, dtype).view(np.uint8)
                block[offset : offset + len(flat)] = flat

        put(at.cu_seqlens, self.cu_seqlens, np.int32)
        put(at.lengths, self.lengths, np.int32)
        put(at.document_ids, self.document_ids, np.int32)
        put(at.first_positions, self.first_positions, np.int64)
        put(at.next_tokens, self.next_tokens, np.int64)
        if self.labelled is not None:
            words = -(-self.total // 32) * 4
            bits = np.packbits(self.labelled, bitorder="little")
            put(at.label_bits, np.pad(bits, (0, words - len(bits))), np.uint8)
        put(at.tokens, self.tokens, self.tokens.dtype)
        return block


def expected(parcel: Parcel, *, weigh_shifted: bool = False) -> dict[str, np.ndarray]:
    """The columns of a parcel, segment by segment, in the words of the glossary."""
    out = {name: np.zeros(parcel.total, dtype) for name, dtype in DTYPES.items()}
    ids, labels, shifted = out["input_ids"], out["labels"], out["shift_labels"]
    ids[:], labels[:], shifted[:], out["document_ids"][:] = PAD, IGNORE, IGNORE, -1
    cu = np.asarray(parcel.cu_seqlens, np.int64)
    for s, (begin, end) in enumerate(itertools.pairwise(cu)):
        first = 0 if parcel.first_positions is None else parcel.first_positions[s]
        out["position_ids"][begin:end] = first + np.arange(end - begin)
        if end > begin:
            row = begin // parcel.row * parcel.row
            out["segment_begin"][begin:end] = begin - row
            out["segment_end"][begin:end] = end - row
        real = int(parcel.lengths[s])
        if parcel.document_ids[s] < 0 or not real:
            continue
        tokens = parcel.tokens[begin : begin + real].astype(np.int64)
        trained = np.ones(real, bool)
        if parcel.labelled is not None:
            trained[:] = parcel.labelled[begin : begin + real]
        ids[begin : begin + real] = tokens
        labels[begin + 1 : begin + real] = np.where(trained, tokens, IGNORE)[1:]
        shifted[begin : begin + real - 1] = labels[begin + 1 : begin + real]
        if parcel.next_tokens is not None:
            shifted[begin + real - 1] = parcel.next_tokens[s]
        out["document_ids"][begin : begin + real] = parcel.document_ids[s]
    out["loss_weights"][:] = (shifted if weigh_shifted else labels) != IGNORE
    return out


def expand(
    parcel: Parcel,
    place: Host | Cuda,
    *,
    columns: Iterable[str] = tuple(DTYPES),
    cp_size: int = 1,
    cp_rank: int = 0,
    per_document: bool = False,
    weigh_shifted: bool = False,
) -> dict[str, np.ndarray]:
    """What the kernel makes of it."""
    rooms = {name: place.room(parcel.total // cp_size, DTYPES[name]) for name in columns}
    kernel = _core.make_expand(
        parcel.shape(),
        place.give(parcel.block()),
        rooms,
        row=parcel.row,
        pad_token_id=PAD,
        weigh_shifted=weigh_shifted,
        cp_size=cp_size,
        cp_rank=cp_rank,
        per_document=per_document,
    )
    place.run(kernel)
    return {name: place.take(address) for name, address in rooms.items()}


def check(found: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    """Bit for bit."""
    for name, column in found.items():
        assert column.dtype == want[name].dtype
        assert column.tobytes() == want[name].tobytes(), name
