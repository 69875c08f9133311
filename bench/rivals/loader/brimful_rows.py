"""brimful at the tasks of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.job import Job

VARLEN_FIELDS = ("input_ids", "labels", "position_ids", "document_ids")


def stream(source: Any, job: Job, **settings: Any) -> Iterator[int]:
    import brimful as bf

    loader = bf.DataLoader(
        source,
        batch_size=job.batch_size,
        seq_len=SEQ_LEN,
        shuffle=True,
        seed=17,
        num_workers=job.workers,
        **settings,
    )
    while True:
        for batch in loader:
            yield batch.num_tokens


def fixed_rows(corpus: Corpus, job: Job) -> Iterator[int]:
    return stream(corpus.rows_path, job, fields=("input_ids",))


def varlen(corpus: Corpus, job: Job) -> Iterator[int]:
    return stream(corpus.shards, job, layout="varlen", fields=VARLEN_FIELDS)


def packing(corpus: Corpus, job: Job) -> Iterator[int]:
    return stream(corpus.shards, job, packing="streaming")


def jobs() -> list[Job]:
    def job(task: str, stream: Any, workers: int, remark: str = "") -> Job:
        return Job(task, "brimful", stream, workers, "brimful", None, ("torch", "brimful"), remark)

    return [
        *(job("rows8", fixed_rows, workers) for workers in (0, 1, 2)),
        *(job("rows64", fixed_rows, workers) for workers in (0, 1, 2)),
        *(job("varlen", varlen, workers, "Packs, by `streaming`") for workers in (0, 1, 2)),
        *(
            job("packing", packing, workers, "input_ids, labels, position_ids, cu_seqlens")
            for workers in (0, 1)
        ),
    ]
