"""The demo: its corpus, its race, and all of it on a few files; once, slowly, on all of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import brimful as bf
from brimful.cli.app import app
from brimful.cli.demo import DemoConfig, run, sparkline
from brimful.cli.race import race
from brimful.cli.stdlib import source_files, write_shards

# bpe-openai reads its vocabulary in a way that importlib no longer likes.
pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")

SMALL = DemoConfig(files=25, seq_len=512, seconds_per_slot=1e-8, train_steps=4)
SECTIONS = ["1  Tokenize", "2  Lengths", "3  Pack", "4  Feed", "5  Train"]


def assert_reads_well(text: str) -> None:
    places = [text.index(section) for section in SECTIONS]
    assert places == sorted(places)
    assert "Simulated" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "…" not in text


def loss_before_and_after(text: str) -> tuple[float, float]:
    found = re.search(r"loss +([\d.]+) at the first step, ([\d.]+) on average", text)
    assert found
    return float(found[1]), float(found[2])


def test_files_of_other_packages_are_left_out(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "a.txt", "site-packages/c.py", "deep/d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert source_files(tmp_path) == [tmp_path / n for n in ("a.py", "b.py", "deep/d.py")]
    with pytest.raises(FileNotFoundError, match=r"no \.py files"):
        source_files(tmp_path / "absent")


def test_shards_hold_what_the_tokenizer_gave_and_count_what_it_could_not(tmp_path: Path) -> None:
    import bpe_openai

    texts = ["def é(): pass\n", "", "x = 1\n" * 500]
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.py").write_text(text, encoding="utf-8")
    (tmp_path / "bad.py").write_bytes(b"\xff")
    shards = write_shards(tmp_path, tmp_path / "shards")
    encoding = bpe_openai.get_encoding("o200k_base")
    assert [encoding.decode(document.tolist()) for document in shards.corpus] == texts
    assert shards.prepared.skipped == 1
    tokens = np.concatenate(list(shards.corpus))
    assert (shards.counts == np.bincount(tokens, minlength=encoding.n_vocab)).all()


def test_race_delivers_the_same_tokens_by_both_loaders() -> None:
    lengths = np.random.default_rng(3).integers(1, 300, 150)
    corpus = bf.open([np.arange(n, dtype=np.int32) for n in lengths])
    results = race(corpus, batch_size=4, seq_len=128, seconds_per_slot=0, seed=1)
    assert [m.name for m in results] == [
        "torch, 0 workers",
        "torch, 2 workers",
        "brimful, 2 threads",
    ]
    for m in results:
        rest = int(lengths.sum()) - m.tokens  # what the first batch held
        assert 0 < rest <= 4 * 128
    assert results[2].utilization > results[0].utilization == results[1].utilization


def test_demo_on_a_few_files_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(config=SMALL)
    assert_reads_well(capsys.readouterr().out)
    assert list(tmp_path.glob("brimful-*")) == []


def test_demo_keeps_its_shards_where_it_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(out=tmp_path / "kept", config=SMALL)
    assert "brimful inspect" in capsys.readouterr().out
    assert len(bf.open(tmp_path / "kept")) == 25


def test_demo_refuses_a_folder_with_shards(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path / "used") as writer:
        writer.add([1, 2])
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "used")])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_sparkline_goes_from_highest_to_lowest() -> None:
    assert sparkline([3.0, 2.0, 1.0], width=3) == "█▅▁"
    assert sparkline([1.0] * 8, width=4) == "▁▁▁▁"
    assert len(sparkline([float(i) for i in range(100)], width=60)) == 60


@pytest.mark.slow
def test_the_whole_demo_reads_well_and_learns() -> None:
    command = [sys.executable, "-m", "brimful.cli", "demo"]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert_reads_well(done.stdout)
    before, after = loss_before_and_after(done.stdout)
    assert after < 0.8 * before
