"""Which machine and which versions figures come from."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import brimful as bf


def facts() -> dict[str, Any]:
    flags = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.+)", flags)
    return {
        "cpu": model[1] if model else platform.machine(),
        "avx512": "avx512f" in flags,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "python": platform.python_version(),
        "torch": metadata.version("torch").replace("+cpu", " (CPU)"),
        "numpy": metadata.version("numpy"),
        "brimful": bf.__version__,
        "load_at_start": os.getloadavg()[0],
    }


def sentence(of: dict[str, Any]) -> str:
    vectors = " (with AVX-512)" if of["avx512"] else ""
    return (
        f"{of['cores']} cores of an {of['cpu']}{vectors}, {of['memory_bytes'] / 2**30:.0f} GiB, "
        f"Linux {of['kernel']}, Python {of['python']}, torch {of['torch']}, numpy {of['numpy']}, "
        f"brimful {of['brimful']}; load of the machine as the run began: {of['load_at_start']:.1f}."
    )


def write_figures(path: Path, about: dict[str, Any], options: Any, **figures: Any) -> None:
    """All figures of a bench as JSON, with the machine and the options that it ran with."""
    path.write_text(
        json.dumps({"machine": about, "options": vars(options), **figures}, default=str)
    )
