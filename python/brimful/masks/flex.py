"""torch's BlockMask from cu_seqlens. Imported once one is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.attention.flex_attention import BlockMask

from brimful import _core
from brimful.masks.arguments import Rows
from brimful.masks.blocks import block_mask_arrays


def block_mask(
    given: Rows, block_size: tuple[int, int], window: int | None, device: Any
) -> BlockMask:
    """The BlockMask by its constructor: given the q lists too, torch has nothing to transpose."""
    rows = given.number
    arrays = block_mask_arrays(
        given.cu_seqlens,
        block_size,
        window=window,
        prefix_lengths=given.prefix_lengths,
        rows=rows,
    )
    width = int(given.cu_seqlens[-1]) // rows
    begin = np.empty((rows, width), np.int32)
    prefix_end = None if given.prefix_lengths is None else np.empty_like(begin)
    _core.write_bounds(given.cu_seqlens, rows, given.prefix_lengths, begin, None, prefix_end)

    def placed(array: npt.NDArray[np.int32]) -> Any:
        tensor = torch.from_numpy(array)
        return tensor if device is None else tensor.to(device)

    def by_query(column: npt.NDArray[np.int32]) -> Any:
        tensor = placed(column if rows > 1 else column[0])
        return (lambda b, q: tensor[b, q]) if rows > 1 else (lambda b, q: tensor[q])

    see = _mask_mod(by_query(begin), None if prefix_end is None else by_query(prefix_end), window)
    lists: dict[str, Any] = {
        name: placed(array[:, None]) for name, array in arrays._asdict().items()
    }
    return BlockMask((width, width), **lists, BLOCK_SIZE=block_size, mask_mod=see)


def _mask_mod(begin: Any, prefix_end: Any, window: int | None) -> Any:
    """Whether query q sees key k. `begin(b, q)` and `prefix_end(b, q)` look into tensors whose
    shape goes by slots; nothing else that it closes over varies from batch to batch, so that
    flex_attention is compiled once. A single row is that of every b.
    """

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        seen = k <= q
        if window is not None:
            seen = seen & (q - k < window)
        if prefix_end is not None:
            seen = seen | (k < prefix_end(b, q))
        return seen & (k >= begin(b, q))

    return mask_mod
