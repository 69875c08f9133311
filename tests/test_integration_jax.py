"""JAX's arrays of batches: the checks of `jax_checks.py`, run in a process of their own."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import brimful as bf

HERE = Path(__file__).parent
NAMES = re.findall(r"^def (check_\w+)", (HERE / "jax_checks.py").read_text(), re.MULTILINE)
LONG = [name for name in NAMES if "attention" in name or "learns" in name]
SHORT = [name for name in NAMES if name not in LONG]


def failed(names: list[str]) -> Any:
    """Which of the checks fail, and how."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(HERE), str(Path(bf.__file__).parents[1])]),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "jax_checks", *names],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def failures() -> Any:
    return failed(SHORT)


@pytest.mark.parametrize("name", SHORT)
def test_of_jax(name: str, failures: Any) -> None:
    assert name not in failures, failures.get(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_of_jax_at_length(name: str) -> None:
    assert not failed([name])


def test_without_jax_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'brimful\[jax\]'"):
        importlib.import_module("brimful.integrations.jax")
