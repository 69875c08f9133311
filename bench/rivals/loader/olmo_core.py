"""OLMo-core: rows that its best fit decreasing packs beforehand, through its own loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rivals.loader.corpus import SEQ_LEN, VOCAB_SIZE, Corpus
from rivals.loader.job import Job

EOS = VOCAB_SIZE  # a token that is nowhere else: it finds documents by it
PAD = VOCAB_SIZE + 1


def dataset(folder: Path) -> Any:
    from olmo_core.data.numpy_dataset import NumpyPackedFSLDataset
    from olmo_core.data.types import LongDocStrategy

    packed = NumpyPackedFSLDataset(
        folder / "tokens.npy",
        sequence_length=SEQ_LEN,
        pad_token_id=PAD,
        eos_token_id=EOS,
        vocab_size=PAD + 1,
        dtype=np.uint16,
        generate_doc_lengths=True,
        long_doc_strategy=LongDocStrategy.fragment,
    )
    packed.work_dir = folder
    return packed


def prepare(corpus: Corpus) -> Path:
    def convert(folder: Path) -> None:
        tokens = np.array(corpus.tokens)
        tokens[corpus.offsets[1:] - 1] = EOS
        tokens.tofile(folder / "tokens.npy")  # no header, whatever its name says

    folder = corpus.converted("olmo_core", convert)
    dataset(folder).prepare()  # packs; what it finds in the folder it does not make again
    return folder


def packing(corpus: Corpus, job: Job) -> Iterator[int]:
    from olmo_core.data.collator import DataCollator
    from olmo_core.data.data_loader import NumpyDataLoaderBase

    folder = prepare(corpus)
    loader: Any = NumpyDataLoaderBase.wrap_numpy_dataset(
        dataset(folder),
        global_batch_size=job.slots,
        collator=DataCollator(pad_token_id=PAD),
        work_dir=folder,
        seed=17,
        num_workers=job.workers,
    )
    epoch = 0
    while True:
        epoch += 1
        loader.reshuffle(epoch=epoch, in_memory=True)
        for batch in loader:
            yield int((batch["input_ids"] != PAD).sum())
        loader.reset()


def jobs() -> list[Job]:
    return [
        Job(
            task,
            "OLMo-core, packed",
            packing,
            workers,
            "ai2-olmo-core",
            prepare,
            ("torch", "olmo_core.data"),
            "Packs all documents beforehand, into files; gives tokens and lengths of documents",
        )
        for task, workers in (("varlen", 2), ("packing", 0))
    ]
