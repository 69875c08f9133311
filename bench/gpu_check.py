"""Builds the CUDA backend, tests it, and measures it on a GPU, in less than five minutes.

    python bench/gpu_check.py [report.md] [--installed]

Needs torch, pytest, hypothesis and, unless --installed says that the brimful which Python imports
has the CUDA backend already, nvcc. A short table comes last, and is written to the report
(bench/gpu_check.md unless named otherwise). Without a device the script says why there is nothing
to measure and ends with status 0; when the build, a test, a part or compute-sanitizer fails, with
another.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpu.row import Row, table

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("test_device*.py", "test_kernels*.py", "test_masks_device.py", "test_starvation*.py")
SANITIZERS = {"memcheck": "ERROR SUMMARY: 0 errors", "racecheck": "0 hazards displayed"}
FAILED = "failed"
PARTS = (
    ("gpu.kernels", "measure_expand"),
    ("gpu.block_masks", "measure_kernel"),
    ("gpu.block_masks", "measure_calls"),
    ("gpu.kernels", "measure_unpad"),
    ("gpu.copies", "measure_copies"),
    ("gpu.copies", "measure_events"),
    ("gpu.loaders", "measure_loaders"),
    ("gpu.starving", "measure_starvation"),
)


def build(site: Path) -> None:
    """Install this tree with the CUDA backend into `site`; offline where the tools are here."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", str(ROOT)]
    command += ["--target", str(site), "-C", "cmake.define.BRIMFUL_CUDA=ON"]
    if importlib.util.find_spec("scikit_build_core") and importlib.util.find_spec("pybind11"):
        command.append("--no-build-isolation")
    subprocess.run(command, check=True)


def run_tests(environment: dict[str, str]) -> str:
    """The closing line of the device tests: a machine with a device runs each there too."""
    tests = sorted(str(path) for name in TESTS for path in (ROOT / "tests").glob(name))
    done = subprocess.run(
        # Another torch than the pinned one may warn of other things.
        [sys.executable, "-m", "pytest", "-q", "-W", "default", *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    print(done.stdout, end="")
    done.check_returncode()
    return done.stdout.splitlines()[-1]


def sanitize(environment: dict[str, str]) -> str:
    """What compute-sanitizer finds in the kernels, where it is installed and takes the device."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(program).exists():
        return "not run: it is not installed"
    # Memory of its own for every tensor, so that what lies beyond one is not another's.
    environment = {**environment, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    for tool in SANITIZERS:
        done = subprocess.run(
            [program, "--tool", tool, sys.executable, "-m", "gpu.sanitized"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        found = verdict(tool, done.stdout)
        if found != "clean":
            return found
    return "clean: " + ", ".join(SANITIZERS)


def verdict(tool: str, output: str) -> str:
    """Of a run's output: "clean", or why it did not run. Faults end the script."""
    if SANITIZERS[tool] in output and "Traceback" not in output:
        return "clean"
    if "Device not supported" in output:
        return "not run: it does not take this device"
    sys.exit(f"{output}\ncompute-sanitizer --tool {tool} did not find the kernels clean")


def measure() -> list[Row]:
    """What was measured. A part that fails leaves the others their figures."""
    rows = []
    for module, name in PARTS:
        start = time.perf_counter()
        try:
            rows += getattr(importlib.import_module(module), name)()
        except Exception as error:
            rows.append(Row(name, FAILED, f"{type(error).__name__}: {error}"))
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def report(rows: list[Row], checks: str) -> str:
    import torch

    return f"""# The device, measured

`python bench/gpu_check.py` on {torch.cuda.get_device_name()}, {os.cpu_count()} CPU cores; Python
{platform.python_version()}, torch {torch.__version__}. {checks}

{table(rows)}"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("report", nargs="?", type=Path, default=ROOT / "bench" / "gpu_check.md")
    options.add_argument("--installed", action="store_true", help="build nothing")
    given = options.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as site:
        places = [str(ROOT / "bench")]
        if not given.installed:
            build(Path(site))
            places.insert(0, site)
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [*places, *inherited])),
        }
        print(f"built: {time.perf_counter() - start:.0f} s", flush=True)
        tests = run_tests(environment)
        sys.path[:0] = places
        import brimful as bf

        if not bf.device.available():
            print(f"Built and tested, nothing measured: {bf.device.why_not()}")
            return
        sanitized = sanitize(environment)
        rows = measure()
    checks = f"Device tests: {tests}. compute-sanitizer: {sanitized}. All of it took "
    checks += f"{time.perf_counter() - start:.0f} s."
    text = report(rows, checks)
    given.report.write_text(text)
    print(text, end="")
    if any(row.result == FAILED for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
