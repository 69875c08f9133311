"""torch's BlockMask from cu_seqlens. Imported once one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
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
    """In host memory, or on a device: made on one by a kernel where there is one, of cu_seqlens
    alone, and copied to it elsewhere. Nothing waits for the device.
    """
    if has_kernel(device):
        from brimful.masks import device as kernels

        _core.check_rows(given.cu_seqlens, given.number)
        _core.check_rule(window, given.prefix_lengths)
        offsets = torch.from_numpy(given.cu_seqlens).to(device, non_blocking=True)
        prefixes = given.prefix_lengths
        there = (
            None if prefixes is None else torch.from_numpy(prefixes).to(device, non_blocking=True)
        )
        total = int(given.cu_seqlens[-1])
        return kernels.block_mask(offsets, block_size, window, there, given.number, total)
    arrays = block_mask_arrays(
        given.cu_seqlens,
        block_size,
        window=window,
        prefix_lengths=given.prefix_lengths,
        rows=given.number,
    )
    width = int(given.cu_seqlens[-1]) // given.number
    begin = np.empty((given.number, width), np.int32)
    prefix_end = None if given.prefix_lengths is None else np.empty_like(begin)
    _core.write_bounds(
        given.cu_seqlens, given.number, given.prefix_lengths, begin, None, prefix_end
    )

    def placed(array: npt.NDArray[np.int32]) -> torch.Tensor:
        tensor = torch.from_numpy(array)
        return tensor if device is None else tensor.to(device, non_blocking=True)

    return make_mask(
        {name: placed(array[:, None]) for name, array in arrays._asdict().items()},
        placed(begin),
        None if prefix_end is None else placed(prefix_end),
        block_size,
        window,
    )


def has_kernel(device: Any) -> bool:
    """Whether this build makes masks there."""
    is_cuda = device is not None and torch.device(device).type == "cuda"
    return is_cuda and _core.device_available()


def make_mask(
    lists: Mapping[str, torch.Tensor],
    begin: torch.Tensor,
    prefix_end: torch.Tensor | None,
    block_size: tuple[int, int],
    window: int | None,
) -> BlockMask:
    """The BlockMask by its constructor: given the q lists too, torch has nothing to transpose.

    Args:
        lists: torch's eight, of the shapes [rows, 1, R], [rows, 1, R, C] and so on.
        begin, prefix_end: [rows, L], where the segment of each query begins, and where its prefix
            ends.
    """
    named: dict[str, Any] = dict(lists)
    return BlockMask(
        (begin.shape[1], begin.shape[1]),
        **named,
        BLOCK_SIZE=block_size,
        mask_mod=_mask_mod(
            _by_query(begin), None if prefix_end is None else _by_query(prefix_end), window
        ),
    )


def _by_query(column: torch.Tensor) -> Any:
    """What the column says of query q of batch row b. A single row is that of every b."""
    if len(column) == 1:
        one = column[0]
        return lambda b, q: one[q]
    return lambda b, q: column[b, q]


def _mask_mod(begin: Any, prefix_end: Any, window: int | None) -> Any:
    """Whether query q sees key k. `begin(b, q)` and `prefix_end(b, q)` look into tensors whose
    shape goes by slots; nothing else that it closes over varies from batch to batch, so that
    flex_attention is compiled once.
    """

    def mask_mod(b: Any, h: Any, q: Any, k: Any) -> Any:
        seen = k <= q
        if window is not None:
            seen = seen & (q - k < window)
        if prefix_end is not None:
            seen = seen | (k < prefix_end(b, q))
        return seen & (k >= begin(b, q))

    return mask_mod
