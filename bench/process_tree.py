"""What a process and all that it started use: CPU time and memory, as the kernel counts them."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import time
from pathlib import Path


def tree(root: int | None = None) -> list[int]:
    """`root` (by default this process) and its living descendants."""
    found = [os.getpid() if root is None else root]
    for process in found:  # grows while it is gone through
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            found += [int(child) for child in read(children).split()]
    return found


def cpu_seconds() -> float:
    """Of this process, of its living descendants, and of its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() + ended.ru_utime + ended.ru_stime
    for process in tree()[1:]:
        # The clock of a process, as clock_getcpuclockid(3) makes its number; it counts threads that
        # have ended too.
        with contextlib.suppress(OSError):
            seconds += time.clock_gettime((~process << 3) | 2)
    return seconds


def anonymous_bytes(root: int | None = None) -> int:
    """Anonymous and shared memory of the tree; a page that several have counts once."""
    kibibytes = 0
    for process in tree(root):
        rollup = read(Path(f"/proc/{process}/smaps_rollup"))
        kibibytes += sum(int(n) for n in re.findall(r"Pss_(?:Anon|Shmem):\s+(\d+) kB", rollup))
    return 1024 * kibibytes


def read(path: Path) -> str:
    """Nothing where the process is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""
