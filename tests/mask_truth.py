"""Which query sees which key, pair by pair from the definition: what the tests of masks go by."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Lists = list[list[int]]


def pairs(
    cu_seqlens: Any, *, causal: bool = True, window: int | None = None, prefixes: Any = None
) -> NDArray[np.bool_]:
    """[total, total]: True where the query of the row sees the key of the column."""
    q, k = np.indices((cu_seqlens[-1], cu_seqlens[-1]))
    seen = np.zeros(q.shape, bool)
    for i, (begin, end) in enumerate(itertools.pairwise(cu_seqlens)):
        inside = (begin <= q) & (q < end) & (begin <= k) & (k < end)
        allowed = k <= q if causal else np.ones_like(seen)
        if window is not None:
            allowed &= abs(q - k) < window
        if prefixes is not None:
            allowed |= k < begin + prefixes[i]
        seen |= inside & allowed
    return seen


def block_lists(seen: NDArray[np.bool_], block_q: int, block_kv: int) -> tuple[Lists, ...]:
    """Partial and full key blocks of each block of queries, then query blocks of blocks of keys.
    A broken last block is never full.
    """
    slots = len(seen)
    q_blocks, kv_blocks = -(-slots // block_q), -(-slots // block_kv)
    padded = np.zeros((q_blocks * block_q, kv_blocks * block_kv), bool)
    padded[:slots, :slots] = seen
    blocks = padded.reshape(q_blocks, block_q, kv_blocks, block_kv)
    full = blocks.all((1, 3))
    partial = blocks.any((1, 3)) & ~full
    return tuple(
        [np.nonzero(line)[0].tolist() for line in of] for of in (partial, full, partial.T, full.T)
    )


def listed(arrays: Any) -> tuple[Lists, ...]:
    """The same of a mask's eight arrays, [R], [R, C] and so on, of numpy or torch."""
    return tuple(
        [
            sorted(np.asarray(indices[i, : int(count)]).tolist())
            for i, count in enumerate(np.asarray(counts))
        ]
        for counts, indices in zip(arrays[::2], arrays[1::2], strict=True)
    )


@st.composite
def many_lengths(draw: st.DrawFn, most: int = 60, documents: int = 6) -> list[int]:
    """Document lengths: none, empty, single tokens, a few long ones."""
    length = st.one_of(st.integers(0, 3), st.integers(0, most))
    return draw(st.lists(length, max_size=documents))


def offsets(lengths: Any) -> NDArray[np.int32]:
    return np.cumsum([0, *lengths]).astype(np.int32)
