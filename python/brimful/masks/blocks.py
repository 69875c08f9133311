"""FlexAttention's block masks: their arrays in numpy, and the BlockMask of torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError
from brimful.extras import require
from brimful.masks.arguments import as_block_size, as_rows, as_whole, as_window
from brimful.padding_columns import on_device


class BlockMaskArrays(NamedTuple):
    """The arrays of a FlexAttention BlockMask, int32, for R blocks of queries and C of keys.

    Entries of `*_indices` behind their count are block numbers of no meaning.

    Attributes:
        kv_num_blocks: `[R]`: key blocks that need mask_mod; kv_indices, `[R, C]`, lists them.
        full_kv_num_blocks: `[R]`: key blocks that every pair of is seen; full_kv_indices, `[R, C]`.
        q_num_blocks, full_q_num_blocks: `[C]`: the same seen from the keys; q_indices and
            full_q_indices, `[C, R]`.
    """

    kv_num_blocks: npt.NDArray[np.int32]
    kv_indices: npt.NDArray[np.int32]
    full_kv_num_blocks: npt.NDArray[np.int32]
    full_kv_indices: npt.NDArray[np.int32]
    q_num_blocks: npt.NDArray[np.int32]
    q_indices: npt.NDArray[np.int32]
    full_q_num_blocks: npt.NDArray[np.int32]
    full_q_indices: npt.NDArray[np.int32]


def block_mask_arrays(
    cu_seqlens: Any,
    block_size: int | tuple[int, int] = 128,
    *,
    window: int | None = None,
    prefix_lengths: Any = None,
    rows: int | None = None,
    out: BlockMaskArrays | None = None,
) -> BlockMaskArrays:
    """The arrays of FlexAttention's BlockMask for causal attention inside documents, in numpy.

    Args:
        cu_seqlens: `[segments + 1]`, or a list of them, one a row, all of the same size.
        block_size: slots of a block, or (of queries, of keys).
        window, prefix_lengths, rows: as for `dense`.
        out: arrays of an earlier call of the same sizes, which are written again: new ones cost
            more time than what is written into them.

    Returns:
        BlockMaskArrays; with a leading axis of rows where rows are given.

    Raises:
        PlanError: as for `dense`, and a block size below 1.
    """
    given = as_rows(cu_seqlens, rows, prefix_lengths)
    block_q, block_kv = as_block_size(block_size)
    if out is not None and not isinstance(out, tuple):
        raise PlanError(f"out is a {type(out).__name__}; what an earlier call returned is expected")
    arrays = _core.block_mask_arrays(
        given.cu_seqlens,
        given.number,
        given.rows is not None,
        block_q,
        block_kv,
        as_window(window),
        given.prefix_lengths,
        out,
    )
    return BlockMaskArrays._make(arrays) if out is None else out


def block_mask(
    cu_seqlens: Any,
    block_size: int | tuple[int, int] = 128,
    *,
    window: int | None = None,
    prefix_lengths: Any = None,
    rows: int | None = None,
    total: int | None = None,
    device: Any = None,
) -> Any:
    """FlexAttention's BlockMask for causal attention inside documents, as create_block_mask would
    make it, but in microseconds: every list comes from the lengths, q lists included.

    Its mask_mod looks into tensors whose shape goes by the slots alone, so that flex_attention is
    compiled once, however documents vary.

    On a CUDA device a kernel makes the lists there, on the current stream. In a build without CUDA
    they are made in host memory and copied. Either way nothing waits for the device.

    Args:
        cu_seqlens, block_size, window, prefix_lengths, rows: as for `block_mask_arrays`. Where
            cu_seqlens is a tensor on a CUDA device, it is flattened, prefix_lengths is there too,
            and what they hold is not checked.
        total: slots, for a cu_seqlens on a device. None: its last number, for which the call
            waits.
        device: where the mask shall be, for a cu_seqlens in host memory. None: there as well.

    Returns:
        torch's BlockMask, `[1, 1, total, total]`, or `[rows, 1, L, L]` where rows are given.
        Checked against create_block_mask of torch 2.13.

    Raises:
        PlanError: as for `block_mask_arrays`; `total` or `device` where they say nothing new.
        DeviceError: the launch fails, or this build has no CUDA.
        ModuleNotFoundError: torch is not installed.
    """
    require("torch", "torch", "bf.masks.block_mask")
    size, far = as_block_size(block_size), as_window(window)
    if on_device(cu_seqlens):
        from brimful.masks import device as kernels

        if device is not None:
            raise PlanError(f"cu_seqlens is on {cu_seqlens.device} already: leave device out")
        slots = int(cu_seqlens[-1]) if total is None else as_whole("total", total)
        count = 1 if rows is None else as_whole("rows", rows)
        return kernels.block_mask(cu_seqlens, size, far, prefix_lengths, count, slots)
    if total is not None:
        raise PlanError("cu_seqlens is in host memory and ends at its total: leave total out")
    from brimful.masks import flex

    return flex.block_mask(as_rows(cu_seqlens, rows, prefix_lengths), size, far, device)
