"""grain: rows or packed documents from a source that maps the file; workers are processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.fixed_rows import Rows
from rivals.loader.job import Job

PACKING_BINS = 64


class RowSource(Rows):
    """int64 arrays; pickled, as it is for workers, it takes its path along and no tokens."""

    def __getitem__(self, index: int) -> Any:
        return self.rows()[index].astype(np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rows": None}


class DocumentSource:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._corpus: Corpus | None = None

    def corpus(self) -> Corpus:
        if self._corpus is None:
            self._corpus = Corpus(self._folder)
        return self._corpus

    def __len__(self) -> int:
        return len(self.corpus().offsets) - 1

    def __getitem__(self, document: int) -> Any:
        begin, end = self.corpus().offsets[document : document + 2]
        # It packs no document that is longer than a row.
        end = min(end, begin + SEQ_LEN)
        return {"input_ids": self.corpus().tokens[begin:end].astype(np.int64)}

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder, "_corpus": None}


def batches(dataset: Any, job: Job) -> Any:
    """Batched, and in worker processes where the row has workers."""
    import grain

    dataset = dataset.batch(job.batch_size, drop_remainder=True)
    if job.workers:
        dataset = dataset.mp_prefetch(grain.multiprocessing.MultiprocessingOptions(job.workers))
    return dataset


def fixed_rows(corpus: Corpus, job: Job) -> Iterator[int]:
    import grain

    rows = grain.MapDataset.source(RowSource(corpus.rows_path)).seed(17).shuffle().repeat(None)
    read = grain.ReadOptions(num_threads=0)
    for batch in batches(rows.to_iter_dataset(read), job):
        yield batch.size


def packing(corpus: Corpus, job: Job) -> Iterator[int]:
    import grain

    documents = grain.MapDataset.source(DocumentSource(corpus.folder)).seed(17).shuffle()
    read = grain.ReadOptions(num_threads=0)
    packed = grain.experimental.FirstFitPackIterDataset(
        documents.repeat(None).to_iter_dataset(read),
        length_struct={"input_ids": SEQ_LEN},
        num_packing_bins=PACKING_BINS,
    )
    for batch in batches(packed, job):
        yield int(np.count_nonzero(batch["input_ids_segment_ids"]))


def jobs() -> list[Job]:
    def job(task: str, name: str, stream: Any, workers: int, remark: str = "") -> Job:
        return Job(task, name, stream, workers, "grain", None, ("torch", "grain"), remark)

    first_fit = (
        f"First fit in {PACKING_BINS} bins, documents cut to a row; tokens, segment ids, positions"
    )
    return [
        *(job("rows8", "grain", fixed_rows, workers) for workers in (0, 2)),
        *(job("varlen", "grain, first fit", packing, workers, first_fit) for workers in (0, 2)),
        job("packing", "grain, first fit", packing, 0, first_fit),
    ]
