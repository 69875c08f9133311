"""brimful at the tasks of the table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.job import Job

VARLEN: dict[str, Any] = {
    "layout": "varlen",
    "fields": ("input_ids", "labels", "position_ids", "document_ids"),
}

TOLD = ("io", "packing", "verify")  # settings that stand in a row's name


def stream(source: Any, job: Job, settings: dict[str, Any]) -> Iterator[int]:
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


def rows(corpus: Corpus, job: Job, **settings: Any) -> Iterator[int]:
    return stream(corpus.rows_path, job, {"fields": ("input_ids",)} | settings)


def documents(corpus: Corpus, job: Job, **settings: Any) -> Iterator[int]:
    return stream(corpus.shards, job, settings)


def jobs() -> list[Job]:
    def job(task: str, source: Any, workers: int, remark: str = "", **settings: Any) -> Job:
        told = [f'{name}="{settings[name]}"' for name in TOLD if name in settings]
        return Job(
            task,
            ", ".join(["brimful", *told]),
            partial(source, **settings),
            workers,
            "brimful",
            imports=("torch", "brimful"),
            remark=remark,
        )

    streaming = "Packs while the stream runs, by `streaming`"
    concat = "Cuts documents as the limit does"
    return [
        *(job("rows8", rows, workers) for workers in (0, 1, 2)),
        job("rows8", rows, 2, io="pread"),
        *(job("rows64", rows, workers) for workers in (0, 1, 2)),
        *(job("varlen", documents, workers, streaming, **VARLEN) for workers in (0, 1, 2)),
        *(
            job("varlen", documents, workers, concat, packing="concat", **VARLEN)
            for workers in (0, 2)
        ),
        job("varlen", documents, 2, streaming, io="pread", **VARLEN),
        job("varlen", documents, 2, streaming, verify="checksum", **VARLEN),
        *(
            job("packing", documents, workers, "input_ids, labels, position_ids, cu_seqlens")
            for workers in (0, 1)
        ),
    ]
