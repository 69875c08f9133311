"""Block masks: the kernel, the whole call, and torch's create_block_mask, compiled."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch.nn.attention.flex_attention import create_block_mask

import brimful as bf
from brimful import _core
from brimful.kernels import Kernel
from gpu import timing
from gpu.kernels import offsets
from gpu.row import Row, span

NAMES = bf.masks.BlockMaskArrays._fields
SIZES = ((32_768, 80, None), (131_072, 300, None), (131_072, 1, None), (131_072, 1, 4096))
COMPILED = ((32_768, 80), (131_072, 300))


def mask_kernel(slots: int, documents: int, window: int | None) -> tuple[Kernel, Any]:
    """The block mask's kernel, and what must live as long as it."""
    cu_seqlens = torch.from_numpy(offsets(slots, documents)).to(timing.DEVICE)
    blocks = -(-slots // 128)
    lists = {
        name: torch.empty(
            blocks if name.endswith("num_blocks") else blocks * blocks,
            dtype=torch.int32,
            device=timing.DEVICE,
        )
        for name in NAMES
    }
    kernel = _core.make_block_mask(
        cu_seqlens.data_ptr(),
        segments=documents,
        rows=1,
        length=slots,
        block_q=128,
        block_kv=128,
        out={name: array.data_ptr() for name, array in lists.items()},
        window=window or 0,
    )
    return kernel, (cu_seqlens, lists)


def measure_kernel(sizes: tuple[tuple[int, int, int | None], ...] = SIZES) -> list[Row]:
    rows = []
    for slots, documents, window in sizes:
        kernel, keep = mask_kernel(slots, documents, window)
        taken = timing.seconds(lambda kernel=kernel: timing.launch(kernel))
        note = "all eight arrays" + (f", window {window}" if window else "")
        rows.append(Row(f"block mask, {slots:,} slots, {documents} documents", span(taken), note))
        del keep
    return rows


def measure_calls(sizes: tuple[tuple[int, int], ...] = COMPILED) -> list[Row]:
    """From cu_seqlens in host memory to a BlockMask on the device."""
    rows = []
    for slots, documents in sizes:
        cu_seqlens = offsets(slots, documents)
        ours = timing.wall(lambda cu=cu_seqlens: bf.masks.block_mask(cu, device=timing.DEVICE))
        lengths = np.diff(cu_seqlens)
        ids = np.repeat(np.arange(documents, dtype=np.int32), lengths)
        document = torch.from_numpy(ids).to(timing.DEVICE)

        def see(b: Any, h: Any, q: Any, k: Any, document: torch.Tensor = document) -> Any:
            return (q >= k) & (document[q] == document[k])

        make = torch.compile(create_block_mask)

        def torchs(make: Any = make, see: Any = see, slots: int = slots) -> Any:
            return make(see, 1, 1, slots, slots, device=timing.DEVICE)

        start = time.perf_counter()
        torchs()
        timing.synchronize()
        first = time.perf_counter() - start
        theirs = timing.wall(torchs, 5)
        size = f"{slots:,} slots, {documents} documents"
        rows.append(Row(f"bf.masks.block_mask, {size}", span(ours), "host seconds"))
        note = f"host seconds; its first call {span(first)}"
        rows.append(Row(f"create_block_mask compiled, {size}", span(theirs), note))
    return rows
