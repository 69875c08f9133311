"""What bench_loader.py needs to know of a loader at a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rivals.loader.corpus import SEQ_LEN, Corpus


@dataclass(frozen=True)
class Task:
    """A job that several loaders do, and `title`, which says what it is."""

    title: str
    batch_size: int
    cores: int | None = None
    """How many cores a loader and its workers may use; None for all."""

    @property
    def slots(self) -> int:
        """Places of a batch."""
        return self.batch_size * SEQ_LEN


TASKS = {
    "rows8": Task("Fixed rows, 8 x 4,096, int64, shuffled", 8),
    "rows64": Task("Fixed rows, 64 x 4,096, int64, shuffled", 64),
    "varlen": Task(
        "Varlen, 8 x 4,096 tokens: input_ids, labels, position_ids, document_ids, cu_seqlens", 8
    ),
    "packing": Task("Packing while the stream runs, rows of 8 x 4,096, on one core", 8, cores=1),
}


@dataclass(frozen=True)
class Job:
    """One row of the table: a loader at one of TASKS."""

    task: str
    name: str
    stream: Callable[[Corpus, Job], Iterator[int]]
    """Opens the corpus and gives, endlessly, how many real tokens are in the batch it just got; the
    batch lives until the next one is asked for. Everything but imports of packages is timed."""
    workers: int = 0
    """Threads or processes, as the loader has them."""
    package: str = "torch"
    """Distribution whose version the table names."""
    prepare: Callable[[Corpus], Path] | None = None
    """Converts the corpus into the loader's own format, once, and gives its folder; not timed."""
    imports: tuple[str, ...] = ()
    """Modules that are imported before the clock runs."""
    remark: str = ""
    """What it does differently from the task."""

    @property
    def key(self) -> str:
        return f"{self.task}/{self.name}/{self.workers}"

    @property
    def batch_size(self) -> int:
        return TASKS[self.task].batch_size

    @property
    def slots(self) -> int:
        return TASKS[self.task].slots
