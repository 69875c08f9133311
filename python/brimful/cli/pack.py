"""`brimful pack`: all ways to lay documents into rows in one table, and what one of them does to
long and short documents.
"""

from __future__ import annotations

import json as jsonlib
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from brimful.cli.compare import BUCKET, STRATEGIES, Comparison, Ranks, compare
from brimful.cli.lengths import read_source
from brimful.cli.source import Source
from brimful.cli.text import (
    count,
    duration,
    make_console,
    percent,
    print_filled,
    print_path,
    print_table,
)
from brimful.pack_checks import check_choice
from brimful.plots import check_target, draw
from brimful.wording import counted


def notes(comparisons: Sequence[Comparison], ranks: Ranks) -> str:
    """What the columns of the table mean, a line each."""
    size, world = count(ranks.batch_size), count(ranks.world_size)
    balanced = [c.balanced_imbalance for c in comparisons if c.balanced_imbalance is not None]
    most = math.ceil(100 * max(balanced, default=1)) / 100
    evened = f"; bf.balance makes it {most:.2f} or less" if balanced else ""
    lines: tuple[str, ...] = (
        "bound: no packing of the same pieces needs fewer bins.",
        "concat cuts documents anywhere, the others only those longer than a bin.",
        "pad: one document a bin, the rest of it padding. "
        f"{BUCKET}: the same rows sorted by length, {size} a batch as wide as its longest row.",
        "time: of the plan alone, the quickest of three.",
        "imbalance: attention work of a step's busiest rank over the mean of its ranks, for "
        f"{world} ranks with {size} rows each, in the order of the documents{evened}.",
    )
    if any(c.imbalance is None for c in comparisons):
        lines += (f"imbalance -: fewer rows than the {count(ranks.rows)} of one full step.",)
    return "\n".join(lines)


def print_comparison(console: Console, comparisons: Sequence[Comparison], tokens: int) -> None:
    """The table of `brimful pack`; tokens: of all documents, for the share that is lost."""
    print_table(
        console,
        [
            "strategy",
            "bins",
            "bins /\nbound",
            "utili-\nzation",
            "cut or\ndropped",
            "tokens\nlost",
            "time",
            "imba-\nlance",
        ],
        [
            [
                c.strategy,
                count(c.bins),
                _ratio(c.over_lower_bound, 4),
                percent(c.utilization),
                count(c.cut_documents + c.dropped_documents),
                percent(c.lost_tokens / tokens if tokens else None) if c.lost_tokens else "0",
                duration(c.seconds),
                _ratio(c.imbalance, 2),
            ]
            for c in comparisons
        ],
    )


def _ratio(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def run(
    sources: Sequence[Source],
    *,
    seq_len: int,
    overlong: str,
    strategy: str,
    ranks: Ranks,
    plot: Path | None,
    json: bool,
) -> None:
    """Prints the comparison as a table or as JSON, and draws it where a file for it is named.

    Each source is one of the plan's; `strategy` is the one whose report is printed.
    """
    check_choice("strategy", strategy, STRATEGIES)
    if plot is not None:
        check_target(plot)  # before all the packing
    given = [read_source(source) for source in sources]
    lengths = np.concatenate([part.values for part in given])
    # As objects: arrays of text hold a whole name for each document.
    named = np.array([part.data for part in given], object)
    names = np.repeat(named, [len(part.values) for part in given])
    comparisons, left_out = compare(
        lengths, seq_len, overlong=overlong, ranks=ranks, needed=strategy
    )
    if plot is not None:
        draw([c.plan for c in comparisons if c.strategy != BUCKET], plot)
    if json:
        report = {
            "data": [part.as_dict() for part in given],
            "documents": len(lengths),
            "tokens": int(lengths.sum()),
            "seq_len": seq_len,
            "overlong": overlong,
            **asdict(ranks),
            "strategies": [{**c.as_dict(), **_distribution(c, names)} for c in comparisons],
            "left_out": [asdict(left) for left in left_out],
            "plot": None if plot is None else str(plot),
        }
        print(jsonlib.dumps(report, indent=2))
        return
    console = make_console()
    for part in given:
        print_path(console, "", part.data, f" ({part.kind})")
    print_filled(
        console,
        f"{counted(len(lengths), 'document')}, {counted(int(lengths.sum()), 'token')}, into bins "
        f"of {count(seq_len)}, overlong: {overlong}\n",
    )
    print_comparison(console, comparisons, int(lengths.sum()))
    print_filled(console, f"\n{notes(comparisons, ranks)}")
    for left in left_out:
        print_filled(console, f"{left.strategy} is left out: {left.reason}")
    for c in comparisons:
        if c.strategy == strategy:
            sourced = names if len(given) > 1 else None
            console.print()
            console.print(c.plan.report(sourced), soft_wrap=True)
    if plot is not None:
        print_path(console, "\nplot: ", plot)


def _distribution(comparison: Comparison, names: NDArray[Any]) -> dict[str, Any]:
    """For JSON; bucketed rows hold the same pieces as those of plain padding."""
    fields = asdict(comparison.plan.distribution(names))
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            fields[name] = value.tolist()
    return {"distribution": fields}
