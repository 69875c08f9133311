"""Length histogram: powers of two, at most twelve rows, shares of documents and of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from brimful.cli.text import block, count, percent, print_table

PERCENTILES = (1, 10, 25, 50, 75, 90, 99)
MAX_ROWS = 12
BAR_WIDTH = 24


@dataclass(frozen=True)
class Bucket:
    """Documents of `low` to `high` tokens, both included."""

    low: int
    high: int
    documents: int
    tokens: int


def length_histogram(lengths: NDArray[np.int64]) -> list[Bucket]:
    """Buckets [2^k, 2^(k+1)) of lengths [documents], the shortest joined to leave few rows."""
    if not len(lengths):
        return []
    longest = int(lengths.max())
    edges = [1 << k for k in range(max(longest.bit_length(), 1) + 1)]
    edges = [0, *edges[max(len(edges) - MAX_ROWS, 0) :]]
    place = np.searchsorted(edges, lengths, side="right") - 1
    documents = np.bincount(place, minlength=len(edges) - 1)
    buckets = []
    for k, n in enumerate(documents.tolist()):
        tokens = int(lengths[place == k].sum())
        buckets.append(Bucket(edges[k], edges[k + 1] - 1, n, tokens))
    held = np.flatnonzero(documents)
    return buckets[held[0] : held[-1] + 1]


def length_summary(lengths: NDArray[np.int64]) -> dict[str, float]:
    """Smallest, largest, mean and percentiles of lengths [documents], in tokens."""
    if not len(lengths):
        return {}
    values = np.percentile(lengths, PERCENTILES, method="nearest")
    return {
        "min": int(lengths.min()),
        **{f"p{p}": int(v) for p, v in zip(PERCENTILES, values, strict=True)},
        "max": int(lengths.max()),
        "mean": float(lengths.mean()),
    }


def print_histogram(console: Console, buckets: list[Bucket]) -> None:
    """The histogram as a table: a bar is a bucket's share of documents."""
    documents = sum(b.documents for b in buckets)
    tokens = sum(b.tokens for b in buckets)
    widest = max((b.documents for b in buckets), default=1)
    mark = block(console)
    rows = []
    for b in buckets:
        span = count(b.low) if b.low == b.high else f"{count(b.low)} - {count(b.high)}"
        bar = mark * round(BAR_WIDTH * b.documents / widest)
        rows.append(
            [
                span,
                count(b.documents),
                percent(b.documents / documents),
                percent(b.tokens / tokens if tokens else None),
                bar,
            ]
        )
    print_table(console, ["document length", "documents", "of all", "of tokens", ""], rows)
