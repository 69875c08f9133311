"""The device layer answers on any machine: with a GPU, with a driver only, or with neither."""

import os
import re
import subprocess
import sys
from pathlib import Path

import brimful as bf

NO_BACKEND = "no CUDA backend"


def libraries_searched(code: str, log: Path) -> str:
    """What the dynamic loader looked for while a fresh interpreter ran `code`."""
    env = {**os.environ, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(log)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert done.stderr == ""
    return "".join(file.read_text() for file in log.parent.glob(f"{log.name}.*"))


def test_why_not_is_empty_exactly_when_available() -> None:
    assert bf.device.available() == (bf.device.why_not() == "")


def test_why_not_is_one_sentence() -> None:
    reason = bf.device.why_not()
    assert reason == "" or re.fullmatch(r"[A-Z](?:(?!\. )[^\n])*[^.]\.", reason)


def test_asking_again_gives_the_same_answer() -> None:
    assert [bf.device.why_not() for _ in range(3)] == [bf.device.why_not()] * 3


def test_a_hidden_device_is_not_available() -> None:
    code = "import brimful as bf; print(bf.device.available(), bool(bf.device.why_not()))"
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
    assert done.stderr == ""


def test_import_does_not_load_the_driver_and_asking_does(tmp_path: Path) -> None:
    imported = libraries_searched("import brimful", tmp_path / "import")
    assert "brimful" in imported
    assert "libcuda" not in imported
    asked = libraries_searched("import brimful; brimful.device.why_not()", tmp_path / "ask")
    assert ("libcuda" in asked) == (NO_BACKEND not in bf.device.why_not())
