"""Runs everything that is measured of loaders, in one go, and writes docs/loaders_measured.md.

    python bench/measure_loaders.py          # less than ten minutes, once the corpus is there
    python bench/measure_loaders.py --again  # writes the page anew from the last run's figures

Each bench is a process of its own; one that fails is named in the page, and the others still run.
Figures stay in the corpus folder, as measured.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import loaders_page

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "loaders_measured.md"


def run(script: str, options: list[str], minutes: float) -> dict[str, Any]:
    """The JSON that a bench wrote, or {"failure": why there is none}."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        command = [sys.executable, str(HERE / script), *options, "--json", str(answer)]
        print(f"==== {script} {' '.join(options)}", flush=True)
        try:
            status = subprocess.run(command, timeout=60 * minutes).returncode
        except subprocess.TimeoutExpired:
            return {"failure": f"{script} did not end within {minutes:.0f} minutes"}
        if status or not answer.exists():
            return {"failure": f"{script} ended with status {status}"}
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path(tempfile.gettempdir(), "brimful-bench"))
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write")
    parser.add_argument("--again", action="store_true", help="measure nothing")
    parser.add_argument("--quick", action="store_true", help="short rounds, to see that all runs")
    options = parser.parse_args()

    figures_path = options.corpus / "measured.json"
    if not options.again:
        corpus = ["--corpus", str(options.corpus)]
        rounds = ["--rounds", "1", "--seconds", "0.1"] if options.quick else []
        repeats = ["--repeats", "1"] if options.quick else []
        figures = {
            "loader": run("bench_loader.py", corpus + rounds, minutes=30),
            "startup": run("bench_startup.py", corpus + repeats, minutes=10),
            "cold": run("bench_cold.py", corpus + rounds[:2], minutes=10),
        }
        figures_path.write_text(json.dumps(figures))
    options.page.write_text(loaders_page.page(json.loads(figures_path.read_text())))
    print(f"\nwritten: {options.page}")


if __name__ == "__main__":
    main()
