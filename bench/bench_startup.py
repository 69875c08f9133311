"""What a loader costs beside its batches: starting, resuming, its state, memory, ending, next().

    python bench/bench_startup.py

Each measurement runs in processes of its own (startup_probe.py says what each is), --repeats of
them; figures are medians. The corpus is that of bench_loader.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
from rivals.loader.corpus import TOKENS, Corpus, corpus_at
from startup_probe import write_index

PROBE = Path(__file__).with_name("startup_probe.py")
TIMEOUT_SECONDS = 120


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.2f} ms"


def microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} us"


def mebibytes(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"


def count(number: float) -> str:
    return f"{number:,.0f}"


@dataclass(frozen=True)
class Line:
    """A line of the table: a figure of a probe, run with these arguments."""

    text: str
    probe: tuple[str, ...]
    figure: str
    shown: Callable[[float], str] = milliseconds


LINES = [
    Line("`bf.open` of the corpus", ("first_batch", "2"), "open_seconds"),
    Line(
        "first batch after `DataLoader(...)`, 0 threads",
        ("first_batch", "0"),
        "first_batch_seconds",
    ),
    Line(
        "first batch after `DataLoader(...)`, 2 threads",
        ("first_batch", "2"),
        "first_batch_seconds",
    ),
    Line("resume before the first batch", ("resume", "0"), "resume_seconds"),
    Line("resume in the middle of an epoch", ("resume", "0.5"), "resume_seconds"),
    Line("resume at the end of an epoch", ("resume", "1"), "resume_seconds"),
    Line("`state_dict()`, 1 source", ("state", "1"), "state_seconds", microseconds),
    Line("size of the state as JSON, 1 source, bytes", ("state", "1"), "state_bytes", count),
    Line("`state_dict()`, 64 sources", ("state", "64"), "state_seconds", microseconds),
    Line("size of the state as JSON, 64 sources, bytes", ("state", "64"), "state_bytes", count),
    Line("`state_dict()`, 40,000 sources", ("state", "40000"), "state_seconds"),
    Line(
        "size of the state as JSON, 40,000 sources, bytes", ("state", "40000"), "state_bytes", count
    ),
    Line("`bf.mix` of 40,000 sources", ("state", "40000"), "mix_seconds"),
    Line("`DataLoader(...)` of 40,000 sources", ("state", "40000"), "loader_seconds"),
    Line("memory, 1 thread, 200 batches", ("memory", "1", "0.02"), "bytes", mebibytes),
    Line("memory, 16 threads, 200 batches", ("memory", "16", "0.02"), "bytes", mebibytes),
    Line("memory, 1 thread, 3 epochs", ("memory", "1", "3"), "bytes", mebibytes),
    Line("memory, 16 threads, 3 epochs", ("memory", "16", "3"), "bytes", mebibytes),
    Line("`close()`, 2 threads, the longest of 20", ("shutdown", "2"), "shutdown_seconds"),
    Line("`close()`, 16 threads, the longest of 20", ("shutdown", "16"), "shutdown_seconds"),
    Line(
        "`next()`, fixed rows 8 x 4,096, median",
        ("next_call", "rows"),
        "median_seconds",
        microseconds,
    ),
    Line(
        "`next()`, fixed rows 8 x 4,096, 99 %", ("next_call", "rows"), "p99_seconds", microseconds
    ),
    Line(
        "`next()`, varlen 8 x 4,096, median",
        ("next_call", "varlen"),
        "median_seconds",
        microseconds,
    ),
    Line("`next()`, varlen 8 x 4,096, 99 %", ("next_call", "varlen"), "p99_seconds", microseconds),
    Line("`bf.open` of an index of 100,000,000 documents", ("index",), "open_seconds"),
    Line("a pass over its bytes by numpy", ("index",), "pass_seconds"),
    Line("first batch after `DataLoader(...)` on it", ("index",), "first_batch_seconds"),
    Line("memory that opening it took", ("index",), "grown_bytes", mebibytes),
]


def measured(probe: tuple[str, ...], corpus: Corpus, repeats: int) -> dict[str, Any]:
    """Medians of a probe's figures, or why there are none."""
    name, *arguments = probe
    answers: list[dict[str, float]] = []
    for _ in range(repeats):
        command = [sys.executable, str(PROBE), name, str(corpus.folder), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return {"failure": f"no answer after {TIMEOUT_SECONDS} s"}
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            return {"failure": lines[-1] if lines else f"ended with status {done.returncode}"}
        answers.append(json.loads(done.stdout))
    return {key: statistics.median(answer[key] for answer in answers) for key in answers[0]}


def table(figures: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| what | measured |", "| --- | ---: |"]
    for line in LINES:
        figure = figures[" ".join(line.probe)]
        value = figure["failure"] if "failure" in figure else line.shown(figure[line.figure])
        lines.append(f"| {line.text} | {value} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path(tempfile.gettempdir(), "brimful-bench"))
    parser.add_argument("--millions", type=int, default=TOKENS // 1_000_000, help="tokens of it")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()

    corpus = corpus_at(options.corpus, 1_000_000 * options.millions)
    corpus.warm()
    corpus.converted("index", write_index)
    about = machine.facts()
    figures: dict[str, dict[str, Any]] = {}
    for probe in dict.fromkeys(line.probe for line in LINES):
        figures[" ".join(probe)] = measured(probe, corpus, options.repeats)
    print("\n".join(table(figures)))
    print(machine.sentence(about))
    if options.json:
        machine.write_figures(options.json, about, options, probes=figures)


if __name__ == "__main__":
    main()
