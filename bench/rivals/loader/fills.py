"""A packed batch by vectorised numpy and torch: the same columns that the loader fills natively.

Both take the tokens of a file and the pieces of a batch, end to end: `begins` (place of a piece's
first token in the file) and `lengths`, int64 [pieces]. Both give input_ids, labels (-100 at each
piece's first token) and position_ids, int64 [1, total].
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray


def numpy_fill(
    tokens: NDArray[np.uint16], begins: NDArray[np.int64], lengths: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """One concatenation of slices; positions by one repeat."""
    total = int(lengths.sum())
    firsts = np.cumsum(lengths) - lengths
    input_ids = np.empty(total, np.int64)
    pieces = [tokens[b : b + n] for b, n in zip(begins.tolist(), lengths.tolist(), strict=True)]
    np.concatenate(pieces, out=input_ids)
    labels = input_ids.copy()
    labels[firsts] = -100
    position_ids = np.arange(total) - np.repeat(firsts, lengths)
    return {
        "input_ids": input_ids[None],
        "labels": labels[None],
        "position_ids": position_ids[None],
    }


def torch_fill(
    tokens: NDArray[np.uint16], begins: NDArray[np.int64], lengths: NDArray[np.int64]
) -> dict[str, torch.Tensor]:
    """The same with torch.cat and repeat_interleave."""
    sizes = torch.from_numpy(lengths)
    firsts = torch.cumsum(sizes, 0) - sizes
    source = torch.from_numpy(tokens)
    pieces = [source[b : b + n] for b, n in zip(begins.tolist(), lengths.tolist(), strict=True)]
    input_ids = torch.cat(pieces).to(torch.int64)
    labels = input_ids.clone()
    labels[firsts] = -100
    position_ids = torch.arange(len(input_ids)) - torch.repeat_interleave(firsts, sizes)
    return {
        "input_ids": input_ids[None],
        "labels": labels[None],
        "position_ids": position_ids[None],
    }
