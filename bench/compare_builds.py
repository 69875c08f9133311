"""What a change does to the cost of filling: two builds of brimful take turns on the same tokens.

    python bench/compare_builds.py OLD/python NEW/python

Each build fills in a process of its own; they take turns of 60 batches (8 x 4,096 tokens, a few
milliseconds each), 60 turns a round, so that whatever else the machine does meets both alike. What
counts is the CPU time of the threads that fill, packing included, per token: the median of a
round's turns, of NEW over OLD. The corpus is larger than the caches and shuffled.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BATCHES = 60  # a turn
TURNS = 60  # a round
WARM_UP = 600  # batches
DOCUMENTS = 200_000
SETTINGS = [(layout, workers) for layout in ("rows", "varlen") for workers in (0, 2)]


def write_corpus(folder: Path) -> None:
    """About 120 million tokens, 240 MB: lognormal lengths, 600 on average, at most 4,096."""
    import numpy as np

    import brimful as bf

    rng = np.random.default_rng(1)
    lengths = rng.lognormal(math.log(600) - 0.5, 1.0, DOCUMENTS).astype(np.int64)
    with bf.ShardWriter(folder, dtype="uint16") as writer:
        for length in np.clip(lengths, 1, 4096).tolist():
            writer.add(rng.integers(0, 50_000, length, dtype=np.uint16))


def cpu_nanoseconds(*, of_workers: bool) -> int:
    """CPU time so far of the loader's threads, or of this one."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        is_worker = (task / "comm").read_text().startswith("brimful-")
        if is_worker if of_workers else int(task.name) == os.getpid():
            total += int((task / "schedstat").read_text().split()[0])
    return total


def fill(corpus: str, layout: str, workers: int) -> None:
    """Fills a turn's batches for every line of input, and prints nanoseconds a token."""
    import brimful as bf

    loader = bf.DataLoader(
        corpus, batch_size=8, seq_len=4096, layout=layout, shuffle=True, num_workers=workers
    )

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    stream = batches()
    for _ in range(WARM_UP):
        next(stream)
    print(flush=True)
    for _ in sys.stdin:
        begin = cpu_nanoseconds(of_workers=workers > 0)
        tokens = sum(next(stream).num_tokens for _ in range(BATCHES))
        print((cpu_nanoseconds(of_workers=workers > 0) - begin) / tokens, flush=True)


def one_round(builds: list[str], corpus: str, layout: str, workers: int) -> list[float]:
    """Median nanoseconds a token of each build."""
    command = [sys.executable, __file__, "--fill", corpus, layout, str(workers)]
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": build},
        )
        for build in builds
    ]
    found: list[list[float]] = [[] for _ in builds]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()  # it is warm
    for turn in range(TURNS):
        order = range(len(builds)) if turn % 2 == 0 else reversed(range(len(builds)))
        for b in order:
            stdin, stdout = processes[b].stdin, processes[b].stdout
            assert stdin is not None
            assert stdout is not None
            stdin.write("\n")
            stdin.flush()
            found[b].append(float(stdout.readline()))
    for process in processes:
        process.communicate()
    return [statistics.median(turns) for turns in found]


def main() -> None:
    if sys.argv[1:2] == ["--fill"]:
        corpus, layout, workers = sys.argv[2:]
        fill(corpus, layout, int(workers))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", help="a folder that holds the package brimful of one build")
    parser.add_argument("new", help="and that of the other")
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder) / "corpus")
        for layout, workers in SETTINGS:
            rounds = [
                one_round([arguments.old, arguments.new], f"{folder}/corpus", layout, workers)
                for _ in range(arguments.rounds)
            ]
            ratios = [new / old for old, new in rounds]
            print(
                f"{layout}, {workers} threads: {statistics.median(old for old, _ in rounds):.2f} "
                f"ns a token, new / old {statistics.median(ratios):.3f} "
                f"({min(ratios):.2f} to {max(ratios):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
