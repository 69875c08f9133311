"""The soak for a short while; by hand it runs for as long as one likes."""

import subprocess
import sys
from pathlib import Path

import pytest

import soak


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_some_runs_of_the_soak_account_for_every_document(tmp_path):
    did = sum((soak.soak_once(seed, tmp_path) for seed in range(12)), start=soak.Counter())
    assert did["accounts"] > 0
    assert did["rows"] > 0


@pytest.mark.slow
def test_twenty_seconds_of_soak_account_for_every_document():
    done = subprocess.run(
        [sys.executable, Path(soak.__file__), "--seconds", "20", "--seed", "1000"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "runs" in done.stdout
