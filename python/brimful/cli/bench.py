"""`brimful bench`: how fast the loader delivers, next to torch's, on the same shards."""

from __future__ import annotations

import json as jsonlib
import os
import platform
from typing import Any

from rich.console import Console

import brimful as bf
from brimful.cli.meter import Measured, measure
from brimful.cli.source import Source
from brimful.cli.text import (
    brief,
    count,
    duration,
    make_console,
    percent,
    print_filled,
    print_path,
    print_table,
)
from brimful.config import LoaderConfig
from brimful.extras import require
from brimful.wording import counted

THREADS = (0, 1, 2)  # of brimful
PROCESSES = (0, 2)  # of torch
SEED = 0


def machine() -> dict[str, Any]:
    """What a figure depends on besides the data: processor, cores, versions."""
    versions = {"python": platform.python_version(), "brimful": bf.__version__}
    for module in ("torch", "numpy"):
        versions[module] = require(module, "torch", "the comparison with torch").__version__
    return {"machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), **versions}


def run_loaders(
    corpus: bf.Corpus, *, seq_len: int, batch_size: int, seconds: float
) -> list[Measured]:
    """Draws batches as fast as they come, for so many seconds a loader; shuffled rows."""
    require("torch", "torch", "the comparison with torch")
    from brimful.cli.padding import padded_loader

    results = []
    for threads in THREADS:
        loader = bf.DataLoader(
            corpus,
            batch_size=batch_size,
            seq_len=seq_len,
            shuffle=True,
            seed=SEED,
            num_workers=threads,
            fields=("input_ids", "labels"),
        )
        name = f"brimful, {threads} thread{'' if threads == 1 else 's'}"
        results.append(measure(name, loader, seconds=seconds))
        loader.close()
    for processes in PROCESSES:
        padded = padded_loader(
            corpus,
            batch_size=batch_size,
            seq_len=seq_len,
            num_workers=processes,
            shuffle=True,
            seed=SEED,
        )
        results.append(measure(f"torch, {processes} workers", padded, seconds=seconds))
    return results


def print_measured(console: Console, results: list[Measured]) -> None:
    """One row a loader."""
    print_table(
        console,
        ["loader", "effective\ntokens/s", "tokens/s", "utilization", "stall", "first\nbatch"],
        [
            [
                m.name,
                brief(m.effective_tokens_per_second),
                brief(m.tokens_per_second),
                percent(m.utilization),
                percent(m.stall_share),
                duration(m.first_batch_seconds),
            ]
            for m in results
        ],
    )


def run(
    source: Source,
    *,
    seq_len: int,
    batch_size: int,
    seconds: float,
    json: bool,
) -> None:
    """Measures all loaders one after the other and prints a table or JSON."""
    corpus = source.open()
    about = machine()
    results = run_loaders(corpus, seq_len=seq_len, batch_size=batch_size, seconds=seconds)
    if json:
        report = {
            "data": source.data,
            "documents": len(corpus),
            "tokens": corpus.num_tokens,
            "seq_len": seq_len,
            "batch_size": batch_size,
            "machine": about,
            "loaders": [m.as_dict() for m in results],
        }
        print(jsonlib.dumps(report, indent=2))
        return
    console = make_console()
    print_path(console, "", source.data)
    print_filled(
        console,
        f"{counted(len(corpus), 'document')}, {counted(corpus.num_tokens, 'token')}\n"
        f"batches of {count(batch_size)} x {count(seq_len)}, {seconds:g} s a loader, "
        f"{about['cores']} cores, torch {about['torch']}\n",
    )
    print_measured(console, results)
    print_filled(
        console,
        "\nNothing is trained: the loop only draws batches, so it nearly always waits."
        f"\nbrimful packs by its default, {LoaderConfig.packing}. "
        "torch pads: a document a row, each batch as wide as its longest row.",
    )
