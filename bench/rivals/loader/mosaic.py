"""MosaicML Streaming: its own shards (MDS), a row each, through torch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.fixed_rows import endless
from rivals.loader.job import Job


def prepare(corpus: Corpus) -> Path:
    def convert(folder: Path) -> None:
        from rivals.loader.streaming_import import MDSWriter

        columns = {"tokens": f"ndarray:uint16:{SEQ_LEN}"}
        with MDSWriter(out=str(folder), columns=columns, size_limit=1 << 26) as writer:
            for row in corpus.rows:
                writer.write({"tokens": np.asarray(row)})

    return corpus.converted("mosaic", convert)


def fixed_rows(corpus: Corpus, job: Job) -> Iterator[int]:
    import torch
    from torch.utils.data import DataLoader

    from rivals.loader.streaming_import import StreamingDataset, clean_stale_shared_memory

    class Tokens(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, index: Any) -> Any:
            return torch.from_numpy(super().__getitem__(index)["tokens"].astype(np.int64))

    dataset = Tokens(
        local=str(prepare(corpus)), shuffle=True, shuffle_seed=17, batch_size=job.batch_size
    )
    loader = DataLoader(
        dataset,
        batch_size=job.batch_size,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
        drop_last=True,
    )
    try:
        yield from endless(loader)
    finally:
        clean_stale_shared_memory()  # else its names stay behind in /dev/shm


def jobs() -> list[Job]:
    return [
        Job(
            "rows8",
            "MosaicML Streaming",
            fixed_rows,
            workers,
            "mosaicml-streaming",
            prepare,
            ("torch", "rivals.loader.streaming_import"),
        )
        for workers in (0, 2)
    ]
