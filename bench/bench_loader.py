"""Loaders over one corpus in one run, each as a share of what a plain C loop reaches at its task.

    pip install -r bench/rivals/loader/requirements.txt
    python bench/bench_loader.py

Every loader has a process of its own. Those of a task are started one after the other and then take
turns: in each round each draws batches for --seconds, and nothing is done with them. Shares of the
limit are taken within a round; all figures are medians over rounds. The clock runs on where an
epoch ends. A loader that is not installed, fails or hangs gets a row that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import loader_table
import machine
from rivals.loader import jobs
from rivals.loader.corpus import TOKENS, corpus_at
from rivals.loader.job import TASKS, Job
from rivals.loader.limit import LIMIT

CHILD = Path(__file__).with_name("loader_row.py")
PREPARE_SECONDS = 300
START_SECONDS = 60  # for imports and a first batch
END_SECONDS = 3


class Failed(Exception):
    """Why a loader has no figures."""


class Row:
    """A loader's process and what it said."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self.failure: str | None = None
        self.first_batch_seconds = 0.0
        self.rounds: list[dict[str, Any]] = []
        self._command = [sys.executable, str(CHILD), job.key, str(folder)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, end() closes it
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Has the corpus converted, if that is not done yet."""
        if self.job.prepare is not None:
            self._begin("prepare")
            self._attempt(lambda: self._answer(PREPARE_SECONDS))
            self._stop()

    def start(self) -> None:
        if self.failure is None:
            self._begin("serve")
            self._attempt(lambda: self._started(self._answer(START_SECONDS)))

    def _begin(self, mode: str) -> None:
        self._process = subprocess.Popen(
            [*self._command, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    def _started(self, said: dict[str, Any]) -> None:
        self.first_batch_seconds = said["first_batch_seconds"]

    def round(self, seconds: float) -> None:
        if self.failure is None:
            self._attempt(lambda: self.rounds.append(self._asked(seconds)))

    def _asked(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n".encode())
        self._process.stdin.flush()
        return self._answer(10 * seconds + 20)

    def _attempt(self, step: Any) -> None:
        try:
            step()
        except (Failed, OSError, ValueError) as error:
            self.failure = str(error) or type(error).__name__
            self._stop()

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        output = self._process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            if not selector.select(seconds):
                raise Failed(f"no answer after {seconds:.0f} s")
        line = output.readline()
        if not line:
            raise Failed(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        assert self._process is not None
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with status {status} and without a word"

    def _stop(self) -> None:
        """Asks the process to end; kills what is left of it and of all in its session."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        # Trackers of shared memory outlive a process by a moment, and clean up after it.
        deadline = time.monotonic() + END_SECONDS
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                self._process.poll()
                os.killpg(self._process.pid, 0)
                time.sleep(0.02)
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()
        self._process = None

    def end(self) -> None:
        self._stop()
        self._errors.close()


def version(job: Job) -> str | None:
    if job.package == "brimful":
        import brimful

        return brimful.__version__
    try:
        return metadata.version(job.package)
    except metadata.PackageNotFoundError:
        return None


def measure(rows: Sequence[Row], rounds: int, seconds: float) -> None:
    try:
        for step in (Row.prepare, Row.start, *[lambda row: row.round(seconds)] * rounds):
            for row in rows:
                step(row)
    finally:
        for row in rows:
            row.end()


def facts(row: Row, limit: Row | None) -> dict[str, Any]:
    """The figures of a row, for the JSON file and the table."""
    job = row.job
    found: dict[str, Any] = {
        "task": job.task,
        "name": job.name,
        "workers": job.workers,
        "package": job.package,
        "version": version(job),
        "remark": job.remark,
        "failure": row.failure,
    }
    if row.failure is not None:
        return found

    def median(figure: Any) -> float:
        return statistics.median(figure(i, said) for i, said in enumerate(row.rounds))

    found |= {
        "first_batch_seconds": row.first_batch_seconds,
        "tokens_per_second": median(lambda _, said: said["tokens"] / said["seconds"]),
        "cpu_ns_per_token": median(lambda _, said: 1e9 * said["cpu_seconds"] / said["tokens"]),
        "tokens_a_batch": median(lambda _, said: said["tokens"] / said["batches"]),
        "utilization": median(lambda _, said: said["tokens"] / said["batches"] / job.slots),
        "anonymous_bytes": max(said["anonymous_bytes"] for said in row.rounds),
        "rounds": row.rounds,
    }
    if limit is not None and limit.failure is None:

        def share(i: int, said: dict[str, Any]) -> float:
            best = limit.rounds[i]
            return said["tokens"] / said["seconds"] * best["seconds"] / best["tokens"]

        found["of_limit"] = median(share)
    return found


def run_task(chosen: Sequence[Job], folder: Path, options: Any) -> list[dict[str, Any]]:
    rows = [Row(job, folder) for job in chosen]
    measure(rows, options.rounds, options.seconds)
    limit = next((row for row in rows if row.job.name == LIMIT), None)
    return [facts(row, limit) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path(tempfile.gettempdir(), "brimful-bench"))
    parser.add_argument("--millions", type=int, default=TOKENS // 1_000_000, help="tokens of it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a round")
    parser.add_argument("--only", default="", help="words of a row's task/name/workers")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()

    corpus = corpus_at(options.corpus, 1_000_000 * options.millions)
    corpus.warm()
    about = machine.facts()
    measured: list[dict[str, Any]] = []
    for task in TASKS:
        chosen = [
            job
            for job in jobs()
            if job.task == task and (job.name == LIMIT or options.only in job.key)
        ]
        if any(options.only in job.key for job in chosen):
            measured += run_task(chosen, corpus.folder, options)
            for line in loader_table.table(task, measured):
                print(line, flush=True)
    print(machine.sentence(about))
    if options.json:
        machine.write_figures(options.json, about, options, rows=measured)


if __name__ == "__main__":
    main()
