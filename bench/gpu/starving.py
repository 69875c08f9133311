"""Starvation against the truth: what a run takes longer than one that waits for no batch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import brimful as bf
from gpu import timing
from gpu.loaders import documents
from gpu.row import Row

BATCH_SIZE, SEQ_LEN, STEPS = 256, 8192, 150


class Scenario(NamedTuple):
    name: str
    step: float  # device seconds of a step, in those that the loader takes for a batch
    pause: float = 0  # host seconds of a step, likewise


SCENARIOS = (
    Scenario("the loader is twice as slow as the step", 0.5),
    Scenario("the loader is three times as fast", 3.0),
    Scenario("the host is slow, and the loader is not", 0.5, pause=3.0),
)


def walk(batches: Iterable[Any], cycles: int, pause: float) -> float:
    """Seconds from the first batch until the device is through with the steps."""
    start = 0.0
    for number, _ in enumerate(itertools.islice(batches, STEPS + 1)):
        if number == 0:
            timing.synchronize()
            start = time.perf_counter()
        timing.sleep(cycles)
        if pause:
            time.sleep(pause)
    timing.synchronize()
    return time.perf_counter() - start


def true_fraction(waiting: float, never_waiting: float) -> float:
    """Of the seconds of a run, those that it would not have taken without waiting."""
    return max(0.0, waiting - never_waiting) / waiting


def slowly(seconds: float) -> Iterator[None]:
    """Another loader, which takes so long for a batch and makes none ahead."""
    while True:
        time.sleep(seconds)
        yield None


def measure_starvation(tokens: int = 200_000_000) -> list[Row]:
    corpus = bf.open(documents(tokens))

    def loader() -> bf.DataLoader:
        return bf.DataLoader(
            corpus, batch_size=BATCH_SIZE, seq_len=SEQ_LEN, num_workers=1, device=timing.DEVICE
        )

    def endless(one: bf.DataLoader) -> Iterable[Any]:
        return itertools.chain.from_iterable(itertools.repeat(one))

    batch_seconds = walk(endless(loader()), 0, 0) / STEPS
    rows = []
    for scenario in SCENARIOS:
        cycles = timing.cycles_of(scenario.step * batch_seconds)
        pause = scenario.pause * batch_seconds
        never_waiting = walk(itertools.repeat(None), cycles, pause)
        one = loader()
        waiting = walk(endless(one), cycles, pause)
        found = (one.stats().starvation_seconds or 0.0) / waiting
        truth = true_fraction(waiting, never_waiting)
        rows.append(Row(f"starvation: {scenario.name}", f"{found:.1%}", f"the truth: {truth:.1%}"))
        with bf.profile(slowly(batch_seconds)) as profiler:
            waiting = walk(profiler, cycles, pause)
        starvation = profiler.stats().starvation
        found = (0.0 if starvation is None else starvation.seconds) / waiting
        truth = true_fraction(waiting, never_waiting)
        name = f"starvation, seen by a profile: {scenario.name}"
        rows.append(Row(name, f"{found:.1%}", f"the truth: {truth:.1%}"))
    return rows
