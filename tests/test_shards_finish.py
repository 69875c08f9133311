"""The end of a writer: all files at once, or none; whoever ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import brimful as bf
from brimful import manifest, shard_file
from megatron_files import leftovers, read_documents


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with bf.ShardWriter(tmp_path / "s", max_shard_bytes=4) as writer:
            for _ in range(5):
                writer.add([1, 2], [0, 1])
            raise KeyError("the user's")

    with pytest.raises(KeyError):
        write()
    assert not (tmp_path / "s").exists()


def test_a_writer_that_gave_up_takes_nothing(tmp_path: Path) -> None:
    writer = bf.ShardWriter(tmp_path / "s")
    with pytest.raises(KeyError), writer:
        raise KeyError
    with pytest.raises(ValueError, match="given up"):
        writer.add([1])


def test_an_exception_leaves_the_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("mine")
    with pytest.raises(KeyError), bf.ShardWriter(tmp_path):
        raise KeyError
    assert leftovers(tmp_path) == ["README"]


def test_a_failure_while_publishing_takes_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, done = os.rename, []

    def failing(source: Path, target: Path) -> None:
        if target.name == "shard-00001.idx":
            raise OSError(28, "No space left on device")
        done.append(target.name)
        rename(source, target)

    writer = bf.ShardWriter(tmp_path / "s", dtype="uint8", max_shard_bytes=1)
    writer.add([1])
    writer.add([2])
    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="No space"):
        writer.close()
    assert done == ["shard-00000.bin", "shard-00000.idx", "shard-00001.bin"]
    assert not (tmp_path / "s").exists()


def test_a_failure_while_writing_ends_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the user catches the error: leaving the block must not look like success."""

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    writer = bf.ShardWriter(tmp_path / "s")
    with monkeypatch.context() as patch:
        patch.setattr(shard_file.HashedFile, "write", failing)
        with pytest.raises(OSError, match="No space"):
            writer.add(np.zeros(1 << 17, np.int64))
    with pytest.raises(ValueError, match="given up"), writer:
        pass
    assert not (tmp_path / "s").exists()


KILLED = """
import os, sys
import brimful as bf
from brimful import shard_folder
folder, point = sys.argv[1], sys.argv[2]
writer = bf.ShardWriter(folder, dtype="uint8", max_shard_bytes=3)
writer.add([1, 2, 3], [1, 0, 1])
writer.add([4, 5])
writer.add_batch([6, 7], [1, 1])
if point == "writing":
    os._exit(7)
renames, real = 0, os.rename
def rename(source, target):
    global renames
    if renames == int(point):
        os._exit(7)
    renames += 1
    real(source, target)
os.rename = rename
writer.close()
"""


@pytest.mark.parametrize("point", ["writing", "0", "1", "3", "5"])
def test_a_kill_never_leaves_what_looks_finished(tmp_path: Path, point: str) -> None:
    folder = tmp_path / "s"
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), point], check=False)
    assert done.returncode == 7
    names = leftovers(folder)
    finals = [name for name in names if not name.endswith(".brimful-tmp")]
    assert "manifest.json" not in finals
    assert len(finals) == (0 if point == "writing" else int(point))
    with pytest.raises(bf.FormatError, match="unfinished"):
        manifest.find(folder)
    if finals:
        with pytest.raises(FileExistsError, match="remove"):
            bf.ShardWriter(folder)
    else:
        with bf.ShardWriter(folder) as writer:  # takes the leftovers of the dead away
            writer.add([1])
        assert leftovers(folder) == ["manifest.json", "shard-00000.bin", "shard-00000.idx"]


def test_a_forgotten_writer_is_given_up(tmp_path: Path) -> None:
    script = "import brimful as bf, sys; w = bf.ShardWriter(sys.argv[1]); w.add([1] * 100000)"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], check=True)
    assert not (tmp_path / "a").exists()
    writer = bf.ShardWriter(tmp_path / "b")
    writer.add([1])
    del writer
    assert not (tmp_path / "b").exists()


def test_a_folder_with_shards_is_refused(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path) as writer:
        writer.add([1])
    before = {name: (tmp_path / name).read_bytes() for name in leftovers(tmp_path)}
    with pytest.raises(FileExistsError, match="another folder"):
        bf.ShardWriter(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(FileExistsError, match=r"shard-00000\.bin"):
        bf.ShardWriter(tmp_path)
    assert all((tmp_path / name).read_bytes() == before[name] for name in leftovers(tmp_path))


def test_two_writers_in_one_folder(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path) as writer:
        with pytest.raises(FileExistsError, match="at work"):
            bf.ShardWriter(tmp_path)
        writer.add([1])
    assert read_documents(tmp_path) == [[1]]


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(FileExistsError):
        bf.ShardWriter(tmp_path / "x")


def test_close_twice_and_use_after(tmp_path: Path) -> None:
    writer = bf.ShardWriter(tmp_path)
    writer.add([1])
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.add([2])
    assert read_documents(tmp_path) == [[1]]


def test_xxhash_is_asked_for_by_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    with pytest.raises(ImportError, match=r"pip install 'brimful\[prepare\]'"):
        bf.ShardWriter(tmp_path / "s")
    assert not (tmp_path / "s").exists()
