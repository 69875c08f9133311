"""Kernels by themselves: device time, and bytes moved a second where that is what bounds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import brimful as bf
from brimful import _core
from brimful.kernels import Kernel
from gpu import timing
from gpu.row import Row, span

EXPANDED = {
    "input_ids": torch.int64,
    "labels": torch.int64,
    "position_ids": torch.int64,
    "document_ids": torch.int32,
}
BYTES_A_SLOT = 2 + 28  # uint16 in, these columns out
SIZES = ((16_384, 40), (131_072, 300), (1_048_576, 2400))  # slots, documents
ROWS, WIDTH = 64, 4096  # of padded rows


def offsets(slots: int, documents: int) -> np.ndarray:
    """cu_seqlens of documents of random lengths, the same ones every time."""
    cuts = np.random.default_rng(1).choice(slots - 1, documents - 1, replace=False) + 1
    return np.concatenate([[0], np.sort(cuts), [slots]]).astype(np.int32)


def expansion(slots: int, documents: int) -> tuple[Kernel, Any]:
    """The expand kernel of a batch, and what must live as long as it."""
    cu_seqlens = offsets(slots, documents)
    shape = _core.ParcelShape(segments=documents, total=slots, token_bytes=2)
    block = np.zeros(shape.offsets.bytes, np.uint8)
    parts = (
        (shape.offsets.cu_seqlens, cu_seqlens),
        (shape.offsets.lengths, np.diff(cu_seqlens)),
        (shape.offsets.document_ids, np.arange(documents, dtype=np.int32)),
        (shape.offsets.tokens, np.arange(slots).astype(np.uint16)),
    )
    for at, array in parts:
        block[at : at + array.nbytes] = array.view(np.uint8)
    there = torch.from_numpy(block).to(timing.DEVICE)
    columns = {
        name: torch.empty(slots, dtype=dtype, device=timing.DEVICE)
        for name, dtype in EXPANDED.items()
    }
    addresses = {name: column.data_ptr() for name, column in columns.items()}
    return _core.make_expand(shape, there.data_ptr(), addresses, row=slots), (there, columns)


def measure_expand(sizes: tuple[tuple[int, int], ...] = SIZES) -> list[Row]:
    rows = []
    for slots, documents in sizes:
        kernel, keep = expansion(slots, documents)
        taken = timing.seconds(lambda kernel=kernel: timing.launch(kernel))
        rate = BYTES_A_SLOT * slots / taken / 1e9
        what = f"expand {slots:,} slots of {documents} documents"
        rows.append(Row(what, span(taken), f"{rate:,.0f} GB/s; {BYTES_A_SLOT} B a slot"))
        del keep
    return rows


def measure_unpad(rows: int = ROWS, width: int = WIDTH) -> list[Row]:
    """Padded rows on the device, against indexing by torch: with the wait that both have."""
    lengths = torch.from_numpy(np.random.default_rng(2).integers(width // 4, width, rows))
    mask = (torch.arange(width) < lengths[:, None]).to(timing.DEVICE)
    ids = torch.arange(rows * width, device=timing.DEVICE).reshape(rows, width)
    ours = timing.wall(lambda: bf.unpad(ids, mask))
    torchs = timing.wall(lambda: ids[mask])
    flat = bf.unpad(ids, mask)
    back = timing.wall(lambda: bf.repad(flat.values, flat.cu_seqlens, width=width))
    size = f"{rows} x {width} int64"
    return [
        Row(f"unpad {size}", span(ours), f"host seconds; tensor[mask] {span(torchs)}"),
        Row(f"repad {size}", span(back), "host seconds"),
    ]
