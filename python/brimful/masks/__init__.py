"""Masks and metadata of packed batches, straight from cu_seqlens: pure functions, made natively.

All take cu_seqlens, int `[segments + 1]`: where each segment begins in the flattened batch, from 0
to the number of slots, as a list, a numpy array or a torch tensor in host memory. Nothing is
guessed back from token values or positions. Results are numpy arrays; where an argument of numbers
is a torch tensor they are torch tensors. Segments of no slots are allowed everywhere, so a
cu_seqlens that is padded with its last offset will do.

Where rows are asked for, they are given either as a list of one cu_seqlens a row, all of the same
size, or flattened, with `rows=` to say how many rows of equal size it stands for.

Every function raises PlanError for a cu_seqlens that does not begin at 0, falls, is not
one-dimensional, holds no integers or more than int32 counts, and DeviceError for a tensor that is
not in host memory, unless it says that it takes one.
"""

from brimful.masks.blocks import BlockMaskArrays, block_mask, block_mask_arrays
from brimful.masks.offsets import cu_seqlens
from brimful.masks.per_token import (
    SegmentBounds,
    document_ids,
    labels,
    loss_weights,
    position_ids,
    segment_bounds,
    seq_idx,
    shift_labels,
)
from brimful.masks.square import dense

__all__ = [
    "BlockMaskArrays",
    "SegmentBounds",
    "block_mask",
    "block_mask_arrays",
    "cu_seqlens",
    "dense",
    "document_ids",
    "labels",
    "loss_weights",
    "position_ids",
    "segment_bounds",
    "seq_idx",
    "shift_labels",
]
