"""Dense document-causal masks: torch's broadcast, and numpy writing only what is seen."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from rivals.masks.block_masks import document_numbers


def by_broadcast(cu_seqlens: torch.Tensor) -> torch.Tensor:
    document = document_numbers(cu_seqlens)
    at = torch.arange(len(document))
    return (document[:, None] == document) & (at[:, None] >= at)


def by_triangles(cu_seqlens: NDArray[np.int32]) -> NDArray[np.bool_]:
    total = int(cu_seqlens[-1])
    mask = np.zeros((total, total), bool)
    lengths = np.diff(cu_seqlens)
    longest = int(lengths.max())
    triangle = np.tri(longest, dtype=bool)
    for begin, length in zip(cu_seqlens.tolist(), lengths.tolist(), strict=False):
        mask[begin : begin + length, begin : begin + length] = triangle[:length, :length]
    return mask
