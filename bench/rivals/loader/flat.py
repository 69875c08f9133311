"""Documents flattened into one batch with all five columns: vectorised numpy in torch's loaders.

A batch takes DOCUMENTS whole documents, about as many tokens as 8 x 4,096 on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rivals.loader.corpus import Corpus
from rivals.loader.fixed_rows import as_it_is
from rivals.loader.job import Job

DOCUMENTS = 33


class Flattened:
    """Map-style: a list of document numbers gives one batch, a dict of tensors."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._offsets = corpus.offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, document: int) -> Any:
        return self.__getitems__([document])

    def __getitems__(self, documents: list[int]) -> Any:
        import torch

        begins, ends = self._offsets[documents], self._offsets[np.array(documents) + 1]
        tokens = self._corpus.tokens
        pieces = [tokens[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
        lengths = ends - begins
        cu_seqlens = np.zeros(len(documents) + 1, np.int32)
        np.cumsum(lengths, out=cu_seqlens[1:])
        input_ids = np.empty(int(cu_seqlens[-1]), np.int64)
        np.concatenate(pieces, out=input_ids)
        labels = input_ids.copy()
        labels[cu_seqlens[:-1]] = -100
        columns = {
            "input_ids": input_ids,
            "labels": labels,
            "position_ids": np.arange(len(input_ids)) - np.repeat(cu_seqlens[:-1], lengths),
            "document_ids": np.repeat(np.arange(len(documents), dtype=np.int32), lengths),
            "cu_seqlens": cu_seqlens,
        }
        return {name: torch.from_numpy(column) for name, column in columns.items()}


def endless(loader: Any) -> Iterator[int]:
    while True:
        for batch in loader:
            yield batch["input_ids"].numel()


def settings(job: Job) -> dict[str, Any]:
    return {
        "batch_size": DOCUMENTS,
        "shuffle": True,
        "num_workers": job.workers,
        "persistent_workers": job.workers > 0,
        "collate_fn": as_it_is,
    }


def torch_loader(corpus: Corpus, job: Job) -> Iterator[int]:
    from torch.utils.data import DataLoader

    return endless(DataLoader(Flattened(corpus), **settings(job)))


def stateful(corpus: Corpus, job: Job) -> Iterator[int]:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return endless(StatefulDataLoader(Flattened(corpus), **settings(job)))


def nodes(corpus: Corpus, job: Job) -> Iterator[int]:
    from torch.utils.data import RandomSampler
    from torchdata.nodes import Batcher, Loader, ParallelMapper, Prefetcher, SamplerWrapper

    dataset = Flattened(corpus)
    documents = Batcher(SamplerWrapper(RandomSampler(dataset)), DOCUMENTS)
    batches = ParallelMapper(
        documents, dataset.__getitems__, num_workers=job.workers, method="thread"
    )
    return endless(Loader(Prefetcher(batches, prefetch_factor=2 * job.workers)))


def jobs() -> list[Job]:
    def job(name: str, stream: Any, workers: int, package: str, module: str) -> Job:
        remark = f"{DOCUMENTS} whole documents a batch, in numpy"
        return Job(
            "varlen", name, stream, workers, package, imports=("torch", module), remark=remark
        )

    return [
        *(
            job("torch DataLoader, `__getitems__`", torch_loader, workers, "torch", "torch")
            for workers in (0, 2)
        ),
        *(
            job(
                "StatefulDataLoader",
                stateful,
                workers,
                "torchdata",
                "torchdata.stateful_dataloader",
            )
            for workers in (0, 2)
        ),
        job("torchdata.nodes, threads", nodes, 2, "torchdata", "torchdata.nodes"),
    ]
