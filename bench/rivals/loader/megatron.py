"""Megatron-core's GPTDataset: rows cut from documents end to end, through torch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from rivals.loader.corpus import SEQ_LEN, VOCAB_SIZE, Corpus
from rivals.loader.fixed_rows import settings
from rivals.loader.job import Job

MODULE = "megatron.core.datasets.gpt_dataset"
FOLDER = "megatron"


def dataset(corpus: Corpus, cache: Path, *, reset: bool) -> Any:
    """`reset` starts positions anew and takes the loss off the end of each document."""
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.utils import Split

    # What GPTDataset asks a tokenizer for.
    tokenizer = SimpleNamespace(vocab_size=VOCAB_SIZE, eod=0, unique_identifiers={})
    config = GPTDatasetConfig(
        random_seed=17,
        sequence_length=SEQ_LEN,
        blend=([str(corpus.prefix)], None),
        split="1,0,0",
        path_to_cache=str(cache),
        tokenizer=tokenizer,
        reset_position_ids=reset,
        reset_attention_mask=False,
        eod_mask_loss=reset,
        create_attention_mask=False,
    )
    documents = np.arange(len(corpus.offsets) - 1, dtype=np.int32)
    indexed = IndexedDataset(str(corpus.prefix), mmap=True)
    return GPTDataset(indexed, str(corpus.prefix), documents, None, Split.train, config)


def prepare(corpus: Corpus) -> Path:
    """Builds the index of samples, which Megatron keeps in files."""

    def build(folder: Path) -> None:
        for reset in (False, True):
            dataset(corpus, folder, reset=reset)

    return corpus.converted(FOLDER, build)


def endless(loader: Any) -> Iterator[int]:
    while True:
        for batch in loader:
            yield batch["tokens"].numel()


def stream(corpus: Corpus, job: Job, *, reset: bool) -> Iterator[int]:
    from torch.utils.data import DataLoader

    return endless(DataLoader(dataset(corpus, prepare(corpus), reset=reset), **settings(job)))


def fixed_rows(corpus: Corpus, job: Job) -> Iterator[int]:
    return stream(corpus, job, reset=False)


def varlen(corpus: Corpus, job: Job) -> Iterator[int]:
    return stream(corpus, job, reset=True)


def jobs() -> list[Job]:
    def job(task: str, stream: Any, workers: int, remark: str) -> Job:
        return Job(
            task,
            "Megatron-core GPTDataset",
            stream,
            workers,
            "megatron-core",
            prepare,
            ("torch", MODULE),
            remark,
        )

    rows = "Gives labels, a loss mask and positions too"
    varlen_remark = (
        "Rows cut from documents end to end; tokens, labels, a loss mask and positions that start "
        "anew at each end token, no cu_seqlens"
    )
    return [
        *(job("rows8", fixed_rows, workers, rows) for workers in (0, 2)),
        *(job("varlen", varlen, workers, varlen_remark) for workers in (0, 2)),
    ]
