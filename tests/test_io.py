"""Where tokens come from: mapped files and plain reads give the same, and files are opened once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from shard_files import llmc_bytes
from truth import all_pieces, check, document, same

IOS = ["mmap", "pread"]
DTYPES = ["uint8", "int8", "uint16", "int16", "int32", "int64"]


def write_shards(
    folder: Path, lengths: list[int], dtype: str = "int64", masks: list[Any] | None = None
) -> None:
    with bf.ShardWriter(folder, dtype=dtype) as writer:
        for i, n in enumerate(lengths):
            tokens = document(i, n) % 100 if dtype != "int64" else document(i, n)
            writer.add(tokens, loss_mask=None if masks is None else masks[i][:n])


@pytest.mark.filterwarnings("ignore:a bad document")  # it is one either way
@settings(max_examples=60)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), masked=st.booleans(), shuffle=st.booleans())
def test_c59_reads_give_the_tokens_that_maps_give(tmp_path_factory, data, dtype, masked, shuffle):
    lengths = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=40))
    bits = st.lists(st.integers(0, 1), min_size=40, max_size=40)
    masks = [data.draw(bits) for _ in lengths] if masked else None
    folder = tmp_path_factory.mktemp("shards") / "a"
    write_shards(folder, lengths, dtype, masks)
    corpus = bf.open(folder)
    vocab_size = data.draw(st.sampled_from([None, 90]))
    loaders = [
        bf.DataLoader(
            corpus,
            seq_len=data.draw(st.shared(st.integers(1, 24), key="seq_len")),
            batch_size=2,
            num_workers=workers,
            shuffle=shuffle,
            window=16,
            io=io,
            vocab_size=vocab_size,
            fields=["input_ids", "labels", "loss_weights"],
        )
        for io, workers in (("mmap", 0), ("pread", 0), ("pread", 2))
    ]
    for mapped, read, by_threads in zip(*loaders, strict=True):
        assert same(mapped, read)
        assert same(mapped, by_threads)


@pytest.mark.parametrize("io", IOS)
@pytest.mark.parametrize("kind", ["npy", "llm.c", "raw", "megatron", "memory"])
def test_c59_every_format_is_read_either_way(tmp_path, kind, io):
    path = tmp_path / "a.bin"
    rows = np.stack([document(i, 50, "uint16", 100) for i in range(40)])
    if kind == "npy":
        path = tmp_path / "a.npy"
        np.save(path, rows)
    elif kind == "llm.c":
        path.write_bytes(llmc_bytes(rows.ravel()))
    elif kind == "raw":
        rows.tofile(path)
    source: Any = path
    if kind == "megatron":
        source = tmp_path / "shards"
        with bf.ShardWriter(source, dtype="uint16") as writer:
            for row in rows:
                writer.add(row)
    elif kind == "memory":
        source = list(rows)
    corpus = bf.open(source, dtype="uint16" if kind == "raw" else None)
    loader = bf.DataLoader(corpus, seq_len=32, io=io, shuffle=True)
    count = 0
    for batch in loader:
        check(batch, loader)
        count += batch.num_tokens
    assert count == rows.size


def test_io_is_one_of_two(tmp_path):
    with pytest.raises(bf.PlanError, match="io is 'direct'"):
        bf.DataLoader([np.arange(9)], seq_len=4, io="direct")


def test_a_state_is_good_for_the_other_way_of_reading(tmp_path):
    write_shards(tmp_path / "a", [7] * 60)
    loaders = [bf.DataLoader(tmp_path / "a", seq_len=9, io=io, shuffle=True) for io in IOS]
    uninterrupted = list(loaders[0])
    iterator = iter(loaders[1])
    for _ in range(5):
        next(iterator)
    other = bf.DataLoader(tmp_path / "a", seq_len=9, shuffle=True)
    other.load_state_dict(loaders[1].state_dict())
    assert all(same(a, b) for a, b in zip(uninterrupted[5:], other, strict=True))


def open_files(folder: Path) -> list[str]:
    """Files of a folder that this process has open, by descriptor."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        target = os.path.realpath(f"/proc/self/fd/{number}")
        if target.startswith(str(folder)):
            found.append(target)
    return found


def mapped_files(folder: Path) -> set[str]:
    maps = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[-1] for line in maps if str(folder) in line}


@pytest.mark.parametrize("io", IOS)
def test_c59_four_files_are_opened_once_for_a_thousand_batches(tmp_path, io):
    for i in range(4):
        document(i, 4000, "int32").tofile(tmp_path / f"{i}.bin")
    corpus = bf.open(tmp_path, dtype="int32", eos=7)
    loader = bf.DataLoader(corpus, seq_len=16, io=io, shuffle=True, window=1)
    again = bf.DataLoader(bf.open(tmp_path, dtype="int32", eos=7), seq_len=16, io=io)
    assert sum(1 for _ in loader) >= 1000
    assert sum(1 for _ in again) >= 1000
    for stats in (loader.stats(), again.stats()):
        assert (stats.file_opens, stats.file_reopens) == (8, 0)  # tokens, and where documents end
    assert len(open_files(tmp_path)) == 4
    later = loader.stats(lap=True)
    assert later.file_opens == 8
    assert loader.stats(lap=True).file_opens == 0
    del corpus, loader, again
    assert open_files(tmp_path) == []


def test_a_file_is_one_by_any_name(tmp_path):
    write_shards(tmp_path / "a", [5, 6])
    (tmp_path / "b").symlink_to(tmp_path / "a")
    os.link(tmp_path / "a/shard-00000.bin", tmp_path / "other.bin")
    os.link(tmp_path / "a/shard-00000.idx", tmp_path / "other.idx")
    corpora = [bf.open(tmp_path / name) for name in ("a", "b", "other.bin")]
    assert len(open_files(tmp_path)) == 1  # of tokens; an index is mapped
    assert {len(corpus) for corpus in corpora} == {2}
    both = bf.DataLoader(bf.mix({"a": corpora[0], "b": corpora[2]}), seq_len=4)
    assert both.stats().file_opens == 2


@pytest.mark.parametrize("io", IOS)
def test_c59_thousands_of_files_take_turns(tmp_path, io):
    """More files than stay mapped, and far more than stay open."""
    files = 700
    for i in range(files):
        document(i, 20).tofile(tmp_path / f"{i:04}.bin")
    corpus = bf.open(tmp_path, dtype="int64")
    assert len(open_files(tmp_path)) <= 128
    mapped = len(mapped_files(tmp_path))
    assert 400 < mapped <= 512  # other tests may have left files open
    kept = corpus[files - 1]
    loader = bf.DataLoader(corpus, seq_len=20, batch_size=8, io=io, shuffle=True)
    for _ in range(2):
        found = []
        for batch in loader:
            check(batch, loader)
            found += all_pieces([batch])
        assert sorted(found) == [(i, 0, 20) for i in range(files)]
    assert len(open_files(tmp_path)) <= 128 + 64
    assert len(mapped_files(tmp_path)) <= 512 + 64 + 1
    stats = loader.stats()
    assert stats.file_opens == files
    beyond = files - (mapped if io == "mmap" else 128)
    assert beyond <= stats.file_reopens <= 2 * files
    np.testing.assert_array_equal(kept, document(files - 1, 20))
    np.testing.assert_array_equal(corpus[600], document(600, 20))
