"""Builds the CUDA backend, tests it, and times batches on their way to a GPU.

    python bench/gpu_check.py [report.md]

Needs nvcc, torch and pytest. The report (bench/gpu_check.md unless named otherwise) is written only
where there was a device to measure. Without one the script says why and ends with status 0; when
the build or a test fails it ends with another.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BATCH_SIZE, SEQ_LEN, NUM_WORKERS = 16, 4096, 2
BATCHES, ROUNDS = 500, 3
CORPUS_TOKENS, MEAN_LENGTH = 50_000_000, 900


def build(site: Path) -> None:
    """Install this tree with the CUDA backend into `site`; offline where the tools are here."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", str(ROOT)]
    command += ["--target", str(site), "-C", "cmake.define.BRIMFUL_CUDA=ON"]
    if importlib.util.find_spec("scikit_build_core") and importlib.util.find_spec("pybind11"):
        command.append("--no-build-isolation")
    subprocess.run(command, check=True)


def run_tests(site: Path) -> str:
    """The closing line of the device tests, run against the build in `site`."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/test_device.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        text=True,
    )
    print(done.stdout, end="")
    done.check_returncode()
    return done.stdout.splitlines()[-1]


def documents() -> list[Any]:
    """Arrays of geometric length in memory, so that no disk is measured."""
    import numpy as np

    rng = np.random.default_rng(17)
    tokens = rng.integers(0, 50_000, CORPUS_TOKENS, dtype=np.uint16)
    cuts = rng.geometric(1 / MEAN_LENGTH, CORPUS_TOKENS // MEAN_LENGTH).cumsum()
    return np.split(tokens, cuts[cuts < CORPUS_TOKENS])


def throughput(corpus: Any, device: str | None, pin_memory: bool) -> tuple[float, float]:
    """Million tokens and GB of columns a second, of the best of ROUNDS rounds."""
    import torch

    import brimful as bf

    settings = {"batch_size": BATCH_SIZE, "seq_len": SEQ_LEN, "num_workers": NUM_WORKERS}
    loader = bf.DataLoader(corpus, shuffle=True, pin_memory=pin_memory, **settings)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    best = (0.0, 0.0)
    for _ in range(ROUNDS + 1):  # the first also starts threads and contexts
        tokens = size = 0
        start = time.perf_counter()
        for batch in itertools.islice(batches, BATCHES):
            tokens += batch.num_tokens
            size += sum(column.nbytes for column in batch.values())
            if device is not None:
                batch.to(device, non_blocking=True)
        if device is not None:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        best = max(best, (tokens / seconds / 1e6, size / seconds / 1e9))
    return best


def report(corpus: Any, tests: str) -> str:
    """The Markdown text of what was measured here."""
    import torch

    ways = [("stay on the host", None, False), ("copied", "cuda", False), ("pinned", "cuda", True)]
    rows = [(name, *throughput(corpus, device, pin)) for name, device, pin in ways]
    return f"""# The device, measured

`python bench/gpu_check.py` on {torch.cuda.get_device_name()}, {os.cpu_count()} CPU cores;
Python {platform.python_version()}, torch {torch.__version__}. Device tests: {tests}.

Batches of {BATCH_SIZE} x {SEQ_LEN} tokens, three int64 columns, {NUM_WORKERS} worker threads,
torch's `.to(device, non_blocking=True)`; best of {ROUNDS} rounds of {BATCHES} batches.

| batches | million tokens/s | GB/s |
| --- | ---: | ---: |
""" + "".join(f"| {name} | {tokens:.1f} | {size:.2f} |\n" for name, tokens, size in rows)


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "bench" / "gpu_check.md"
    with tempfile.TemporaryDirectory() as site:
        build(Path(site))
        tests = run_tests(Path(site))
        sys.path.insert(0, site)
        import brimful as bf

        if not bf.device.available():
            print(f"Built and tested, nothing measured: {bf.device.why_not()}")
            return
        text = report(bf.open(documents()), tests)
    target.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
