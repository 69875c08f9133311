"""Token files that are not in the page cache: what is read of them, and that it is the same."""

import os

import numpy as np
import pytest

import brimful as bf
from brimful.profiling.residency import resident_share

TOKENS = 1 << 20
SEQ_LEN = 1024


@pytest.fixture
def shards(tmp_path):
    """One shard of 4 MiB; token value = position."""
    with bf.ShardWriter(tmp_path / "shards", dtype="int32") as writer:
        for begin in range(0, TOKENS, 2 * SEQ_LEN):
            writer.add(np.arange(begin, begin + 2 * SEQ_LEN, dtype=np.int32))
    return tmp_path / "shards"


def forgotten(shards):
    """The token file, put out of the page cache where its file system can do that."""
    (path,) = shards.glob("*.bin")
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)
    return path


def loader(shards, **settings):
    return bf.DataLoader(
        shards,
        batch_size=4,
        seq_len=SEQ_LEN,
        fields=("input_ids",),
        shuffle=True,
        seed=3,
        **settings,
    )


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_of_a_cold_file_the_first_batch_reads_its_own_documents(shards, io):
    path = forgotten(shards)
    before = resident_share([str(path)])
    batches = iter(loader(shards, io=io, num_workers=0))
    next(batches)
    after = resident_share([str(path)])
    # 16 KiB of 4 MiB are delivered, and pages around them are read.
    assert after - before < 0.25
    batches.close()


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("num_workers", [0, 3])
def test_a_cold_file_gives_the_stream_of_a_warm_one(shards, io, num_workers):
    warm = [batch["input_ids"].tolist() for batch in loader(shards, num_workers=0)]
    forgotten(shards)
    cold = [batch["input_ids"].tolist() for batch in loader(shards, io=io, num_workers=num_workers)]
    assert cold == warm
    assert sorted(token for batch in cold for row in batch for token in row) == list(range(TOKENS))
