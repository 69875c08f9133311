"""torch's DataLoader and torchdata's loaders over rows of one length, as people write them.

Rows begin and end anywhere in a document, and boundaries are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.job import Job


class Rows:
    """Map-style dataset: item i is row i as int64 [SEQ_LEN]. The map is opened where it is used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: Any = None
        self._len = len(np.load(path, mmap_mode="r"))

    def __len__(self) -> int:
        return self._len

    def rows(self) -> Any:
        if self._rows is None:
            self._rows = np.load(self._path, mmap_mode="r")
        return self._rows

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.from_numpy(self.rows()[index].astype(np.int64))


class BatchedRows(Rows):
    """The same with torch's batched access: a list of indices gives int64 [batch, SEQ_LEN]."""

    def __getitems__(self, indices: list[int]) -> Any:
        import torch

        rows = self.rows()
        batch = np.empty((len(indices), SEQ_LEN), np.int64)
        for row, index in zip(batch, indices, strict=True):
            row[:] = rows[index]
        return torch.from_numpy(batch)


def as_it_is(batch: Any) -> Any:
    return batch


def endless(loader: Any) -> Iterator[int]:
    while True:
        for batch in loader:
            yield batch.numel()


def torch_loader(corpus: Corpus, job: Job) -> Iterator[int]:
    from torch.utils.data import DataLoader

    return endless(DataLoader(Rows(corpus.rows_path), **settings(job)))


def torch_batched(corpus: Corpus, job: Job) -> Iterator[int]:
    from torch.utils.data import DataLoader

    dataset = BatchedRows(corpus.rows_path)
    return endless(DataLoader(dataset, collate_fn=as_it_is, **settings(job)))


def stateful(corpus: Corpus, job: Job) -> Iterator[int]:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return endless(StatefulDataLoader(Rows(corpus.rows_path), **settings(job)))


def settings(job: Job) -> dict[str, Any]:
    return {
        "batch_size": job.batch_size,
        "shuffle": True,
        "drop_last": True,
        "num_workers": job.workers,
        "persistent_workers": job.workers > 0,
    }


def nodes(corpus: Corpus, job: Job) -> Iterator[int]:
    from torch.utils.data import RandomSampler
    from torchdata.nodes import Batcher, Loader, ParallelMapper, Prefetcher, SamplerWrapper

    dataset = BatchedRows(corpus.rows_path)
    indices = Batcher(SamplerWrapper(RandomSampler(dataset)), job.batch_size, drop_last=True)
    batches = ParallelMapper(
        indices, dataset.__getitems__, num_workers=job.workers, method="thread"
    )
    return endless(Loader(Prefetcher(batches, prefetch_factor=2 * job.workers)))


def get_batch(corpus: Corpus, job: Job) -> Iterator[int]:
    import torch

    tokens = corpus.rows.reshape(-1)
    while True:
        begins = torch.randint(len(tokens) - SEQ_LEN, (job.batch_size,)).tolist()
        batch = torch.stack(
            [torch.from_numpy(tokens[b : b + SEQ_LEN].astype(np.int64)) for b in begins]
        )
        yield batch.numel()


def jobs() -> list[Job]:
    torch, data = ("torch",), ("torch", "torchdata.stateful_dataloader")
    both = ("rows8", "rows64")
    return [
        *(
            Job("rows8", "torch DataLoader", torch_loader, workers, imports=torch)
            for workers in (0, 2)
        ),
        *(
            Job(task, "torch DataLoader, `__getitems__`", torch_batched, workers, imports=torch)
            for task in both
            for workers in (0, 2)
        ),
        *(
            Job("rows8", "StatefulDataLoader", stateful, workers, "torchdata", imports=data)
            for workers in (0, 2)
        ),
        *(
            Job(
                task,
                "torchdata.nodes, threads",
                nodes,
                2,
                "torchdata",
                imports=("torch", "torchdata.nodes"),
            )
            for task in both
        ),
        Job(
            "rows8",
            "get_batch of nanoGPT",
            get_batch,
            imports=torch,
            remark="Rows begin anywhere, drawn with replacement: no epochs",
        ),
    ]
