"""What the starvation meter says, against closed forms and against runs whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from brimful import _core

MS = 1e-3


class Bench:
    """A fake device with a compute stream, a copy stream and a meter, all times in seconds."""

    def __init__(self) -> None:
        self.device = _core.FakeDevice()
        self.compute = self.device.create_stream()
        self.copies = self.device.create_stream()
        self.meter = _core.StarvationMeter(self.device)
        self.course = self.meter.begin_course()

    def until(self, time: float) -> None:
        self.device.advance(time - self.device.now)

    def copy(self, seconds: float, asked: float = 0, granted: float = 0) -> _core.CopyEvents:
        events = self.meter.begin_copy(self.copies)
        events.slot_asked, events.slot_granted = asked, granted
        self.device.launch(self.copies, seconds)
        self.meter.end_copy(events, self.copies)
        return events

    def take(self, events: _core.CopyEvents) -> None:
        """A batch that is there when it is asked for."""
        entry = self.meter.enter(self.compute)
        self.meter.leave(entry, self.compute, events, self.course)

    def counts(self) -> _core.StarvationCounts:
        self.device.advance(1000)
        self.meter.harvest()
        return self.meter.counts


def test_the_parts_are_exact():
    b = Bench()
    b.take(b.copy(0))  # the first batch begins the course, at 0
    b.device.launch(b.compute, 10)
    b.until(4)
    entry = b.meter.enter(b.compute)  # headroom 6; the stream is idle from 10 on
    b.until(13)
    events = b.copy(2, asked=9, granted=11)  # ring: from 10, when it starved, to 11
    b.until(20)  # on the device since 15
    b.meter.leave(entry, b.compute, events, b.course)
    counts = b.counts()
    assert counts.batches == 1
    assert (counts.load, counts.ring, counts.copy, counts.handoff) == (2, 1, 2, 5)
    assert counts.starved == 10
    assert counts.elapsed == 20
    assert counts.headroom == 6


@pytest.mark.parametrize("late", [False, True])
def test_what_happens_before_the_stream_is_idle_is_no_starvation(late):
    b = Bench()
    b.take(b.copy(0))
    b.device.launch(b.compute, 10)
    entry = b.meter.enter(b.compute)
    b.until(3)
    events = b.copy(9 if late else 2, asked=1, granted=2)  # to 12, or to 5
    b.meter.leave(entry, b.compute, events, b.course)
    b.device.launch(b.compute, 1)
    counts = b.counts()
    assert counts.copy == counts.starved == (2 if late else 0)
    assert counts.elapsed == (12 if late else 10)
    assert counts.headroom == 10


def test_events_cost_something_and_that_is_taken_off():
    """Where the stream is busy A and B are as far apart as two events are, and nothing starves."""
    b = Bench()
    overhead = 2e-6

    def take(events: _core.CopyEvents) -> None:
        entry = b.meter.enter(b.compute)
        b.device.launch(b.compute, overhead)
        b.meter.leave(entry, b.compute, events, b.course)

    take(b.copy(0))
    for _ in range(10):
        events = b.copy(0)
        b.device.launch(b.compute, 10 * MS)
        take(events)
        b.device.advance(5 * MS)
    assert b.counts().starved == pytest.approx(0, abs=1e-12)
    b.device.launch(b.compute, 10 * MS)
    events = b.copy(14 * MS)
    take(events)
    assert b.counts().starved == pytest.approx(4 * MS - overhead)


def test_clocks_that_drift_and_hours_do_not_blur_it():
    b = Bench()
    b.take(b.copy(0))
    for _ in range(2000):
        b.device.launch(b.compute, 60)
        b.until(b.device.now + 59)
        b.take(b.copy(1.5))
        b.device.advance(1.5)
    counts = b.counts()
    assert counts.elapsed == pytest.approx(2000 * 60.5)
    assert counts.copy == pytest.approx(2000 * 0.5)


def test_no_call_of_next_waits_for_the_device():
    """Batches are read when they are through, however long that takes."""
    b = Bench()
    for _ in range(50):
        b.take(b.copy(1))
        b.device.launch(b.compute, 100)
    assert b.device.now == 0
    assert b.meter.counts.batches == 0
    b.device.advance(1000)
    b.meter.harvest()
    assert 0 < b.meter.counts.batches < 50
    assert b.device.now == 1000


def test_a_captured_stream_is_left_alone_and_the_host_waits():
    b = Bench()
    b.take(b.copy(0))
    events = b.copy(3)
    b.device.begin_capture(b.compute, "relaxed")
    entry = b.meter.enter(b.compute)
    b.meter.leave(entry, b.compute, events, b.course)
    assert b.device.now == 3  # the batch is there
    b.device.end_capture(b.compute)
    assert b.counts().batches == 0
    assert b.device.faults == []


def test_next_without_a_batch_measures_nothing():
    b = Bench()
    b.take(b.copy(0))
    b.meter.abandon(b.meter.enter(b.compute))
    assert b.counts().batches == 0


def test_each_course_leaves_out_its_first_batch_and_the_time_before():
    b = Bench()
    for _ in range(3):
        b.course = b.meter.begin_course()
        b.device.advance(1000)
        for _ in range(3):
            b.take(b.copy(1))
            b.device.launch(b.compute, 1)
    counts = b.counts()
    assert counts.batches == 6
    assert counts.elapsed == pytest.approx(6)  # copies of the next batches hide
    assert counts.starved == 0


# Runs whose truth is known


@dataclass(frozen=True)
class Run:
    """A training run of STEPS steps; times in ms, functions of the step and a random generator.

    The host launches a step as KERNELS kernels and is at most one step ahead of the device. A
    loader makes a batch after the other, at most `depth` of them ahead of the loop.
    """

    load: Callable[[int, np.random.Generator], float]
    compute: Callable[[int, np.random.Generator], float] = lambda i, rng: 10
    launches: Callable[[int, np.random.Generator], float] = lambda i, rng: 2
    copy: float = 0.1
    depth: int = 4
    reads_loss: bool = False


STEPS, KERNELS = 400, 40
RUNS = {
    "all well": Run(load=lambda i, rng: 5),
    "loader twice too slow": Run(load=lambda i, rng: 20),
    "late 1 in 10, deep queue": Run(load=lambda i, rng: 45 if i % 10 == 9 else 5, depth=8),
    "late 1 in 10, queue of 1": Run(load=lambda i, rng: 28 if i % 10 == 9 else 5, depth=1),
    "loss read each step, loader just late": Run(load=lambda i, rng: 11, reads_loss=True),
    "host-bound, loader fine": Run(
        load=lambda i, rng: 5, compute=lambda i, rng: 8, launches=lambda i, rng: 12
    ),
    "host-bound, loader slow": Run(
        load=lambda i, rng: 15, compute=lambda i, rng: 8, launches=lambda i, rng: 12
    ),
    "slow copy": Run(load=lambda i, rng: 5, copy=14),
    "slow copy, slow loader": Run(load=lambda i, rng: 16, copy=14),
    "jitter everywhere, queue of 1": Run(
        load=lambda i, rng: rng.gamma(2, 4),
        compute=lambda i, rng: rng.gamma(8, 1.25),
        launches=lambda i, rng: rng.gamma(2, 1.5),
        depth=1,
    ),
}


class Simulation:
    """Plays a run on the fake device."""

    def __init__(self, run: Run, *, ideal: bool) -> None:
        self.bench = Bench()
        self.device = self.bench.device
        self.run = run
        rng = np.random.default_rng(7)
        times = [[f(i, rng) for f in (run.load, run.compute, run.launches)] for i in range(STEPS)]
        self.load, self.compute, self.launches = (MS * np.array(times)).T
        self.copy = 0 if ideal else run.copy * MS
        if ideal:
            self.load[:] = 0
        self.copied: list[_core.CopyEvents] = []
        self.made = 0.0  # when the last batch was
        self.taken: list[float] = []
        self.host_wait = 0.0

    def next_made(self) -> float:
        """When the loader will have the batch after those that are copied."""
        number = len(self.copied)
        free = self.taken[number - self.run.depth] if number >= self.run.depth else 0.0
        return max(self.made, free) + self.load[number]

    def until(self, time: float) -> None:
        """Lets the host's time pass; the loader works meanwhile."""
        while len(self.copied) < min(STEPS, len(self.taken) + self.run.depth):
            made = self.next_made()
            if made > time:
                break
            self.bench.until(max(made, self.device.now))
            self.made = made
            self.copied.append(self.bench.copy(self.copy))
        self.bench.until(max(time, self.device.now))

    def play(self) -> float:
        """The wall time of the run."""
        bench, device = self.bench, self.device
        ends: list[int] = []
        for i in range(STEPS):
            entered = device.now
            entry = bench.meter.enter(bench.compute)
            self.until(device.now)
            while len(self.copied) <= i:
                self.until(self.next_made())
            self.host_wait += device.now - entered
            bench.meter.leave(entry, bench.compute, self.copied[i], bench.course)
            self.taken.append(device.now)
            for _ in range(KERNELS):
                self.until(device.now + self.launches[i] / KERNELS)
                device.launch(bench.compute, self.compute[i] / KERNELS)
            ends.append(device.create_event())
            device.record(ends[i], bench.compute)
            awaited = i if self.run.reads_loss else i - 1
            if awaited >= 0:
                self.until(device.time_of(ends[awaited]))
        return device.time_of(ends[-1])


@pytest.mark.parametrize("name", RUNS)
def test_the_starved_fraction_is_the_truth_within_two_points(name, record_property):
    wanted = Simulation(RUNS[name], ideal=True).play()
    simulation = Simulation(RUNS[name], ideal=False)
    wall = simulation.play()
    true = (wall - wanted) / wall
    counts = simulation.bench.counts()
    starved = counts.starved / counts.elapsed
    host = simulation.host_wait / wall
    record_property("shares", (true, starved, counts.copy / counts.elapsed, host))
    print(f"{name}: true {true:.1%}, events {starved:.1%}, host wait {host:.1%}")
    assert counts.batches == STEPS - 1
    assert starved == pytest.approx(true, abs=0.02)
    assert counts.load + counts.ring + counts.copy + counts.handoff == pytest.approx(counts.starved)
    assert simulation.device.faults == []


def test_the_hosts_wait_would_not_have_told():
    """It misses what a slow copy costs, and calls starvation what the device's queue hides."""
    slow = Simulation(RUNS["slow copy"], ideal=False)
    wall = slow.play()
    assert slow.host_wait < 0.01 * wall
    assert slow.bench.counts().copy > 0.25 * wall
    late = Simulation(RUNS["jitter everywhere, queue of 1"], ideal=False)
    wall = late.play()
    counts = late.bench.counts()
    assert late.host_wait / wall > counts.starved / counts.elapsed + 0.1
