"""verify="checksum": what is read is what was written, or an error that says where it is not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
import xxhash

import brimful as bf
from brimful import _core
from truth import same

MIB = 1 << 20


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_the_hash_is_xxh3_at_every_length(shift):
    data = np.random.default_rng(1).bytes(MIB + 4096)
    for size in [*range(4097), 65_535, MIB - 1, MIB, MIB + 1]:
        part = data[shift : shift + size]
        assert _core.xxh3(part) == xxhash.xxh3_64_intdigest(part), size


def write(folder: Path, masked: bool = False) -> Path:
    """Three shards' worth of tokens in one: four blocks, the last one short."""
    rng = np.random.default_rng(7)
    with bf.ShardWriter(folder, dtype="int32") as writer:
        for _ in range(800):
            n = int(rng.integers(900, 1400))
            tokens = rng.integers(256, 50_000, n)
            writer.add(tokens, loss_mask=rng.integers(0, 2, n) if masked else None)
    return folder / "shard-00000.bin"


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("masked", [False, True])
def test_checked_tokens_are_the_tokens(tmp_path, io, masked):
    write(tmp_path / "a", masked)
    settings = {"seq_len": 512, "batch_size": 4, "shuffle": True}
    plain = bf.DataLoader(tmp_path / "a", **settings)
    checked = bf.DataLoader(tmp_path / "a", io=io, verify="checksum", **settings)
    for _ in range(2):
        assert all(same(a, b) for a, b in zip(plain, checked, strict=True))
    plain.load_state_dict(checked.state_dict())  # verify is no part of the order
    assert sum(1 for _ in plain) == len(checked)


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("block", [0, 2, 3])
@pytest.mark.parametrize("end", ["first", "last"])
def test_a_bad_block_is_an_error_that_names_it_and_its_documents(tmp_path, io, block, end):
    path = write(tmp_path / "a")
    size = path.stat().st_size
    assert 3 * MIB < size < 4 * MIB
    wanted = list(bf.DataLoader(tmp_path / "a", seq_len=512))
    at = block * MIB if end == "first" else min((block + 1) * MIB, size) - 1
    flip(path, at)
    corpus = bf.open(tmp_path / "a")
    loader = bf.DataLoader(corpus, seq_len=512, io=io, verify="checksum")
    found: list[bf.Batch] = []
    with pytest.raises(bf.ReadError) as info:
        found.extend(loader)
    assert all(same(a, b) for a, b in zip(found, wanted, strict=False))
    text = str(info.value)
    assert f"{path} at byte {block * MIB}: block {block} " in text
    first, last = map(int, re.search(r"documents (\d+) to (\d+)", text).groups())
    ends = np.cumsum(corpus.lengths) * 4
    assert first == np.searchsorted(ends, block * MIB, side="right")
    assert last == np.searchsorted(ends, min((block + 1) * MIB, size) - 1, side="right")
    flip(path, at)  # mended: the same stream goes on
    loader.load_state_dict(loader.state_dict())
    found += list(loader)
    assert all(same(a, b) for a, b in zip(found, wanted, strict=True))


def test_each_block_is_compared_once(tmp_path):
    path = write(tmp_path / "a")
    loader = bf.DataLoader(tmp_path / "a", seq_len=512, verify="checksum")
    before = path.stat()
    list(loader)
    flip(path, MIB + 5)
    np.asarray(bf.open(tmp_path / "a")[0])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert sum(1 for _ in loader) > 0


@pytest.mark.parametrize("running", [False, True])
def test_a_file_that_another_loader_took_anew_is_compared_anew(tmp_path, running):
    path = write(tmp_path / "a")
    content = path.read_bytes()
    checked = bf.DataLoader(tmp_path / "a", seq_len=8192, num_workers=0, verify="checksum")
    list(checked)
    iterator = iter(checked) if running else None
    other = bf.DataLoader(tmp_path / "a", seq_len=8192)
    os.truncate(path, 10)
    with pytest.raises(bf.ReadError, match="shrank"):
        list(other)
    path.write_bytes(content)
    flip(path, 2 * MIB + 5)
    list(other)  # which compares nothing
    with pytest.raises(bf.ReadError, match="block 2"):
        list(iterator or checked)


def test_a_loss_mask_that_another_loader_took_anew_is_compared_anew(tmp_path):
    path = write(tmp_path / "a", masked=True).with_name("shard-00000.loss.bin")
    content = path.read_bytes()
    checked = bf.DataLoader(tmp_path / "a", seq_len=8192, verify="checksum")
    list(checked)
    other = bf.DataLoader(tmp_path / "a", seq_len=8192)
    os.truncate(path, 10)
    with pytest.raises(bf.ReadError, match="shrank"):
        list(other)
    # Another mask with the same count of labels for each document.
    mask = bytearray(content)
    first = content.index(b"\0\1", 1)
    mask[first : first + 2] = b"\1\0"
    path.write_bytes(mask)
    list(other)
    with pytest.raises(bf.ReadError, match=path.name):
        list(checked)


@pytest.mark.parametrize("name", ["shard-00000.idx", "shard-00000.loss.bin"])
def test_an_index_and_a_loss_mask_are_compared_whole_at_once(tmp_path, name):
    path = write(tmp_path / "a", masked=True).with_name(name)
    flip(path, 10 if name.endswith("loss.bin") else path.stat().st_size // 2)
    try:
        corpus = bf.open(tmp_path / "a")
    except bf.FormatError:
        return  # an index that contradicts itself does not even open
    with pytest.raises(bf.ReadError, match=name):
        bf.DataLoader(corpus, seq_len=512, verify="checksum")


def test_what_has_no_checksums_is_refused(tmp_path):
    with pytest.raises(bf.PlanError, match="in memory"):
        bf.DataLoader([np.arange(9)], seq_len=4, verify="checksum")
    path = write(tmp_path / "a")
    (tmp_path / "a/manifest.json").unlink()
    with pytest.raises(bf.PlanError, match="shard-00000"):
        bf.DataLoader(tmp_path / "a", seq_len=4, verify="checksum")
    np.arange(9, dtype=np.uint16).tofile(tmp_path / "b.bin")
    with pytest.raises(bf.PlanError, match="ShardWriter"):
        bf.DataLoader(bf.open(tmp_path / "b.bin", dtype="uint16"), seq_len=4, verify="checksum")
    with pytest.raises(bf.PlanError, match="verify is True"):
        bf.DataLoader(path, seq_len=4, verify=True)


def test_documents_of_a_mixture_are_named_by_their_numbers_in_it(tmp_path):
    write(tmp_path / "a")
    path = write(tmp_path / "b")
    flip(path, 0)
    corpus = bf.mix({"a": bf.open(tmp_path / "a"), "b": bf.open(tmp_path / "b")})
    with pytest.raises(bf.ReadError, match="documents 800 to "):
        list(bf.DataLoader(corpus, seq_len=512, verify="checksum"))
