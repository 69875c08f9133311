"""Programs in an interpreter of their own, under a deadline, for what might end or hang it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import brimful as bf

# What a shell starts in the background ignores the signal, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

def loader(**how):
    documents = [i * 1000 + np.arange(1 + i % 300) for i in range(5000)]
    settings = {"batch_size": 2, "seq_len": 512, "num_workers": 4, "depth": 3, **how}
    return bf.DataLoader(bf.open(documents), **settings)

def threads():
    '''Ids of the loader's threads.'''
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            if open(f"/proc/self/task/{task}/comm").read().startswith("brimful"):
                found.append(int(task))
        except OSError:
            pass  # gone meanwhile
    return found

def check_threads(count):
    # A thread names itself when it runs, and a joined one leaves /proc a moment later.
    for _ in range(2000):
        if len(threads()) == count:
            return
        time.sleep(0.005)
    raise AssertionError(f"{len(threads())} threads, expected {count}")
"""

# Most programs do without torch: that is faster, and then batches are numpy arrays.
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\n"


def source(program: str) -> str:
    """A program with what most of them begin with."""
    start = "" if "import torch" in program else WITHOUT_TORCH
    return start + PRELUDE + textwrap.dedent(program)


def run(program: str, deadline: float = 60, **how: Any) -> subprocess.CompletedProcess[str]:
    """Runs it to its end. Throws TimeoutExpired, which ends it, when it hangs."""
    return subprocess.run(
        [sys.executable, "-c", source(program)],
        capture_output=True,
        text=True,
        timeout=deadline,
        check=False,
        **how,
    )


def check_quiet(done: subprocess.CompletedProcess[str], output: str = "") -> None:
    """It ended as it should, and wrote this and nothing else."""
    assert done.stderr == "", done.stderr
    assert (done.returncode, done.stdout) == (0, output), done
