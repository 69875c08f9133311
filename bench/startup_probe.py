"""The measurements of bench_startup.py, each run in a process of its own.

    python bench/startup_probe.py NAME FOLDER [arguments]

Prints one JSON object. Times are seconds, memory is bytes.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from process_tree import anonymous_bytes
from rivals.loader.corpus import SEQ_LEN, Corpus

BASE = anonymous_bytes()  # before brimful is imported

import brimful as bf  # noqa: E402

BATCH_SIZE = 8
VARLEN_FIELDS = ("input_ids", "labels", "position_ids", "document_ids")


def loader_of(source: Any, **settings: Any) -> bf.DataLoader:
    return bf.DataLoader(
        source, batch_size=BATCH_SIZE, seq_len=SEQ_LEN, shuffle=True, seed=17, **settings
    )


def clock(call: Any) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begin


def first_batch(corpus: Corpus, threads: str) -> dict[str, float]:
    """From DataLoader(...) on an open corpus to its first batch, and what opening took."""
    opened, open_seconds = clock(lambda: bf.open(corpus.shards))
    first = lambda: next(iter(loader_of(opened, num_workers=int(threads))))  # noqa: E731
    _, seconds = clock(first)
    return {"open_seconds": open_seconds, "first_batch_seconds": seconds}


def resume(corpus: Corpus, place: str) -> dict[str, float]:
    """From load_state_dict() to the next batch, in a loader that has done nothing yet."""
    source = bf.open(corpus.shards)
    before = loader_of(source)
    batches = int(float(place) * len(before))
    state = state_after(before, batches)
    again = loader_of(source)

    def go_on() -> Any:
        again.load_state_dict(state)
        return next(iter(again))

    _, seconds = clock(go_on)
    return {"batches": batches, "resume_seconds": seconds}


def state_after(loader: bf.DataLoader, batches: int) -> dict[str, Any]:
    iterator = iter(loader)
    for _ in range(batches):
        next(iterator)
    state = loader.state_dict()
    loader.close()
    return state


def state(_: Corpus, sources: str) -> dict[str, float]:
    """Size and time of state_dict() over a mixture of so many sources, in mid-run."""
    document = np.arange(64, dtype=np.uint16)
    corpora = {f"source {i}": bf.open([document] * 4) for i in range(int(sources))}
    mixed, mix_seconds = clock(lambda: bf.mix(corpora, weights=dict.fromkeys(corpora, 1.0)))
    loader, loader_seconds = clock(lambda: bf.DataLoader(mixed, seq_len=128))
    iterator = iter(loader)
    next(iterator)
    times = [clock(loader.state_dict)[1] for _ in range(50)]
    return {
        "state_seconds": statistics.median(times),
        "state_bytes": len(json.dumps(loader.state_dict())),
        "mix_seconds": mix_seconds,
        "loader_seconds": loader_seconds,
    }


def memory(corpus: Corpus, threads: str, epochs: str) -> dict[str, float]:
    """Anonymous memory beyond `import torch`, less the ring's slots; `epochs` may be a fraction."""
    loader = loader_of(bf.open(corpus.shards), num_workers=int(threads))
    wanted = int(float(epochs) * len(loader))
    endless = itertools.chain.from_iterable(itertools.repeat(loader))
    largest = 0  # the last batch of an epoch is smaller
    for batch in itertools.islice(endless, wanted):
        largest = max(largest, sum(column.nbytes for column in batch.values()))
    ring = (loader.config.depth + 1) * largest
    return {"bytes": anonymous_bytes() - BASE - ring, "ring_bytes": ring}


def shutdown(corpus: Corpus, threads: str) -> dict[str, float]:
    """close() while threads are filling, the longest of some."""
    source = bf.open(corpus.shards)
    times = []
    for batches in range(1, 21):
        loader = loader_of(source, num_workers=int(threads))
        iterator = iter(loader)
        for _ in range(batches):
            next(iterator)
        times.append(clock(loader.close)[1])
    return {"shutdown_seconds": max(times)}


def next_call(corpus: Corpus, task: str) -> dict[str, float]:
    """next() when the batch is ready: the consumer computes for 300 us between two calls."""
    if task == "rows":
        loader = loader_of(corpus.rows_path, fields=("input_ids",))
    else:
        loader = loader_of(corpus.shards, layout="varlen", fields=VARLEN_FIELDS)
    iterator = iter(loader)
    times = []
    for _ in range(2000):
        batch, seconds = clock(iterator.__next__)
        times.append(seconds)
        until = time.perf_counter() + 300e-6
        while time.perf_counter() < until:
            pass
    del batch
    shares = statistics.quantiles(times[100:], n=100)
    return {"median_seconds": shares[49], "p90_seconds": shares[89], "p99_seconds": shares[98]}


def index(corpus: Corpus) -> dict[str, float]:
    """Opening an index of 100 million documents, beside a plain pass over its bytes by numpy."""
    prefix = corpus.folder / "index" / "many"
    words = np.memmap(prefix.with_suffix(".idx"), np.uint64, "r", shape=(INDEX_BYTES // 8,))
    _, _ = clock(words.sum)  # into the page cache
    _, pass_seconds = clock(words.sum)
    del words
    before = anonymous_bytes()
    opened, seconds = clock(lambda: bf.open(prefix.with_suffix(".bin")))
    assert len(opened) == INDEX_DOCUMENTS
    grown = anonymous_bytes() - before
    _, loader_seconds = clock(lambda: next(iter(loader_of(opened, num_workers=0))))
    return {
        "open_seconds": seconds,
        "pass_seconds": pass_seconds,
        "index_bytes": INDEX_BYTES,
        "grown_bytes": grown,
        "first_batch_seconds": loader_seconds,
    }


INDEX_DOCUMENTS = 100_000_000
TOKENS_EACH = 4
INDEX_BYTES = 34 + 12 * INDEX_DOCUMENTS + 8 * (INDEX_DOCUMENTS + 1)


def write_index(folder: Path) -> None:
    """Megatron's index of documents of TOKENS_EACH tokens; the tokens are a hole in a file."""
    with (folder / "many.idx").open("wb") as file:
        file.write(b"MMIDIDX\0\0" + np.array([1], "<u8").tobytes() + b"\x08")  # uint16
        file.write(np.array([INDEX_DOCUMENTS, INDEX_DOCUMENTS + 1], "<u8").tobytes())
        step = 10_000_000
        for _ in range(0, INDEX_DOCUMENTS, step):
            np.full(step, TOKENS_EACH, "<i4").tofile(file)
        for begin in range(0, INDEX_DOCUMENTS, step):
            (2 * TOKENS_EACH * np.arange(begin, begin + step, dtype="<i8")).tofile(file)
        for begin in range(0, INDEX_DOCUMENTS, step):
            np.arange(begin, begin + step, dtype="<i8").tofile(file)
        np.array([INDEX_DOCUMENTS], "<i8").tofile(file)
    with (folder / "many.bin").open("wb") as file:
        file.truncate(2 * TOKENS_EACH * INDEX_DOCUMENTS)


PROBES = {
    probe.__name__: probe
    for probe in (first_batch, resume, state, memory, shutdown, next_call, index)
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(PROBES[sys.argv[1]](Corpus(Path(sys.argv[2])), *sys.argv[3:])))
