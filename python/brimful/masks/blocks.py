"""FlexAttention's block masks: their arrays in numpy, and the BlockMask of torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError
from brimful.extras import require
from brimful.masks.arguments import as_block_size, as_rows, as_window


class BlockMaskArrays(NamedTuple):
    """The arrays of a FlexAttention BlockMask, int32, for R blocks of queries and C of keys.

    Entries of `*_indices` behind their count are block numbers of no meaning.
    """

    kv_num_blocks: npt.NDArray[np.int32]  # [R]: key blocks that need mask_mod
    kv_indices: npt.NDArray[np.int32]  # [R, C]
    full_kv_num_blocks: npt.NDArray[np.int32]  # [R]: key blocks that every pair of is seen
    full_kv_indices: npt.NDArray[np.int32]  # [R, C]
    q_num_blocks: npt.NDArray[np.int32]  # [C]: and seen from the keys
    q_indices: npt.NDArray[np.int32]  # [C, R]
    full_q_num_blocks: npt.NDArray[np.int32]  # [C]
    full_q_indices: npt.NDArray[np.int32]  # [C, R]


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
    width = _core.check_rows(given.cu_seqlens, given.number)
    q = _core.count_blocks(width, block_q)
    kv = _core.count_blocks(width, block_kv)
    kv_lists = [(*given.axes, q), (*given.axes, q, kv)]
    q_lists = [(*given.axes, kv), (*given.axes, kv, q)]
    shapes = kv_lists * 2 + q_lists * 2
    if out is None:
        out = BlockMaskArrays(*(np.zeros(shape, np.int32) for shape in shapes))
    else:
        _check_out(out, shapes)
    _core.write_block_mask(
        given.cu_seqlens,
        given.number,
        block_q,
        block_kv,
        as_window(window),
        given.prefix_lengths,
        list(out),
    )
    return out


def block_mask(
    cu_seqlens: Any,
    block_size: int | tuple[int, int] = 128,
    *,
    window: int | None = None,
    prefix_lengths: Any = None,
    rows: int | None = None,
    device: Any = None,
) -> Any:
    """FlexAttention's BlockMask for causal attention inside documents, as create_block_mask would
    make it, but in microseconds: every list comes from the lengths, q lists included.

    Its mask_mod looks into tensors whose shape goes by the slots alone, so that flex_attention is
    compiled once, however documents vary.

    Args:
        cu_seqlens, block_size, window, prefix_lengths, rows: as for `block_mask_arrays`.
        device: where the mask shall be. None: where cu_seqlens is.

    Returns:
        torch's BlockMask, `[1, 1, total, total]`, or `[rows, 1, L, L]` where rows are given.
        Checked against create_block_mask of torch 2.13.

    Raises:
        PlanError: as for `block_mask_arrays`.
        ModuleNotFoundError: torch is not installed.
    """
    require("torch", "torch", "bf.masks.block_mask")
    from brimful.masks import flex

    given = as_rows(cu_seqlens, rows, prefix_lengths)
    return flex.block_mask(given, as_block_size(block_size), as_window(window), device)


def _check_out(out: Any, shapes: list[tuple[int, ...]]) -> None:
    if not isinstance(out, BlockMaskArrays):
        raise PlanError(f"out is a {type(out).__name__}; what an earlier call returned is expected")
    for name, array, shape in zip(out._fields, out, shapes, strict=True):
        fits = isinstance(array, np.ndarray) and array.dtype == np.int32 and array.shape == shape
        if not (fits and array.flags.c_contiguous and array.flags.writeable):
            raise PlanError(
                f"out.{name} is {getattr(array, 'dtype', type(array))} "
                f"{list(np.shape(array))}; int32 {list(shape)}, contiguous and writable, expected"
            )
