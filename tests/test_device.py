"""The device layer answers on any machine: with a GPU, with a driver only, or with neither."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import brimful as bf

NO_BACKEND = "no CUDA backend"
ASK = "import brimful as bf; print(bf.device.available()); print(bf.device.why_not())"


def run(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a driver library that fails on demand."""
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).parent / "fake_driver.c"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source], check=True, timeout=60
    )
    return folder


def test_why_not_is_empty_exactly_when_available() -> None:
    assert bf.device.available() == (bf.device.why_not() == "")


def test_why_not_is_one_sentence() -> None:
    reason = bf.device.why_not()
    assert reason == "" or re.fullmatch(r"[A-Z](?:(?!\. )[^\n])*[^.]\.", reason)


@pytest.mark.parametrize(
    ("version", "status", "words"),
    [
        ("13000", "100", ["no device", "CUDA_VISIBLE_DEVICES"]),
        ("11000", "0", ["not installed", "older than the CUDA"]),
        ("13000", "999", ["cudaErrorUnknown", "999"]),
        ("13000", "803", ["cudaErrorSystemDriverMismatch", "803"]),
    ],
)
def test_a_failing_driver_is_a_reason_not_a_crash(
    fake_driver: Path, version: str, status: str, words: list[str]
) -> None:
    answer = run(
        ASK, LD_LIBRARY_PATH=str(fake_driver), FAKE_VERSION=version, FAKE_STATUS=status
    ).splitlines()
    assert answer[0] == "False"
    assert NO_BACKEND in answer[1] or all(word in answer[1] for word in words)


def test_a_hidden_device_is_not_available() -> None:
    available, reason = run(ASK, CUDA_VISIBLE_DEVICES="").splitlines()
    assert available == "False"
    assert reason


def test_import_does_not_load_the_driver_and_asking_does(tmp_path: Path) -> None:
    def searched(code: str, name: str) -> str:
        run(code, LD_DEBUG="libs", LD_DEBUG_OUTPUT=str(tmp_path / name))
        return "".join(file.read_text() for file in tmp_path.glob(f"{name}.*"))

    imported = searched("import brimful", "import")
    assert "brimful" in imported
    assert "libcuda" not in imported
    asked = searched("import brimful; brimful.device.why_not()", "ask")
    assert ("libcuda" in asked) == (NO_BACKEND not in bf.device.why_not())


def test_c86_work_without_a_device_makes_no_cuda_call() -> None:
    code = """
import numpy as np, brimful as bf
from brimful import _core
loader = bf.DataLoader(bf.open([np.arange(50)] * 40), seq_len=64, num_workers=2)
assert sum(batch.num_tokens for batch in loader) == 2000
before = _core.cuda_calls()
bf.device.why_not()
print(before, _core.cuda_calls())
"""
    before, asked = map(int, run(code).split())
    assert before == 0
    assert (asked > 0) == (NO_BACKEND not in bf.device.why_not())
