"""Programs that run as several ranks of torch.distributed, on the CPU."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import torch.distributed


def run_ranks(module: str, world_size: int, *arguments: str, deadline: float = 240) -> None:
    """Runs `python -m module arguments` of this folder once a rank, to their end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), *sys.path])
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=os.environ
            | {
                "PYTHONPATH": path,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "LOCAL_WORLD_SIZE": str(world_size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world_size)
    ]
    try:
        for rank in ranks:
            output, _ = rank.communicate(timeout=deadline)
            assert rank.returncode == 0, output
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()  # closes its output too


def leave_group() -> None:
    """The last call of a rank that used gloo.

    A thread of gloo's lets go of a collective's tensors after those who waited for it went on, and
    needs the interpreter for that: where the interpreter ends meanwhile, torch aborts the process.
    Leaving the group ends the thread only if nothing else holds the group, as trainers do.
    """
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    time.sleep(0.5)
