"""Reading from the device: the loader over files that are not in the page cache.

    python bench/bench_cold.py

Before each measurement the page cache is rid of the file (posix_fadvise; the table says how much of
it mincore finds cached all the same, at most). The loader is held against reads that do nothing
else: for documents in their order, one thread that reads the file in pieces of 1 MiB; for shuffled
documents of 1 to 8 KiB, preads of as many such documents by as many threads. Rounds are
interleaved, figures are medians, and shares are taken within a round. A host that caches below this
machine speeds up all of them.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import brimful as bf
import machine
from page_cache import cached_share, drop
from rivals.limit import build, pointer
from rivals.loader.corpus import SEQ_LEN, Corpus

TOKENS = 256_000_000
SHORTEST, LONGEST = 512, 4096  # tokens of two bytes
DOCUMENTS = 20_000  # of a measurement of shuffled reads
THREADS = (2, 16)


def write(folder: Path) -> None:
    """Shards of documents of 1 to 8 KiB, evenly distributed."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(SHORTEST, LONGEST, TOKENS // 2304, endpoint=True)
    with bf.ShardWriter(folder / "shards", dtype="uint16") as writer:
        for length in lengths.tolist():
            writer.add(generator.integers(0, 1 << 16, length, np.uint16))


def plain_sequential(path: Path) -> tuple[float, None]:
    begin, size = time.perf_counter(), 0
    with path.open("rb", buffering=0) as file:
        memory = bytearray(1 << 20)
        while count := file.readinto(memory):
            size += count
    return size / (time.perf_counter() - begin), None


def plain_preads(path: Path, lengths: NDArray[np.int64], threads: int) -> tuple[float, None]:
    """Documents of so many bytes in an order of their own."""
    begins = np.cumsum(lengths) - lengths
    order = np.random.default_rng(3).permutation(len(lengths))[:DOCUMENTS]
    begins, lengths = begins[order], lengths[order]
    read_pieces = build("preads.c").read_pieces
    read_pieces.restype = ctypes.c_int64
    file = os.open(path, os.O_RDONLY)
    try:
        begin = time.perf_counter()
        size = read_pieces(
            file,
            pointer(begins),
            pointer(lengths),
            ctypes.c_int64(len(order)),
            ctypes.c_int64(threads),
        )
        return int(size) / (time.perf_counter() - begin), None
    finally:
        os.close(file)


def loader(shards: Path, most_tokens: float, **settings: Any) -> tuple[float, float]:
    """From DataLoader(...) on: bytes of tokens a second, up to so many tokens or an epoch; and
    seconds to the first batch."""
    begin, tokens, first = time.perf_counter(), 0, 0.0
    batches = bf.DataLoader(
        shards, batch_size=8, seq_len=SEQ_LEN, fields=("input_ids",), seed=17, **settings
    )
    for batch in batches:
        first = first or time.perf_counter() - begin
        tokens += batch.num_tokens
        if tokens >= most_tokens:
            break
    seconds = time.perf_counter() - begin
    batches.close()
    return 2 * tokens / seconds, first


Measure = Callable[[], tuple[float, float | None]]
"""Bytes a second, and seconds to the first batch where there are batches."""


def measures(folder: Path, path: Path) -> dict[str, tuple[str | None, Measure]]:
    """By name: the name of what it is a share of, and what to run."""
    # A corpus that stays open would keep its pages mapped, and so in memory.
    lengths = np.array(bf.open(folder / "shards").lengths, np.int64)
    some = DOCUMENTS * lengths.mean()

    def shuffled(threads: int, **settings: Any) -> Measure:
        return lambda: loader(
            folder / "shards", some, num_workers=threads, **({"shuffle": True} | settings)
        )

    sequential, in_order = "sequential read, 1 MiB", {"packing": "concat", "num_workers": 2}
    found: dict[str, tuple[str | None, Measure]] = {
        sequential: (None, lambda: plain_sequential(path)),
        "brimful, in order": (
            sequential,
            lambda: loader(folder / "shards", np.inf, **in_order),
        ),
        'brimful, in order, io="pread"': (
            sequential,
            lambda: loader(folder / "shards", np.inf, io="pread", **in_order),
        ),
    }
    for threads in THREADS:
        preads = f"preads of shuffled documents, {threads} threads"
        found[preads] = (None, lambda threads=threads: plain_preads(path, 2 * lengths, threads))
        found[f"brimful, shuffled, {threads} threads"] = (preads, shuffled(threads))
        found[f'brimful, shuffled, {threads} threads, io="pread"'] = (
            preads,
            shuffled(threads, io="pread"),
        )
        found[f'brimful, shuffle="block", {threads} threads'] = (
            preads,
            shuffled(threads, shuffle="block"),
        )
    return found


def measured(folder: Path, rounds: int) -> list[dict[str, Any]]:
    (path,) = (folder / "shards").glob("*.bin")
    chosen = measures(folder, path)
    rates: dict[str, list[float]] = {name: [] for name in chosen}
    firsts: dict[str, list[float]] = {name: [] for name in chosen}
    left: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name, (_, run) in chosen.items():
            drop(path)
            left[name].append(cached_share(path))
            rate, first = run()
            rates[name].append(rate)
            if first is not None:
                firsts[name].append(first)
    rows: list[dict[str, Any]] = []
    for name, (of, _) in chosen.items():
        row: dict[str, Any] = {"name": name, "bytes_per_second": statistics.median(rates[name])}
        if of is not None:
            pairs = zip(rates[name], rates[of], strict=True)
            row |= {"of": of, "share": statistics.median(own / best for own, best in pairs)}
        if firsts[name]:
            row["first_batch_seconds"] = statistics.median(firsts[name])
        rows.append(row | {"cached_before": max(left[name])})
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| read | MB/s | of the plain reads | first batch | cached before |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        share = f"{100 * row['share']:.0f} %" if "share" in row else "-"
        seconds = row.get("first_batch_seconds")
        first = "-" if seconds is None else f"{1e3 * seconds:.0f} ms"
        cells = [row["name"], f"{row['bytes_per_second'] / 1e6:,.0f}", share, first]
        lines.append("| " + " | ".join([*cells, f"{100 * row['cached_before']:.2f} %"]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path(tempfile.gettempdir(), "brimful-bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    options.corpus.mkdir(parents=True, exist_ok=True)
    folder = Corpus(options.corpus).converted("cold", write)
    about = machine.facts()
    rows = measured(folder, options.rounds)
    print("\n".join(table(rows)))
    print(machine.sentence(about))
    if options.json:
        machine.write_figures(options.json, about, options, rows=rows)


if __name__ == "__main__":
    main()
