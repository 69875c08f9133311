"""One loader of bench_loader.py in a process of its own, drawing from it when told to.

    python bench/loader_row.py KEY CORPUS prepare | serve

`prepare` has the corpus converted and reads the result once, into the page cache. `serve` draws
batches, as it is told by lines on its standard input: each is a number of seconds. It prints JSON
objects: when the first batch is there, the seconds that took (imports of packages apart); for each
line read, tokens and batches of so many seconds, the seconds they really took, CPU seconds of the
process and all below it, anonymous bytes of these beyond `import torch`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from process_tree import anonymous_bytes, cpu_seconds
from rivals.loader import jobs
from rivals.loader.corpus import Corpus, read_all
from rivals.loader.job import TASKS, Job

WARM_SECONDS = 0.15


def main(key: str, folder: str, mode: str) -> None:
    (job,) = [job for job in jobs() if job.key == key]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a package prints is no answer
    warnings.simplefilter("ignore")
    corpus = Corpus(Path(folder))

    def say(**facts: Any) -> None:
        print(json.dumps(facts), file=out, flush=True)

    if mode == "prepare":
        assert job.prepare is not None
        read_all(job.prepare(corpus))
        say(prepared=True)
    else:
        serve(job, corpus, say)
    out.flush()
    os._exit(0)  # what a loader leaves behind, threads or workers, is not waited for


def serve(job: Job, corpus: Corpus, say: Any) -> None:
    import torch

    torch.set_num_threads(1)
    cores = TASKS[job.task].cores
    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    before = anonymous_bytes()
    for module in job.imports:
        importlib.import_module(module)
    begin = time.perf_counter()
    stream: Any = job.stream(corpus, job)
    next(stream)
    say(first_batch_seconds=time.perf_counter() - begin)
    for line in sys.stdin:
        seconds = float(line)
        draw(stream, WARM_SECONDS * min(1.0, seconds))
        cpu = cpu_seconds()
        tokens, batches, took = draw(stream, seconds)
        say(
            tokens=tokens,
            batches=batches,
            seconds=took,
            cpu_seconds=cpu_seconds() - cpu,
            anonymous_bytes=anonymous_bytes() - before,
        )
    stream.close()


def draw(stream: Any, seconds: float) -> tuple[int, int, float]:
    """Tokens and batches of about so many seconds, at least one batch, and the seconds it took."""
    tokens = batches = 0
    begin = now = time.perf_counter()
    while now - begin < seconds or not batches:
        tokens += next(stream)
        batches += 1
        now = time.perf_counter()
    return tokens, batches, now - begin


if __name__ == "__main__":
    main(*sys.argv[1:])
