"""The stream of all tokens cut into rows of one length: torch's DataLoader at its cheapest.

No padding and no packing: a row begins and ends anywhere in a document, and boundaries are lost.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch


class FixedRows(torch.utils.data.Dataset[torch.Tensor]):
    """Map-style dataset: item i is tokens [i * seq_len, (i + 1) * seq_len) as int64."""

    def __init__(self, path: Path, dtype: str, seq_len: int) -> None:
        self._tokens = np.memmap(path, dtype, mode="r")
        self._seq_len = seq_len

    def __len__(self) -> int:
        return len(self._tokens) // self._seq_len

    def __getitem__(self, index: int) -> torch.Tensor:
        start = index * self._seq_len
        return torch.from_numpy(self._tokens[start : start + self._seq_len].astype(np.int64))


def fixed_row_loader(
    path: Path, dtype: str, *, batch_size: int, seq_len: int, num_workers: int, seed: int
) -> torch.utils.data.DataLoader[torch.Tensor]:
    """Batches are int64 [batch_size, seq_len] with torch's own collate; rows are shuffled."""
    return torch.utils.data.DataLoader(
        FixedRows(path, dtype, seq_len),
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=num_workers,
        persistent_workers=num_workers > 0,
        multiprocessing_context="fork" if num_workers else None,
        generator=torch.Generator().manual_seed(seed),
    )
