"""Block masks made in a device's memory by a kernel, on the current stream, without waiting for it.

What cu_seqlens holds there is not looked at first: a wrong one gives a wrong mask, and harms no
memory.
"""

from __future__ import annotations

import torch
from torch.nn.attention.flex_attention import BlockMask

from brimful import _core
from brimful._core import PlanError
from brimful.kernels import launch
from brimful.masks.blocks import BlockMaskArrays
from brimful.masks.flex import make_mask


def block_mask(
    cu_seqlens: torch.Tensor,
    block_size: tuple[int, int],
    window: int | None,
    prefix_lengths: torch.Tensor | None,
    rows: int,
    total: int,
) -> BlockMask:
    """As `masks.block_mask`; cu_seqlens is of the flattened batch, and both tensors are integers
    in the device's memory.
    """
    if rows < 1 or total < 0 or total % rows:
        raise PlanError(f"{total} slots are not {rows} rows of equal size")
    _core.check_rule(window, None)
    offsets = _plain(cu_seqlens, torch.int32)
    prefixes = None if prefix_lengths is None else _plain(prefix_lengths, torch.int64)
    if prefixes is not None and len(prefixes) != len(offsets) - 1:
        raise PlanError(
            f"there are {len(prefixes)} prefixes of {len(offsets) - 1} segments: give one a segment"
        )
    width = total // rows
    q, kv = (_core.count_blocks(width, size) for size in block_size)
    shapes = [(rows, 1, q), (rows, 1, q, kv)] * 2 + [(rows, 1, kv), (rows, 1, kv, q)] * 2
    lists = {
        name: offsets.new_empty(shape)
        for name, shape in zip(BlockMaskArrays._fields, shapes, strict=True)
    }
    bounds = {"begin": offsets.new_empty((rows, width))}
    if prefixes is not None:
        bounds["prefix_end"] = offsets.new_empty((rows, width))
    if total:
        kernel = _core.make_block_mask(
            offsets.data_ptr(),
            segments=len(offsets) - 1,
            rows=rows,
            length=width,
            block_q=block_size[0],
            block_kv=block_size[1],
            out={name: tensor.data_ptr() for name, tensor in (lists | bounds).items()},
            window=0 if window is None else window,
            prefix_lengths=0 if prefixes is None else prefixes.data_ptr(),
        )
        launch(kernel, offsets.device)
    return make_mask(lists, bounds["begin"], bounds.get("prefix_end"), block_size, window)


def _plain(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[numbers], end to end."""
    if tensor.ndim != 1 or tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise PlanError(
            f"a tensor of the shape {list(tensor.shape)} and the dtype {tensor.dtype} is given; "
            "integers of one dimension are expected"
        )
    return tensor.detach().to(dtype).contiguous()
