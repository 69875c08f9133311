"""litdata: its own chunks of tokens, cut into blocks by its TokensLoader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.job import Job

ROWS_A_CHUNK = 4096  # 32 MiB of uint16


def prepare(corpus: Corpus) -> Path:
    def convert(folder: Path) -> None:
        import torch
        from litdata.streaming import Cache, TokensLoader

        # What litdata.optimize does, in this process and without its copies.
        cache = Cache(
            str(folder), chunk_size=ROWS_A_CHUNK * SEQ_LEN, item_loader=TokensLoader(SEQ_LEN)
        )
        for number, row in enumerate(corpus.rows):
            cache[number] = torch.from_numpy(row.copy())
        cache.done()
        cache.merge()

    return corpus.converted("litdata", convert)


def fixed_rows(corpus: Corpus, job: Job) -> Iterator[int]:
    import torch
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(
        str(prepare(corpus)),
        item_loader=TokensLoader(block_size=SEQ_LEN),
        shuffle=True,
        drop_last=True,
        seed=17,
    )
    loader: Any = StreamingDataLoader(
        dataset, batch_size=job.batch_size, num_workers=job.workers, drop_last=True
    )
    while True:
        for batch in loader:
            yield batch.to(torch.int64).numel()


def jobs() -> list[Job]:
    return [
        Job(
            "rows8",
            "litdata TokensLoader",
            fixed_rows,
            workers,
            "litdata",
            prepare,
            ("torch", "litdata"),
            "Stores uint16; the loop widens the batch",
        )
        for workers in (0, 2)
    ]
