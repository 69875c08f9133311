"""The usual way to feed documents, as a yardstick: torch's DataLoader, one document a row, padded.

Documents longer than a row are cut into several rows, so that both loaders deliver every token.
Each batch is padded to its longest row, the kinder of the two usual rules (the other pads all rows
to the same length). Counts travel with the batch: measuring must not cost the consumer time.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

import brimful as bf


class Documents(Protocol):
    """What is asked of a corpus: lengths [documents] and one array of tokens a document."""

    @property
    def lengths(self) -> NDArray[np.int64]: ...

    def __getitem__(self, index: int, /) -> NDArray[Any]: ...


class PaddedRows(torch.utils.data.Dataset[NDArray[Any]]):
    """Map-style dataset: item i is the tokens of row i, a view of the mapped file."""

    def __init__(self, corpus: Documents, seq_len: int) -> None:
        self._corpus = corpus
        self._rows = bf.pack(corpus.lengths, seq_len, strategy="pad")  # a bin is a row

    def __len__(self) -> int:
        return self._rows.num_bins

    def __getitem__(self, index: int) -> NDArray[Any]:
        start = int(self._rows.starts[index])
        tokens = self._corpus[int(self._rows.documents[index])]
        return tokens[start : start + int(self._rows.lengths[index])]


def pad_collate(rows: list[NDArray[Any]]) -> dict[str, Any]:
    """input_ids, labels (-100 on padding), attention_mask: int64 [rows, longest]; and counts."""
    width = max(len(row) for row in rows)
    input_ids = np.zeros((len(rows), width), np.int64)
    labels = np.full((len(rows), width), -100, np.int64)
    attention_mask = np.zeros((len(rows), width), np.int64)
    for i, row in enumerate(rows):
        input_ids[i, : len(row)] = row
        labels[i, : len(row)] = row
        attention_mask[i, : len(row)] = 1
    tokens = sum(len(row) for row in rows)
    return {
        "input_ids": torch.from_numpy(input_ids),
        "labels": torch.from_numpy(labels),
        "attention_mask": torch.from_numpy(attention_mask),
        "num_tokens": tokens,
        "num_items": tokens - len(rows),  # the model shifts: nothing predicts a row's first token
    }


def padded_loader(
    corpus: Documents, *, batch_size: int, seq_len: int, num_workers: int, shuffle: bool, seed: int
) -> torch.utils.data.DataLoader[NDArray[Any]]:
    """torch's DataLoader over the corpus; its workers, if any, live as long as the loader."""
    return torch.utils.data.DataLoader(
        PaddedRows(corpus, seq_len),
        batch_size=batch_size,
        shuffle=shuffle,
        num_workers=num_workers,
        collate_fn=pad_collate,
        persistent_workers=num_workers > 0,
        multiprocessing_context="fork" if num_workers else None,  # the mapped files are shared
        generator=torch.Generator().manual_seed(seed),
    )
