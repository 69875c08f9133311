"""Verdicts of loaders that really run, whose bottleneck is known: the cause named first, and its
seconds, against what the loaders' makers measured themselves.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf
from brimful.config import FIELDS
from brimful.profiling.figures import Profile, Verdict
from brimful.profiling.losses import depth_needed, pace
from brimful.profiling.stopwatch import Stopwatch
from brimful.profiling.verdict import verdict
from timed import one_of_three
from truth import corpus_of

Work = Callable[[float], None]


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def compute(seconds: float) -> None:
    """Keeps a core busy for so long, however often it has to stand in line for one."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass


def close(seconds: float, expected: float) -> bool:
    return abs(seconds - expected) <= max(0.05 * expected, 0.005)


def lost(result: Verdict, cause: str) -> float:
    return sum(finding.seconds for finding in result.findings if finding.cause == cause)


def generator(
    batches: int, works: list[tuple[Work, float]], took: dict[str, float]
) -> Iterator[int]:
    """Batches that take some work each; sums, without the first batch, what of it was waiting and
    what was not: a thread that wakes up stands in line for a core before it runs.
    """
    for i in range(batches):
        watch = Stopwatch()
        for work, seconds in works:
            work(seconds)
        elapsed, idle = watch.read()
        if i:
            took["waiting"] = took.get("waiting", 0) + idle
            took["working"] = took.get("working", 0) + elapsed - idle
        yield i


def profiled(loader: Any, step: Work | None = None, seconds: float = 0.0) -> Profile:
    with bf.profile(loader) as profiler:
        for _ in profiler:
            if step is not None:
                step(seconds)
    return profiler.profile()


@one_of_three
def test_a_generator_that_waits_is_storage() -> None:
    took: dict[str, float] = {}
    profile = profiled(generator(25, [(sleep, 0.01), (compute, 0.002)], took), sleep, 0.004)
    result = verdict(profile)
    assert close(lost(result, "storage"), took["waiting"])
    # A machine that is busy otherwise lets the thread stand in line as well.
    longest = "storage" if took["waiting"] > took["working"] else "threads"
    assert result.findings[0].cause == longest


@one_of_three
def test_a_generator_that_computes_wants_a_thread_of_its_own() -> None:
    took: dict[str, float] = {}
    profile = profiled(generator(20, [(compute, 0.01), (sleep, 0.001)], took), sleep, 0.03)
    result = verdict(profile)
    assert result.findings[0].cause == "threads"
    assert close(lost(result, "threads"), took["working"])


@one_of_three
def test_a_quick_generator_leaves_the_consumer() -> None:
    profile = profiled(generator(20, [], {}), sleep, 0.02)
    result = verdict(profile)
    assert sum(finding.seconds for finding in result.findings) < 0.005 + 0.05 * 20 * 0.02
    assert result.without_stall == pytest.approx(profile.stats.step_seconds / 20)


class Items(data.Dataset[torch.Tensor]):
    """Item i takes `work(seconds(i))`."""

    def __init__(self, items: int, work: Work, seconds: Callable[[int], float]) -> None:
        self.items, self.work, self.seconds = items, work, seconds

    def __len__(self) -> int:
        return self.items

    def __getitem__(self, number: int) -> torch.Tensor:
        self.work(self.seconds(number))
        return torch.full((8,), number)


class Constant:
    def __init__(self, seconds: float) -> None:
        self.value = seconds

    def __call__(self, _: int) -> float:
        return self.value


class Bursts:
    """Every tenth takes long, the others next to nothing."""

    def __call__(self, number: int) -> float:
        return 0.12 if number % 10 == 9 else 0.002


@pytest.mark.parametrize("workers", [0, 2])
@one_of_three
def test_a_dataset_that_waits_is_storage(workers: int) -> None:
    items = Items(40, sleep, Constant(0.03))
    profile = profiled(data.DataLoader(items, num_workers=workers, batch_size=1))
    result = verdict(profile)
    assert result.findings[0].cause == "storage"
    assert lost(result, "storage") > 0.6 * profile.stats.stall_seconds


@one_of_three
def test_work_that_more_workers_would_share_is_threads_where_there_are_cores() -> None:
    items = Items(25, compute, Constant(0.01))
    profile = profiled(data.DataLoader(items, batch_size=1), sleep, 0.03)
    result = verdict(profile)
    assert result.findings[0].cause == "threads"
    assert close(lost(result, "threads"), profile.stats.stall_seconds)


def compute_and_collate(items: list[torch.Tensor]) -> torch.Tensor:
    compute(0.04)
    return torch.stack(items)


@pytest.mark.parametrize("workers", [0, 4])
@one_of_three
def test_work_that_two_cores_cannot_do_in_time_is_fill_and_where_it_is_done(workers: int) -> None:
    items = Items(24, compute, Constant(0.002))
    loader = data.DataLoader(
        items, batch_size=1, num_workers=workers, collate_fn=compute_and_collate
    )
    profile = profiled(loader, sleep, 0.001)
    profile = dataclasses.replace(profile, facts=dataclasses.replace(profile.facts, cores=2))
    recurring = [f for f in verdict(profile).findings if f.cause != "first batch"]
    assert recurring[0].cause == "fill"
    assert "in the collate function" in recurring[0].figure
    assert "Vectorize the collate function" in recurring[0].advice
    assert ("num_workers=2 " in recurring[0].advice) == (workers == 0)
    assert recurring[0].seconds > 0.8 * profile.stats.stall_seconds


@one_of_three
def test_bursts_are_depth() -> None:
    loader = data.DataLoader(
        Items(40, sleep, Bursts()), batch_size=1, num_workers=1, prefetch_factor=1
    )
    profile = profiled(loader, sleep, 0.04)
    result = verdict(profile)
    assert result.findings[0].cause == "depth"
    handed = lost(result, "depth") + lost(result, "copy")
    assert close(handed, profile.stats.stall_seconds)
    advised = depth_needed(profile, pace(profile))
    assert advised is not None
    assert 3 <= advised <= 10  # a burst of 0.12 s lasts three steps


@pytest.mark.parametrize("packing", ["pad", "best_fit_decreasing"])
@one_of_three
def test_padding_of_native_batches_is_the_share_of_steps_spent_on_it(packing: str) -> None:
    lengths = [20 + i % 30 for i in range(96)]
    loader = bf.DataLoader(corpus_of(lengths), seq_len=64, batch_size=4, packing=packing)
    profile = profiled(loader, sleep, 0.004)
    stats = loader.stats()
    assert profile.stats.tokens == stats.tokens == sum(lengths)
    result = verdict(profile)
    assert stats.utilization is not None
    expected = (1 - stats.utilization) * profile.stats.step_seconds
    assert close(lost(result, "padding"), expected)
    recurring = [f.cause for f in result.findings if f.cause != "first batch"]
    assert recurring[0] == "padding"
    assert result.without_both == pytest.approx(result.without_stall * stats.utilization)  # type: ignore[operator]


@one_of_three
def test_a_native_loader_that_nobody_lets_rest_is_short_of_threads_or_of_cores() -> None:
    documents = list(np.zeros((96, 1 << 17), np.uint16))
    loader = bf.DataLoader(
        bf.open(documents), seq_len=1 << 17, batch_size=4, num_workers=1, fields=FIELDS
    )
    profile = profiled(loader)
    stats, result = profile.stats, verdict(profile)
    waits = ("storage", "threads", "fill", "depth", "copy")
    seconds = {cause: lost(result, cause) for cause in waits}
    assert close(sum(seconds.values()), stats.stall_seconds)
    assert seconds["storage"] == 0
    assert stats.load_seconds is not None
    late = stats.load_seconds / stats.loaded_batches / (stats.step_seconds / stats.batches)
    making = seconds["threads"] + seconds["fill"]
    # Where other programs hold up the loop itself for longer, its batches are there in time.
    assert making > 0.8 * stats.stall_seconds or late < 2
    assert making == 0 or late > 1


def stand_in_line(results: Any) -> None:
    watch = Stopwatch()
    compute(0.1)
    results.put(watch.read())


@one_of_three
def test_standing_in_line_for_a_core_is_no_waiting() -> None:
    """Twice as many processes as cores: each takes about twice as long, and none is blocked."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    crowd = [
        context.Process(target=stand_in_line, args=(results,))
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    for process in crowd:
        process.start()
    times = [results.get() for _ in crowd]
    for process in crowd:
        process.join()
    assert max(elapsed for elapsed, _ in times) > 0.15
    assert all(blocked < 0.02 for _, blocked in times)


@one_of_three
def test_a_stopwatch_counts_sleep() -> None:
    watch = Stopwatch()
    began = time.perf_counter()
    time.sleep(0.05)
    slept = time.perf_counter() - began
    compute(0.02)
    elapsed, blocked = watch.read()
    assert 0.05 <= blocked <= slept + 0.001
    assert elapsed > slept + 0.02
