"""Killed at any moment: nothing is left behind, and the next start works as the first one did."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import brimful as bf
from programs import source

# Opens, finds the documents by their end token, keeps that in a cache file, iterates; then again.
PROGRAM = """
path = sys.argv[1]
print("ready", flush=True)
while True:
    corpus = bf.open(path, dtype="uint16", eos=0)
    assert len(corpus) == 1000
    l = bf.DataLoader(corpus, seq_len=64, batch_size=4, shuffle=True, num_workers=3)
    assert sum(batch.num_tokens for batch in l) == 8000
    print("epoch", flush=True)
    os.unlink(path + ".end-0.documents")
"""


@pytest.fixture
def start(tmp_path):
    """Starts the program on a file of its own, with nothing but `tmp_path` to leave things in."""
    (tmp_path / "temporary").mkdir()
    tokens = np.tile(np.arange(7, -1, -1, dtype=np.uint16), 1000)
    tokens.tofile(tmp_path / "tokens.bin")
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "temporary"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
    }
    processes = []

    def start_one():
        process = subprocess.Popen(
            [sys.executable, "-c", source(PROGRAM), str(tmp_path / "tokens.bin")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        processes.append(process)
        return process

    yield start_one
    for process in processes:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == line + "\n"


@pytest.mark.slow
def test_c50_nothing_is_left_of_a_killed_process_and_the_next_one_starts(start, tmp_path):
    rng = random.Random(1)
    for _ in range(20):
        process = start()
        said(process, "ready")
        said(process, "epoch")
        for number in os.listdir(f"/proc/{process.pid}/fd"):
            try:
                file = os.readlink(f"/proc/{process.pid}/fd/{number}")
            except FileNotFoundError:
                continue  # closed meanwhile
            assert not file.startswith("/dev/shm"), file
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert "/dev/shm" not in maps
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
        assert left <= {"tokens.bin", "tokens.bin.end-0.documents"}, left


def test_c50_eight_processes_started_at_once_all_work(start):
    processes = [start() for _ in range(8)]
    for line in ("ready", "epoch"):
        for process in processes:
            said(process, line)


def test_a_cache_is_written_where_files_need_a_name_from_the_start(tmp_path, monkeypatch):
    tokens = tmp_path / "tokens.bin"
    np.tile(np.arange(7, -1, -1, dtype=np.uint16), 10).tofile(tokens)
    monkeypatch.setattr(os, "O_TMPFILE", -1)  # as a file system that does not know it: refused
    assert len(bf.open(tokens, dtype="uint16", eos=0)) == 10
    assert sorted(os.listdir(tmp_path)) == ["tokens.bin", "tokens.bin.end-0.documents"]
