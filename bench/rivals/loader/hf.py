"""Hugging Face: datasets in torch's format, and the collator of transformers that flattens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.fixed_rows import settings
from rivals.loader.flat import DOCUMENTS
from rivals.loader.job import Job


def save(table: Any, folder: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    datasets.Dataset(table).save_to_disk(str(folder), max_shard_size="10GB")


def prepare_rows(corpus: Corpus) -> Path:
    def convert(folder: Path) -> None:
        import pyarrow as pa

        tokens = pa.array(corpus.rows.reshape(-1))
        rows = pa.FixedSizeListArray.from_arrays(tokens, SEQ_LEN)
        save(pa.table({"input_ids": rows}), folder)

    return corpus.converted("hf_rows", convert)


def prepare_documents(corpus: Corpus) -> Path:
    def convert(folder: Path) -> None:
        import pyarrow as pa

        offsets = pa.array(corpus.offsets.astype(np.int32))
        documents = pa.ListArray.from_arrays(offsets, pa.array(np.asarray(corpus.tokens)))
        save(pa.table({"input_ids": documents}), folder)

    return corpus.converted("hf_documents", convert)


def fixed_rows(corpus: Corpus, job: Job) -> Iterator[int]:
    import datasets
    from torch.utils.data import DataLoader

    rows = datasets.load_from_disk(str(prepare_rows(corpus))).with_format("torch")
    loader: Any = DataLoader(rows, **settings(job))
    while True:
        for batch in loader:
            yield batch["input_ids"].numel()


def flattening(corpus: Corpus, job: Job) -> Iterator[int]:
    import datasets
    from torch.utils.data import DataLoader
    from transformers import DataCollatorWithFlattening

    documents = datasets.load_from_disk(str(prepare_documents(corpus)))
    collate = DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)
    loader: Any = DataLoader(
        documents, **(settings(job) | {"batch_size": DOCUMENTS, "collate_fn": collate})
    )
    while True:
        for batch in loader:
            yield batch["input_ids"].numel()


def jobs() -> list[Job]:
    modules = ("torch", "datasets")
    return [
        *(
            Job(
                "rows8",
                "datasets, torch format",
                fixed_rows,
                workers,
                "datasets",
                prepare_rows,
                modules,
            )
            for workers in (0, 2)
        ),
        *(
            Job(
                "varlen",
                "DataCollatorWithFlattening of transformers",
                flattening,
                workers,
                "transformers",
                prepare_documents,
                (*modules, "transformers"),
                f"{DOCUMENTS} whole documents a batch, by lists of Python",
            )
            for workers in (0, 2)
        ),
    ]
