"""Clocks: the device's by events, and the host's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from brimful.kernels import Kernel
from brimful.kernels import launch as launch_on

DEVICE = "cuda"
HEAD_START = 40_000_000  # cycles for which the device sleeps while work is queued behind it


def launch(kernel: Kernel) -> None:
    launch_on(kernel, torch.device(DEVICE, torch.cuda.current_device()))


def synchronize() -> None:
    torch.cuda.synchronize()


def sleep(cycles: int) -> None:
    """Queues work that takes the device so many cycles and touches no memory."""
    torch.cuda._sleep(cycles)


def seconds(run: Callable[[], Any], repeats: int = 100) -> float:
    """Device seconds of one `run`, which only queues work: runs queue up behind a sleep, so that
    the time it takes to queue them is not measured.
    """
    for _ in range(5):
        run()
    synchronize()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    sleep(HEAD_START)
    first.record()
    for _ in range(repeats):
        run()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3 / repeats


def wall(run: Callable[[], Any], repeats: int = 20) -> float:
    """Host seconds of one `run`, until the device is through with it."""
    run()
    synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    synchronize()
    return (time.perf_counter() - start) / repeats


def cycles_of(length: float) -> int:
    """Cycles for which the device must sleep to be busy for `length` seconds."""
    probe = 20_000_000
    return int(length / seconds(lambda: sleep(probe), 3) * probe)
