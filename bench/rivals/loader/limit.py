"""The limit as a row beside the loaders: plain C loops in one thread (see rivals/limit)."""

from __future__ import annotations

from collections.abc import Iterator

from rivals.limit import FixedRows, Varlen
from rivals.loader.corpus import SEQ_LEN, Corpus
from rivals.loader.job import Job

# A run has a cost of its own in Python, of some microseconds; batches take more.
_TOKENS_A_RUN = 8 << 20


def fixed_rows(corpus: Corpus, job: Job) -> Iterator[int]:
    tokens = corpus.rows.reshape(-1)
    loop = FixedRows(tokens, batch_size=job.batch_size, seq_len=SEQ_LEN)
    return runs(loop, job)


def varlen(corpus: Corpus, job: Job) -> Iterator[int]:
    return runs(Varlen(corpus.tokens, corpus.offsets, slots=job.slots), job)


def runs(loop: FixedRows | Varlen, job: Job) -> Iterator[int]:
    batches = _TOKENS_A_RUN // job.slots
    while True:
        loop.run(batches)
        yield batches * job.slots


LIMIT = "limit: plain C loop"


def jobs() -> list[Job]:
    return [
        Job("rows8", LIMIT, fixed_rows, package="numpy"),
        Job("rows64", LIMIT, fixed_rows, package="numpy"),
        Job("varlen", LIMIT, varlen, package="numpy"),
        Job(
            "packing",
            LIMIT,
            varlen,
            package="numpy",
            remark="Documents end to end, cut where a batch is full; all five columns of varlen",
        ),
    ]
