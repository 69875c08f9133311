"""Trainers on two ranks against the plain loop, also after an interruption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny_llama
from run_ranks import run_ranks


def check_two_ranks(folder: Path, kind: str, steps: int, accumulate: int) -> float:
    """Runs `trainer_runs` twice, the second time from a checkpoint. Returns the last eval_loss."""
    plain = tiny_llama.plain_losses(tiny_llama.loader(accumulate=accumulate), steps)
    arguments = [str(folder), kind, str(steps), str(accumulate)]
    run_ranks("trainer_runs", 2, *arguments)
    whole = json.loads((folder / "found.json").read_text())
    assert whole["losses"] == pytest.approx(plain, abs=2e-5)
    run_ranks("trainer_runs", 2, *arguments, str(folder / "checkpoint-7"))
    rest = json.loads((folder / "found.json").read_text())
    assert rest["losses"][7:] == pytest.approx(plain[7:], abs=2e-5)
    assert rest["eval_loss"] == pytest.approx(whole["eval_loss"], abs=1e-4)
    return float(rest["eval_loss"])
