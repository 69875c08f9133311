"""Labels, positions and document numbers of packed tokens: vectorised numpy and torch, and the
collator of transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def numpy_columns(ids: NDArray[np.uint16], cu_seqlens: NDArray[np.int32]) -> dict[str, Any]:
    lengths = np.diff(cu_seqlens)
    labels = ids.astype(np.int64)
    labels[cu_seqlens[:-1]] = -100
    return {
        "labels": labels,
        "position_ids": np.arange(len(ids)) - np.repeat(cu_seqlens[:-1], lengths),
        "document_ids": np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
    }


def torch_columns(ids: torch.Tensor, cu_seqlens: torch.Tensor) -> dict[str, Any]:
    lengths = cu_seqlens.diff()
    labels = ids.to(torch.int64)
    labels[cu_seqlens[:-1]] = -100
    starts = cu_seqlens[:-1].repeat_interleave(lengths, output_size=len(ids))
    numbers = torch.arange(len(lengths), dtype=torch.int32)
    return {
        "labels": labels,
        "position_ids": torch.arange(len(ids)) - starts,
        "document_ids": numbers.repeat_interleave(lengths, output_size=len(ids)),
    }


def flattening_collator() -> Any:
    """transformers' own, which wants lists of numbers, and gives input_ids besides."""
    from transformers import DataCollatorWithFlattening

    return DataCollatorWithFlattening(return_seq_idx=True, return_flash_attn_kwargs=True)
