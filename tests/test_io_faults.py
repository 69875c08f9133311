"""Files that are cut, replaced or lost while a loader reads them: an error that names file and
byte, a state that is unharmed, and the same stream once the file is repaired.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import check, document, same

IOS = ["mmap", "pread"]


def shards(folder: Path, lengths: list[int], masked: bool = False) -> Path:
    with bf.ShardWriter(folder, dtype="int64") as writer:
        for i, n in enumerate(lengths):
            writer.add(document(i + 1, n), loss_mask=[1] * n if masked else None)
    return folder / "shard-00000.bin"


def place_of(error: bf.ReadError, path: Path) -> int:
    """The byte that an error about a file names."""
    found = re.search(rf"{re.escape(path.name)} at byte (\d+)", str(error))
    assert found, str(error)
    return int(found[1])


def deliver_until_error(loader: bf.DataLoader) -> tuple[list[bf.Batch], bf.ReadError]:
    found = []
    iterator = iter(loader)
    try:
        for batch in iterator:
            check(batch, loader)
            found.append(batch)
    except bf.ReadError as error:
        with pytest.raises(bf.ReadError):  # and again: nothing comes after it
            next(iterator)
        return found, error
    raise AssertionError("no error")


def go_on(loader: bf.DataLoader) -> list[bf.Batch]:
    loader.load_state_dict(loader.state_dict())
    return list(loader)


def resumed(loader: bf.DataLoader, state: dict[str, Any]) -> Iterator[bf.Batch]:
    loader.load_state_dict(state)
    yield from loader


def assert_same(found: list[bf.Batch], wanted: list[bf.Batch]) -> None:
    assert all(same(a, b) for a, b in zip(found, wanted, strict=True))


def restore_in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def restore_by_renaming(path: Path, content: bytes) -> None:
    other = path.with_name("copy")
    other.write_bytes(content)
    os.replace(other, path)


def restore_anew(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize("restore", [restore_in_place, restore_by_renaming, restore_anew])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("io", IOS)
def test_c59_a_cut_file_is_an_error_and_a_repaired_one_goes_on(tmp_path, io, workers, restore):
    path = shards(tmp_path / "a", [30] * 400)
    settings: dict[str, Any] = {"seq_len": 60, "batch_size": 2, "shuffle": True, "window": 64}
    wanted = list(bf.DataLoader(tmp_path / "a", **settings))
    content = path.read_bytes()
    loader = bf.DataLoader(tmp_path / "a", io=io, num_workers=workers, **settings)
    os.truncate(path, len(content) // 2)
    found, error = deliver_until_error(loader)
    assert place_of(error, path) >= len(content) // 2
    assert_same(found, wanted[: len(found)])
    assert len(found) < len(wanted)
    state = loader.state_dict()
    with pytest.raises(bf.ReadError, match=path.name):  # not repaired yet
        loader.load_state_dict(state)
    restore(path, content)
    assert loader.state_dict() == state
    assert_same(go_on(loader), wanted[len(found) :])
    assert loader.stats().file_reopens > 0
    assert_same(list(bf.DataLoader(loader.corpus, **settings)), wanted)


@settings(max_examples=80)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=60),
    seed=st.integers(0, 9),
    data=st.data(),
    io=st.sampled_from(IOS),
    workers=st.sampled_from([0, 1, 2]),
    packing=st.sampled_from(["concat", "streaming", "best_fit_decreasing"]),
)
def test_c59_no_batch_holds_what_is_gone(
    tmp_path_factory, lengths, seed, data, io, workers, packing
):
    """Files of less than a page: behind a cut they read as zeros, and no signal comes."""
    folder = tmp_path_factory.mktemp("shards") / "a"
    path = shards(folder, lengths)
    corpus = bf.open(folder)
    settings: dict[str, Any] = {"seq_len": 16, "shuffle": True, "seed": seed, "packing": packing}
    wanted = list(bf.DataLoader([corpus[i].copy() for i in range(len(corpus))], **settings))
    loader = bf.DataLoader(corpus, io=io, num_workers=workers, **settings)
    content = path.read_bytes()
    left = data.draw(st.integers(0, len(content) - 1), label="bytes left")
    os.truncate(path, left)
    found: list[bf.Batch] = []
    message = ""
    try:
        found.extend(loader)  # keeps what came before an error
    except bf.ReadError as error:
        message = str(error)
    if not any(content[left:]):  # only zeros are gone, and zeros are what is read
        assert_same(found, wanted[: len(found)])
        return
    assert path.name in message
    assert_same(found, wanted[: len(found)])
    path.write_bytes(content)
    assert_same(go_on(loader), wanted[len(found) :])


@pytest.mark.parametrize("io", IOS)
def test_c59_a_cut_index_is_an_error_and_a_repaired_one_goes_on(tmp_path, io):
    shards(tmp_path / "a", [30] * 3000)
    index = tmp_path / "a/shard-00000.idx"
    settings: dict[str, Any] = {"seq_len": 60, "batch_size": 2, "shuffle": True, "window": 64}
    wanted = list(bf.DataLoader(tmp_path / "a", **settings))
    content = index.read_bytes()
    for size in (0, 34, 5000, len(content) // 2, len(content) - 8):
        loader = bf.DataLoader(tmp_path / "a", io=io, **settings)
        iterator = iter(loader)
        begun = [next(iterator) for _ in range(3)]
        state = loader.state_dict()
        iterator.close()
        os.truncate(index, size)
        with pytest.raises(bf.ReadError, match=index.name):
            begun.extend(resumed(loader, state))
        index.write_bytes(content)
        rest = go_on(loader) if len(begun) > 3 else list(resumed(loader, state))
        assert_same(begun + rest, wanted)


@pytest.mark.parametrize("left", [0, 2000])
def test_c59_a_mixture_of_an_index_that_was_cut_is_an_error(tmp_path, left):
    shards(tmp_path / "a", [30] * 600)
    corpus = bf.open(tmp_path / "a")
    index = tmp_path / "a/shard-00000.idx"
    content = index.read_bytes()
    os.truncate(index, left)
    with pytest.raises(bf.ReadError, match=index.name):
        bf.mix({"a": corpus})
    index.write_bytes(content)
    assert list(bf.mix({"a": corpus}).lengths) == [30] * 600


def test_c59_an_index_of_other_documents_is_no_repair(tmp_path):
    shards(tmp_path / "a", [30] * 100)
    index = tmp_path / "a/shard-00000.idx"
    shards(tmp_path / "b", [20, 40] * 50)
    shards(tmp_path / "c", [30] * 99 + [31])
    loader = bf.DataLoader(tmp_path / "a", seq_len=60)
    state = loader.state_dict()
    os.truncate(index, 20)
    with pytest.raises(bf.ReadError):
        list(loader)
    shutil.copy(tmp_path / "c/shard-00000.idx", index)
    with pytest.raises(bf.FormatError, match="other tokens"):
        loader.load_state_dict(state)
    shutil.copy(tmp_path / "b/shard-00000.idx", index)
    with pytest.raises(bf.StateError, match="length"):  # the lengths are others
        loader.load_state_dict(state)


@pytest.mark.parametrize("io", IOS)
def test_c59_a_cut_loss_mask_is_an_error_and_a_repaired_one_goes_on(tmp_path, io):
    shards(tmp_path / "a", [30] * 400, masked=True)
    path = tmp_path / "a/shard-00000.loss.bin"
    wanted = list(bf.DataLoader(tmp_path / "a", seq_len=60))
    content = path.read_bytes()
    loader = bf.DataLoader(tmp_path / "a", seq_len=60, io=io, window=10)
    os.truncate(path, 300)
    found, error = deliver_until_error(loader)
    assert place_of(error, path) >= 300
    path.write_bytes(content)
    again = list(bf.DataLoader(tmp_path / "a", seq_len=60, window=10))
    assert_same(found + go_on(loader), again)
    assert len(again) == len(wanted)


@pytest.mark.parametrize("io", IOS)
def test_c59_content_that_was_replaced_is_an_error(tmp_path, io):
    path = shards(tmp_path / "a", [30] * 100)
    loader = bf.DataLoader(tmp_path / "a", seq_len=60, io=io)
    content = path.read_bytes()
    path.write_bytes(bytes(8) + content[8:])
    os.utime(path, ns=(1, 1))
    with pytest.raises(bf.ReadError, match="was written to"):
        list(loader)


@pytest.mark.parametrize("io", IOS)
@pytest.mark.parametrize("workers", [0, 2])
def test_c59_an_epoch_that_read_a_file_while_it_was_written_to_has_no_end(tmp_path, io, workers):
    """Small batches come faster than files are looked at; what was missed is found at the end."""
    path = shards(tmp_path / "a", [30] * 4)
    loader = bf.DataLoader(tmp_path / "a", seq_len=30, io=io, num_workers=workers)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    path.write_bytes(np.full(30 * 4, 70_000).tobytes())
    os.utime(path, ns=(1, 1))
    with pytest.raises(bf.ReadError, match=path.name):
        list(iterator)
    with pytest.raises(bf.ReadError, match=path.name):
        next(iterator)
    state = loader.state_dict()
    assert state["cursor"]["epoch"] == 0
    loader.load_state_dict(state)  # the file as it is now
    assert len(list(loader)) in (1, 4)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("io", IOS)
def test_c59_content_that_was_replaced_by_less_is_an_error(tmp_path, io, workers):
    """Also where nothing behind the new end is asked for any more."""
    path = shards(tmp_path / "a", [30] * 400)
    size = path.stat().st_size
    for missing in (8, 300 * 30 * 8):
        loader = bf.DataLoader(tmp_path / "a", seq_len=30, io=io, num_workers=workers)
        iterator = iter(loader)
        found = list(itertools.islice(iterator, 390 if workers else 90))
        content = path.read_bytes()
        path.write_bytes(np.full((size - missing) // 8, 70_000).tobytes())
        time.sleep(0.001)  # so that a look at the file is due
        with pytest.raises(bf.ReadError, match=path.name):
            found.extend(iterator)
        if workers == 0:  # threads may be in the middle of a batch when the file is written
            assert len(found) == 90
        path.write_bytes(content)
        assert len(found) + len(go_on(loader)) == 400


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["uint16", "int32", "int64"]),
    at=st.integers(0, 799),
    kept=st.integers(1, 7),
    length=st.sampled_from([1, 2, 5, 40]),
    io=st.sampled_from(IOS),
    workers=st.sampled_from([0, 2]),
    grows=st.booleans(),
)
def test_c59_a_token_that_was_cut_in_two_is_never_delivered(
    tmp_path_factory, kind, at, kept, length, io, workers, grows
):
    """Its lower bytes are left, with zeros behind them up to the page's end."""
    folder = tmp_path_factory.mktemp("shards") / "a"
    dtype = np.dtype(kind)
    token = {"uint16": 40_001, "int32": 0x0102_0304, "int64": 0x0102_0304_0506_0708}[kind]
    with bf.ShardWriter(folder, dtype=kind) as writer:
        for _ in range(800 // length):
            writer.add(np.full(length, token, dtype))
    path = folder / "shard-00000.bin"
    content = path.read_bytes()
    loader = bf.DataLoader(folder, seq_len=length, io=io, num_workers=workers, window=8)
    os.truncate(path, at * dtype.itemsize + min(kept, dtype.itemsize - 1))
    if grows:
        os.truncate(path, len(content))
    found: list[bf.Batch] = []
    with pytest.raises(bf.ReadError, match=path.name):
        found.extend(loader)
    assert all((batch["input_ids"] == token).all() for batch in found)
    path.write_bytes(content)
    assert len(found) + len(go_on(loader)) == 800 // length


def test_c59_what_was_cut_and_grew_again_is_an_error_in_reads_too(tmp_path):
    path = shards(tmp_path / "a", [30] * 400)
    loader = bf.DataLoader(tmp_path / "a", seq_len=30, io="pread", num_workers=0)
    iterator = iter(loader)
    for _ in range(5):
        check(next(iterator), loader)
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)
    with pytest.raises(bf.ReadError, match="was written to"):
        next(iterator)


def test_c59_a_state_can_be_saved_while_an_index_is_broken(tmp_path):
    shards(tmp_path / "a", [30] * 100)
    index = tmp_path / "a/shard-00000.idx"
    content = index.read_bytes()
    wanted = list(bf.DataLoader(tmp_path / "a", seq_len=60))
    loader = bf.DataLoader(tmp_path / "a", seq_len=60)
    iterator = iter(loader)
    found = [next(iterator) for _ in range(7)]
    os.truncate(index, 20)
    state = loader.state_dict()  # the first that anyone asks for
    iterator.close()
    with pytest.raises(bf.ReadError, match=index.name):
        list(loader)
    assert loader.state_dict()["fingerprint"] == state["fingerprint"]
    index.write_bytes(content)
    assert_same(found + list(resumed(loader, state)), wanted)


def test_c59_a_loader_made_anew_takes_a_loss_mask_that_was_repaired(tmp_path):
    shards(tmp_path / "a", [3000] * 9, masked=True)
    path = tmp_path / "a/shard-00000.loss.bin"
    content = path.read_bytes()
    corpus = bf.open(tmp_path / "a")
    os.truncate(path, 10)
    restore_by_renaming(path, content)  # the corpus has the one that was cut
    settings: dict[str, Any] = {"seq_len": 4000, "verify": "checksum"}
    with pytest.raises(bf.ReadError, match=path.name):
        bf.DataLoader(corpus, **settings)
    assert [batch.num_tokens for batch in bf.DataLoader(corpus, **settings)] == [3000] * 9


def test_c59_a_name_that_went_to_another_file_leaves_the_open_one_as_it_was(tmp_path):
    path = shards(tmp_path / "a", [30] * 100)
    wanted = list(bf.DataLoader(tmp_path / "a", seq_len=60))
    for io in IOS:
        loader = bf.DataLoader(tmp_path / "a", seq_len=60, io=io)
        restore_by_renaming(path, bytes(path.stat().st_size))
        assert_same(list(loader), wanted)
        restore_by_renaming(path, np.concatenate([document(i + 1, 30) for i in range(100)]).data)


@pytest.mark.parametrize("io", IOS)
@pytest.mark.parametrize("name", ["shard-00000.idx", "shard-00000.loss.bin"])
@pytest.mark.parametrize("cut", [36, 200, 700, 1000, 1600])
def test_c59_a_small_file_that_was_cut_before_its_name_was_repaired_is_an_error(
    tmp_path, io, name, cut
):
    """Behind the cut it reads as zeros, and its name stands for a file that is whole."""
    shards(tmp_path / "a", [9] * 120, masked=True)
    path = tmp_path / "a" / name
    content = path.read_bytes()
    wanted = list(bf.DataLoader(tmp_path / "a", seq_len=60))
    loader = bf.DataLoader(tmp_path / "a", seq_len=60, io=io)
    os.truncate(path, cut)
    restore_by_renaming(path, content)
    with pytest.raises(bf.ReadError, match=name):
        list(loader)
    assert_same(list(loader), wanted)


@pytest.mark.parametrize("io", IOS)
@pytest.mark.parametrize("fault", ["gone", "a folder", "longer", "other content"])
def test_c59_a_file_that_takes_turns_must_be_the_same_when_its_turn_comes(tmp_path, io, fault):
    """Beyond the caps on open files, one is opened again when it is needed."""
    files = 700
    for i in range(files):
        document(i + 1, 20).tofile(tmp_path / f"{i:04}.bin")
    settings: dict[str, Any] = {"seq_len": 20, "shuffle": True}
    corpus = bf.open(tmp_path, dtype="int64")
    twice = bf.DataLoader(corpus, **settings)
    wanted = list(twice) + list(twice)
    loader = bf.DataLoader(corpus, io=io, **settings)
    path = tmp_path / f"{files - 1:04}.bin"
    content = path.read_bytes()
    before = path.stat()
    path.unlink()
    if fault == "a folder":
        path.mkdir()
    elif fault != "gone":
        path.write_bytes(content + bytes(8) if fault == "longer" else content[::-1])
    found: list[bf.Batch] = []
    with pytest.raises(bf.ReadError, match=f"{path.name} at byte"):
        found.extend(itertools.chain(loader, loader))  # in the first what is open makes room
    if path.is_dir():
        path.rmdir()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    found += go_on(loader)
    assert_same(found, wanted[: len(found)])
    assert len(found) in (files, 2 * files)


def test_documents_are_readable_again_after_a_repair(tmp_path):
    path = shards(tmp_path / "a", [3000] * 4)
    corpus = bf.open(tmp_path / "a")
    kept = corpus[3]
    content = path.read_bytes()
    os.truncate(path, 4096)
    with pytest.raises(bf.ReadError, match=path.name):
        corpus[3]
    restore_anew(path, content)
    loader = bf.DataLoader(corpus, seq_len=4000)
    assert [batch.num_tokens for batch in loader] == [3000] * 4
    np.testing.assert_array_equal(kept, document(4, 3000))  # at the same address
