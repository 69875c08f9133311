"""Every example runs as its text says, from another folder, and prints what it is there to show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import brimful as bf

EXAMPLES = Path(__file__).parents[1] / "examples"

# What each prints: expressions that are found, in this order.
PRINTS = {
    "evaluate": [r"loss \d\.\d+, perplexity [\d.]+ over ([\d,]+) of ([\d,]+) tokens; \d dummy"],
    "flex_attention": [
        *[r"segments: +\d+ of 72 causal blocks, largest difference \de-0[5-9]"] * 4,
        "compiled for 1 graph",
    ],
    "mixture_curriculum": [
        r"prose +[5-8]\d% of  70%.*packages +\d+% of  10%",
        r"modules +\d+% of  50%",
        r"prose +\d+% of  10%.*packages +[5-8]\d% of  70%",
        "again from a state of 1,[0-9]{3} bytes",
        r"largest difference over \d\d+ losses: (0\.0e\+00|\de-0[7-9])",
    ],
    "pretrain_nanogpt": [
        r"[\d,]{9} bytes of 60 files",
        r"step +5  loss [45]\.\d+",
        r"step +30  loss [23]\.\d+",
        r"61 batches, .* utilization (9[89]|100)",
        r"step +30  loss [23]\.\d+",
        r"largest difference over 15 losses: (0\.0e\+00|\d\.\de-0[7-9])",
    ],
    "sft_assistant_only": [
        r"of [\d,]+ tokens had a loss, in rows [89]\d\.\d% full",
        r"(\d\d|100) of 100 sums are right",
    ],
    "torchrun_elastic": ["one of two ranks was killed", r"largest difference: \d\.\de-0[5-9]"],
}
QUICK = {"evaluate"}


def run(name: str, folder: Path, *arguments: str) -> str:
    """What an example prints. Warnings of brimful's are errors."""
    environment = os.environ | {
        "PYTHONPATH": str(Path(bf.__file__).parents[1]),
        "PYTHONWARNINGS": "error::UserWarning:brimful",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_example_is_looked_at_and_told_of() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(PRINTS)
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text()
    assert set(re.findall(r"^\| `(\w+)\.py` \|", page, re.MULTILINE)) == set(PRINTS)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in sorted(PRINTS)]
)
def test_an_example_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    printed = run(name, tmp_path)
    rest = printed
    for expression in PRINTS[name]:
        found = re.search(expression, rest)
        assert found, f"{expression} not found in the rest of:\n{printed}"
        rest = rest[found.end() :]
    assert len(printed.splitlines()) <= 40
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_pretraining_goes_on_from_its_folder(tmp_path: Path) -> None:
    first = run("pretrain_nanogpt", tmp_path, "--folder", "run", "--steps", "5")
    more = run("pretrain_nanogpt", tmp_path, "--folder", "run", "--steps", "10")
    assert re.findall(r"step +(\d+)", first + more) == ["5", "10"]
    assert run("pretrain_nanogpt", tmp_path, "--folder", "run", "--steps", "10").count("step") == 0


@pytest.mark.slow
def test_flex_attention_without_a_compiler(tmp_path: Path) -> None:
    printed = run("flex_attention", tmp_path, "--eager", "--batches", "1")
    assert re.search(r"of 72 causal blocks, largest difference \de-0[6-9]", printed)
    assert "compiled" not in printed
