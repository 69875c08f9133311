"""The command line: every command on small data, its JSON, its errors, and its width."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import brimful as bf
from brimful.cli.app import app

LENGTHS = np.random.default_rng(5).integers(0, 200, 120)


def run(*args: object, width: int = 80) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": str(width)})


def run_json(*args: object) -> Any:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def assert_one_line_error(result: Any, *words: str) -> None:
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("brimful: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def assert_fits(text: str, width: int = 80) -> None:
    assert text.strip()
    assert [line for line in text.splitlines() if len(line) > width] == []
    assert "…" not in text


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Document i holds i * 1000, i * 1000 + 1, ..."""
    folder = tmp_path_factory.mktemp("data") / "shards"
    with bf.ShardWriter(folder, dtype="int32") as writer:
        for i, length in enumerate(LENGTHS.tolist()):
            writer.add(np.arange(i * 1000, i * 1000 + length, dtype=np.int32))
    return folder


def test_version() -> None:
    assert run("--version").stdout == f"brimful {bf.__version__}\n"


@pytest.mark.parametrize("command", [[], ["demo"], ["prepare"], ["inspect"], ["pack"], ["bench"]])
def test_help_fits_the_terminal(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert_fits(result.stdout)


def test_missing_typer_names_the_extra_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from brimful.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "brimful[prepare]" in done.stderr


def test_python_m_is_the_same_program() -> None:
    command = [sys.executable, "-m", "brimful.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"brimful {bf.__version__}\n"


@pytest.mark.parametrize(
    "command",
    [
        ["inspect"],
        ["pack", "--seq-len", "8"],
        ["bench", "--seq-len", "8", "--batch-size", "2"],
        ["prepare", "--out", "out", "--tokenizer", "bytes"],
    ],
    ids=lambda c: c[0],
)
def test_an_absent_path_is_one_line(command: list[str], tmp_path: Path) -> None:
    assert_one_line_error(run(*command, tmp_path / "absent"), "absent")


@pytest.mark.parametrize(
    "command",
    [["inspect"], ["pack", "--seq-len", "8"], ["bench", "--seq-len", "8", "--batch-size", "2"]],
    ids=lambda c: c[0],
)
def test_a_broken_index_is_one_line(command: list[str], shards: Path, tmp_path: Path) -> None:
    for file in shards.iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content[:20] if file.suffix == ".idx" else content)
    assert_one_line_error(run(*command, tmp_path), ".idx", "20 bytes")


def test_a_reader_that_goes_away_leaves_no_traceback(shards: Path) -> None:
    command = f"{sys.executable} -m brimful.cli inspect {shards} | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_inspect_tells_what_the_shards_hold(shards: Path) -> None:
    report = run_json("inspect", shards)
    assert report["documents"] == len(LENGTHS)
    assert report["tokens"] == LENGTHS.sum()
    assert report["empty_documents"] == (LENGTHS == 0).sum()
    assert report["lengths"]["max"] == LENGTHS.max()
    assert sum(b["documents"] for b in report["histogram"]) == len(LENGTHS)
    (source,) = report["sources"]
    assert source["format"] == "megatron"
    assert source["dtype"] == "int32"
    assert "index" in source["boundaries"]
    expected = [list(range(i * 1000, i * 1000 + min(LENGTHS[i], 8))) for i in range(3)]
    assert report["first_tokens"] == expected
    assert report["manifest"]["tokens"] == LENGTHS.sum()
    assert report["verified"] is False


def test_inspect_fits_the_terminal(shards: Path) -> None:
    result = run("inspect", shards)
    assert result.exit_code == 0
    assert_fits(result.stdout)
    for word in ("megatron", "int32", f"{LENGTHS.sum():,}"):
        assert word in result.stdout


def test_bench_measures_both_loaders(shards: Path) -> None:
    report = run_json("bench", shards, "--seq-len", 128, "--batch-size", 4, "--seconds", 0.1)
    names = [row["name"] for row in report["loaders"]]
    assert names == [
        "brimful, 0 threads",
        "brimful, 1 thread",
        "brimful, 2 threads",
        "torch, 0 workers",
        "torch, 2 workers",
    ]
    for row in report["loaders"]:
        assert row["batches"] > 0
        assert 0 < row["effective_tokens"] < row["tokens"] <= row["slots"]
        assert row["utilization"] == row["tokens"] / row["slots"]
        assert 0 <= row["stall_seconds"] <= row["seconds"]
    assert set(report["machine"]) == {"machine", "cores", "python", "brimful", "torch", "numpy"}


def test_bench_fits_the_terminal(shards: Path) -> None:
    result = run("bench", shards, "--seq-len", 64, "--batch-size", 2, "--seconds", 0.1)
    assert result.exit_code == 0
    assert_fits(result.stdout)


def test_bench_refuses_too_few_batches(shards: Path) -> None:
    result = run("bench", shards, "--seq-len", 4096, "--batch-size", 500, "--seconds", 0.1)
    assert_one_line_error(result, "batch")


def test_prepare_writes_what_inspect_and_open_read(tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"body": "ab"}\n{"body": "c"}\n')
    out = tmp_path / "shards"
    options = ("--tokenizer", "bytes", "--field", "body", "--eos", "7", "--dtype", "uint16")
    result = run("prepare", tmp_path / "texts.jsonl", "--out", out, *options)
    assert result.exit_code == 0, result.stderr
    assert "2 documents, 5 tokens (uint16)" in result.stdout
    assert [document.tolist() for document in bf.open(out)] == [[97, 98, 7], [99, 7]]
    manifest = run_json("inspect", out, "--verify")["manifest"]
    assert manifest["tokenizer"]["eos"] == 7
    assert_fits(run("inspect", out).stdout.replace(str(tmp_path), ""))


def test_prepare_counts_what_it_skips(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("good")
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    command = ["prepare", tmp_path, "--tokenizer", "bytes", "--out"]
    assert_one_line_error(run(*command, tmp_path / "a"), "bad.txt")
    result = run(*command, tmp_path / "b", "--errors", "skip")
    assert result.exit_code == 0
    assert "1 skipped; the first: " in result.stdout
    assert "bad.txt" in result.stdout


def test_prepare_leaves_shards_that_are_there(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    result = run("prepare", tmp_path / "a.txt", "--tokenizer", "bytes", "--out", shards)
    assert_one_line_error(result, str(shards))


def test_inspect_verifies_every_byte(shards: Path, tmp_path: Path) -> None:
    assert run_json("inspect", shards, "--verify")["verified"] is True
    for file in shards.iterdir():
        content = bytearray(file.read_bytes())
        if file.suffix == ".bin":
            content[1234] ^= 1
        (tmp_path / file.name).write_bytes(content)
    assert run("inspect", tmp_path).exit_code == 0
    assert_one_line_error(run("inspect", tmp_path, "--verify"), ".bin", "block 0")


def test_inspect_has_nothing_to_verify_without_a_manifest(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5, dtype=np.uint16))
    assert run_json("inspect", tmp_path / "a.npy")["manifest"] is None
    assert_one_line_error(run("inspect", tmp_path / "a.npy", "--verify"), "manifest.json")


def test_inspect_of_no_documents(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path / "none"):
        pass
    assert run_json("inspect", tmp_path / "none")["documents"] == 0
    assert run("inspect", tmp_path / "none").exit_code == 0
