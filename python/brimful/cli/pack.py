"""`brimful pack`: all packing strategies in one table, on real lengths."""

from __future__ import annotations

import json as jsonlib
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import brimful as bf
from brimful.cli.source import Source
from brimful.cli.text import count, duration, make_console, percent, print_path, print_table
from brimful.packing import Overlong, Strategy

STRATEGIES: tuple[Strategy, ...] = (
    "streaming",
    "best_fit_decreasing",
    "first_fit_decreasing",
    "best_fit",
    "concat",
    "pad",
)
LENGTH_FILES = (".txt", ".npy")
NOTES = """\
bound: no packing of the same pieces needs fewer bins.
concat cuts documents anywhere, the others only those longer than a bin.
pad: one document a bin, the rest of it padding.
time: of the plan alone, the quickest of three."""


@dataclass(frozen=True)
class Comparison:
    """One way to lay documents into rows. Times in seconds, everything else a count."""

    strategy: str
    bins: int
    utilization: float | None
    over_lower_bound: float | None
    split_documents: int
    truncated_documents: int
    dropped_documents: int
    lost_tokens: int
    seconds: float

    @property
    def cut_documents(self) -> int:
        """Documents that no row holds whole, though something of them is there."""
        return self.split_documents + self.truncated_documents


def read_lengths(path: Path) -> NDArray[np.int64]:
    """Document lengths from a .txt (integers between blanks) or a one-dimensional integer .npy."""
    try:
        if path.suffix == ".npy":
            lengths = np.load(path, allow_pickle=False)
        else:
            lengths = np.array([int(word) for word in path.read_text().split()], np.int64)
    except (ValueError, EOFError, OverflowError) as error:
        raise bf.FormatError(f"{path}: no file of document lengths: {error}") from None
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise bf.FormatError(
            f"{path}: document lengths must be a one-dimensional array of integers, "
            f"found {lengths.dtype} of shape {lengths.shape}"
        )
    if lengths.dtype == np.uint64 and len(lengths) and lengths.max() > np.iinfo(np.int64).max:
        raise bf.FormatError(f"{path}: a length of {lengths.max()} tokens does not fit 64 bits")
    result: NDArray[np.int64] = lengths.astype(np.int64)
    return result


def compare(
    lengths: NDArray[np.int64], seq_len: int, *, overlong: str = "split"
) -> list[Comparison]:
    """Every strategy on lengths [documents]; the time is the quickest of three."""
    return [_compare_one(lengths, seq_len, strategy, overlong) for strategy in STRATEGIES]


def _compare_one(
    lengths: NDArray[np.int64], seq_len: int, strategy: Strategy, overlong: str
) -> Comparison:
    quickest = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        plan = bf.pack(lengths, seq_len, strategy=strategy, overlong=cast(Overlong, overlong))
        quickest = min(quickest, time.perf_counter() - began)
    return Comparison(
        strategy,
        plan.num_bins,
        plan.utilization,
        plan.num_bins / plan.lower_bound if plan.lower_bound else None,
        plan.split_documents,
        plan.truncated_documents,
        plan.dropped_documents,
        plan.dropped_tokens,
        quickest,
    )


def print_comparison(console: Console, comparisons: list[Comparison], tokens: int) -> None:
    """The table of `brimful pack`; tokens: of all documents, for the share that is lost."""
    print_table(
        console,
        [
            "strategy",
            "bins",
            "bins /\nbound",
            "utilization",
            "cut or\ndropped",
            "tokens\nlost",
            "time",
        ],
        [
            [
                c.strategy,
                count(c.bins),
                "-" if c.over_lower_bound is None else f"{c.over_lower_bound:.4f}",
                percent(c.utilization),
                count(c.cut_documents + c.dropped_documents),
                percent(c.lost_tokens / tokens if tokens else None) if c.lost_tokens else "0",
                duration(c.seconds),
            ]
            for c in comparisons
        ],
    )


def run(
    source: Source,
    *,
    seq_len: int,
    overlong: str,
    json: bool,
) -> None:
    """Prints the comparison for shards or a file of lengths, as a table or as JSON."""
    path = Path(source.data)
    if path.suffix in LENGTH_FILES and path.is_file() and source.format is None:
        lengths = read_lengths(path)
        kind = "document lengths"
    else:
        lengths = source.open().lengths
        kind = "token shards"
    comparisons = compare(lengths, seq_len, overlong=overlong)
    tokens = int(lengths.sum())
    if json:
        report = {
            "data": source.data,
            "kind": kind,
            "documents": len(lengths),
            "tokens": tokens,
            "seq_len": seq_len,
            "overlong": overlong,
            "strategies": [asdict(c) for c in comparisons],
        }
        print(jsonlib.dumps(report, indent=2))
        return
    console = make_console()
    print_path(console, "", source.data, f" ({kind})")
    console.print(
        f"{count(len(lengths))} documents, {count(tokens)} tokens, into bins of {count(seq_len)}, "
        f"overlong: {overlong}\n"
    )
    print_comparison(console, comparisons, tokens)
    console.print(f"\n{NOTES}")
