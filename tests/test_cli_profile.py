"""`brimful profile TARGET`: shards and functions, its figures, files, JSON, errors and width."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brimful as bf
from brimful.profiling.diagnosis import AREAS
from test_cli import assert_fits, assert_one_line_error, run, run_json

LENGTHS = np.random.default_rng(5).integers(1, 200, 120)
SMALL = ("--seq-len", 256, "--batch-size", 2, "--steps", 12)

LOADERS = """
import time
import numpy as np

class Padded:
    '''Four batches a pass: half of the slots are padding.'''

    def __iter__(self):
        for i in range(4):
            time.sleep(0.002)
            ids = np.full((2, 8), i)
            mask = np.zeros((2, 8), int)
            mask[:, :4] = 1
            yield {"input_ids": ids, "attention_mask": mask, "labels": np.where(mask, ids, -100)}

def padded():
    return Padded()

def once():
    return iter(Padded())

def nothing():
    return []

def number():
    return 7

def needy(path):
    return Padded()

class Interrupted(Padded):
    def __iter__(self):
        yield from super().__iter__()
        raise KeyboardInterrupt

class maker:
    loader = Padded()
"""


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "shards"
    with bf.ShardWriter(folder, dtype="int32") as writer:
        for length in LENGTHS.tolist():
            writer.add(np.arange(length, dtype=np.int32))
    return folder


@pytest.fixture
def loaders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a module of loaders."""
    (tmp_path / "loaders.py").write_text(LOADERS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "loaders", raising=False)
    return tmp_path


@pytest.mark.parametrize("width", [80, 200])
def test_a_profile_of_shards_fits_the_terminal(shards: Path, width: int) -> None:
    result = run("profile", shards, *SMALL, width=width)
    assert result.exit_code == 0, result.stderr
    assert_fits(result.stdout)
    for word in ("12 batches", "2 threads", "stall", "utilization", "checkpoint", "with neither"):
        assert word in result.stdout, word
    assert result.stdout.index("Would a resumed run be equal?") < result.stdout.index("verdict: ")
    assert result.stderr == ""  # no terminal: no live display


def test_help_fits_the_terminal_and_shows_the_three_targets() -> None:
    result = run("profile", "--help")
    assert_fits(result.stdout)
    assert "TARGET | -- PROGRAM" in result.stdout
    assert "brimful profile -- python train.py" in result.stdout
    assert "module:function" in result.stdout


def test_the_figures_are_those_of_the_same_loader(shards: Path) -> None:
    report = run_json("profile", shards, *SMALL, "--seed", 3, "--packing", "concat")
    (loop,) = report["loops"]
    stats = loop["stats"]
    loader = bf.DataLoader(
        bf.open(shards), batch_size=2, seq_len=256, packing="concat", shuffle=True, seed=3
    )
    drawn = [batch for _ in range(2) for batch in loader][:12]
    assert stats["batches"] == 12
    assert stats["first_batches"] > 0
    assert stats["tokens"] == sum(batch.num_tokens for batch in drawn)
    assert stats["effective_tokens"] == sum(batch.num_items for batch in drawn)
    assert loop["loader"]["kind"] == "brimful"
    assert loop["verdict"]["headline"]
    assert {line["area"] for line in loop["diagnosis"]["lines"]} == set(AREAS)


def test_settings_reach_the_loader(shards: Path) -> None:
    options = ["--workers", 0, "--io", "pread", "--layout", "varlen", "--packing", "pad"]
    loader = run_json("profile", shards, *SMALL, *options)["loops"][0]["loader"]
    assert loader["workers"] == 0
    settings = loader["settings"]
    assert (settings["io"], settings["layout"], settings["packing"]) == ("pread", "varlen", "pad")


def test_a_simulated_step_sleeps_and_says_so(shards: Path) -> None:
    result = run("profile", shards, *SMALL, "--step-ms", 3)
    assert "simulated: it sleeps 3 ms, no model runs" in result.stdout
    stats = run_json("profile", shards, *SMALL, "--step-ms", 3)["loops"][0]["stats"]
    assert stats["step_seconds"] >= 12 * 0.003


def test_a_step_that_is_not_simulated_is_not_said_to_be(shards: Path) -> None:
    assert "simulated" not in run("profile", shards, *SMALL).stdout


def test_files_hold_what_was_drawn(shards: Path, tmp_path: Path) -> None:
    page, trace, lines = tmp_path / "r.html", tmp_path / "t.json", tmp_path / "b.jsonl"
    result = run("profile", shards, *SMALL, "--html", page, "--trace", trace, "--jsonl", lines)
    assert result.exit_code == 0, result.stderr
    assert "Would a resumed run be equal?" in page.read_text(encoding="utf-8")
    assert str(trace) in result.stdout.replace("\n", "")
    rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert [row["number"] for row in rows] == list(range(12))
    assert all(row["step"] is not None for row in rows)  # also of the last one
    steps = [
        event
        for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        if re.fullmatch(r"step \d+", str(event.get("name")))
    ]
    assert len(steps) == 12


def test_a_file_that_could_not_be_written_is_an_error_before_anything_is_drawn(
    shards: Path, tmp_path: Path
) -> None:
    result = run("profile", shards, *SMALL, "--jsonl", tmp_path / "absent" / "b.jsonl")
    assert_one_line_error(result, "absent", "no folder")


@pytest.mark.usefixtures("loaders")
@pytest.mark.parametrize("target", ["loaders:padded", "loaders:maker.loader"])
def test_a_function_of_the_working_folder_is_drawn_from_over_passes(target: str) -> None:
    (loop,) = run_json("profile", target, "--steps", 10)["loops"]
    assert loop["title"] == target
    stats = loop["stats"]
    assert (stats["batches"], stats["first_batches"]) == (10, 3)
    assert (stats["slots"], stats["tokens"], stats["utilization"]) == (160, 80, 0.5)
    assert "padding" in [finding["cause"] for finding in loop["verdict"]["findings"]]


@pytest.mark.usefixtures("loaders")
def test_an_iterator_ends_when_it_is_used_up() -> None:
    stats = run_json("profile", "loaders:once", "--steps", 10)["loops"][0]["stats"]
    assert stats["batches"] == 4


@pytest.mark.usefixtures("loaders")
def test_ctrl_c_ends_the_drawing_and_what_was_drawn_is_told() -> None:
    result = run("profile", "loaders:Interrupted")
    assert result.exit_code == 130
    assert "4 batches" in result.stdout
    assert "verdict: " in result.stdout


@pytest.mark.usefixtures("loaders")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["nothing to profile"]),
        (["loaders:nothing"], ["no batch"]),
        (["loaders:number"], ["int", "cannot be iterated"]),
        (["loaders:absent"], ["has no absent"]),
        (["loaders:needy"], ["without arguments", "path"]),
        (["absent:function"], ["no module absent"]),
        (["absent/shards"], ["absent/shards"]),
        (["loaders:padded", "--seq-len", 8], ["--seq-len", "its own loader"]),
        (["loaders:padded", "--workers", 8], ["--workers", "its own loader"]),
        (["train.py"], ["--", "brimful profile -- python train.py"]),
        (["nodir/"], ["nodir/", "no such file or folder", "a glob", "module:function"]),
        (["nodir/a.npy"], ["nodir/a.npy", "no such file or folder", "module:function"]),
        (["shards", "--", "python", "train.py"], ["either"]),
        (["--"], ["program"]),
        (["--steps", 5, "--", "python", "train.py"], ["--steps", "its own loop"]),
        (["--", "brimful-no-such-program"], ["brimful-no-such-program"]),
    ],
)
def test_what_the_user_can_mend_is_one_line(arguments: list[Any], words: list[str]) -> None:
    assert_one_line_error(run("profile", *arguments), *words)
