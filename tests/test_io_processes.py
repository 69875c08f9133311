"""Reading by whole processes: their memory, and what several of them do to each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import brimful as bf

MIB = 1 << 20


def start(program: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def answer(process: subprocess.Popen[str]) -> dict[str, int | str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return dict(json.loads(out))


READ_TWICE = """
import json, sys
import brimful as bf
loader = bf.DataLoader(
    bf.open(sys.argv[1], dtype="uint16"), seq_len=4096, packing="concat", window=1, io=sys.argv[2]
)
def read():
    tokens = sum(batch.num_tokens for batch in loader)
    maps = sum(sys.argv[1] in line for line in open("/proc/self/maps"))
    stats = loader.stats()
    return tokens, maps, stats.anonymous_bytes, stats.file_backed_bytes, stats.file_opens
next(iter(loader))
before = loader.stats()
first, second = read(), read()
print(json.dumps({
    "tokens": first[0] + second[0],
    "maps": max(first[1], second[1]),
    "anonymous": second[2] - before.anonymous_bytes,
    "file_backed": second[3] - before.file_backed_bytes,
    "opens": second[4] + loader.stats().file_reopens,
}))
"""


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_c49_pages_of_a_file_are_not_memory_of_the_process(tmp_path: Path, io: str) -> None:
    path = tmp_path / "a.bin"
    with path.open("wb") as file:
        file.truncate(128 * MIB)  # sparse
    found = answer(start(READ_TWICE, path, io))
    assert found["tokens"] == 2 * 64 * MIB
    assert found["anonymous"] < 64 * MIB
    assert (found["maps"], found["opens"]) == (1, 1)
    if io == "mmap":
        assert found["file_backed"] > 100 * MIB
    else:
        assert found["file_backed"] < 16 * MIB


OPEN = """
import json, os, sys
import brimful as bf
corpus = bf.open(sys.argv[1], dtype="uint16", eos=int(sys.argv[2]))
found = {"hash": f"{corpus._native.lengths_hash(0):x}", "tokens": sum(map(len, corpus))}
print(json.dumps(found))
"""


def caches(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "a.bin"}


def open_at_once(path: Path, home: Path, eos: int = 7) -> str:
    """The hash of lengths that eight processes find, all the same."""
    started = [start(OPEN, path, eos, XDG_CACHE_HOME=str(home)) for _ in range(8)]
    found = [answer(process) for process in started]
    assert {one["tokens"] for one in found} == {path.stat().st_size // 2}
    (only,) = {str(one["hash"]) for one in found}
    return only


@pytest.mark.slow
def test_c60_processes_that_start_at_once_find_the_same_documents(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "a.bin"
    tokens = np.random.default_rng(5).integers(0, 50, 40_000, np.uint16)
    tokens.tofile(path)
    first = open_at_once(path, tmp_path / "home")
    made = caches(folder)
    assert len(made) == 1  # and nothing temporary
    for seed in range(2):
        loader = bf.DataLoader(bf.open(path, dtype="uint16", eos=7), seq_len=64, seed=seed)
        assert sum(batch.num_tokens for batch in loader) == len(tokens)
    assert caches(folder) == made  # the order of documents is no part of where they end
    (name,) = made
    (folder / name).write_bytes(made[name][:-9])  # half written, by something else
    assert open_at_once(path, tmp_path / "home") == first
    assert caches(folder) == made
    assert open_at_once(path, tmp_path / "home", eos=8) != first
    assert len(caches(folder)) == 2
    tokens[0] = 7 if tokens[0] != 7 else 6  # the same size, other documents
    tokens.tofile(path)
    assert open_at_once(path, tmp_path / "home") != first


def test_c60_where_nothing_can_be_written_documents_are_found_in_memory(tmp_path: Path) -> None:
    """Not by rights, which do not hold for everyone: the caches' names are those of folders."""
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "a.bin"
    np.random.default_rng(5).integers(0, 50, 40_000, np.uint16).tofile(path)
    wanted = open_at_once(path, tmp_path / "home")
    (name,) = caches(folder)
    (folder / name).unlink()
    (folder / name).mkdir()
    (tmp_path / "no-folder").write_bytes(b"")
    assert open_at_once(path, tmp_path / "no-folder") == wanted
    assert sorted(path.name for path in folder.iterdir()) == ["a.bin", name]
    assert isinstance(bf.open(path, dtype="uint16", eos=7), bf.Corpus)
