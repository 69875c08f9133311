"""A device's waits between events, on a made-up device whose true waits are known."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import brimful as bf
from brimful.profiling import gaps as gaps_module
from brimful.profiling.gaps import Gaps, TorchEvents


class Device:
    """One stream in virtual time, which works off what the host queues; events among it."""

    PAIR = 2e-6  # between two events with nothing between them

    def __init__(self) -> None:
        self.host = 0.0
        self.idle_from = 0.0  # all that is queued is done by then
        self.capturing = False
        self.events: list[float] = []
        self.free: list[int] = []
        self.asked = 0

    def work(self, seconds: float) -> None:
        self.idle_from = max(self.idle_from, self.host) + seconds

    def record(self) -> int | None:
        if self.capturing:
            return None
        self.idle_from = max(self.idle_from + self.PAIR, self.host)
        if self.free:
            event = self.free.pop()
            self.events[event] = self.idle_from
        else:
            event = len(self.events)
            self.events.append(self.idle_from)
        return event

    def passed(self, event: int) -> bool:
        self.asked += 1
        assert event not in self.free, "it was given back"
        return self.events[event] <= self.host

    def seconds(self, begin: int, end: int) -> float:
        assert not {begin, end} & set(self.free), "it was given back"
        assert self.passed(begin), "it has not passed"
        assert self.passed(end), "it has not passed"
        return self.events[end] - self.events[begin]

    def give_back(self, event: int) -> None:
        assert event not in self.free, "twice"
        self.free.append(event)


def train(
    device: Device, gaps: Gaps, loads: list[float], step: float, launch: float
) -> tuple[float, list[tuple[int, float]]]:
    """One pass with these times to get a batch: its wall time, and what is told of it."""
    began = device.host
    gaps.begin_pass()
    for number, load in enumerate(loads):
        gaps.enter()
        device.host += load
        gaps.taken(number)
        device.host += launch
        device.work(step)
    device.host = max(device.host, device.idle_from)
    return device.host - began, gaps.settle()


@pytest.mark.parametrize(
    ("load", "step", "launch", "starved"),
    [
        (0.001, 0.010, 0.001, 0.0),  # the host is ahead, however long it waits for batches
        (0.020, 0.010, 0.001, 0.010),  # twice too slow: it stands still, and while launching
        (0.009, 0.010, 0.0005, 0.0),  # most of the host's time is waiting, none of the device's
        (0.0, 0.010, 0.020, 0.0),  # stands still for another reason: launches
    ],
)
def test_the_device_waits_as_long_as_it_stands_still_for_data(
    load: float, step: float, launch: float, starved: float
) -> None:
    device = Device()
    gaps = Gaps(device)
    wall, told = train(device, gaps, [load] * 50, step, launch)
    bare, _ = train(Device(), Gaps(Device()), [0.0] * 50, step, launch)
    measured = gaps.starvation()
    assert measured is not None
    assert measured.batches == len(told) == 49, "the first batch is left out"
    assert [number for number, _ in told] == list(range(1, 50))
    assert measured.seconds == pytest.approx(49 * starved, abs=49 * 2 * Device.PAIR)
    assert measured.seconds == pytest.approx(sum(seconds for _, seconds in told))
    if load <= step:
        assert wall - bare == pytest.approx(measured.seconds, abs=load + 50 * 4 * Device.PAIR)
    assert measured.fraction == pytest.approx(measured.seconds / measured.elapsed_seconds)


def test_what_has_not_passed_is_told_later_and_the_host_never_waits() -> None:
    device = Device()
    gaps = Gaps(device)
    gaps.begin_pass()
    for number in range(4):
        gaps.enter()
        gaps.taken(number)
        device.work(1.0)
    assert gaps.settle() == []  # the host is far ahead
    device.host = 2.5
    assert [number for number, _ in gaps.settle()] == [1, 2]
    device.host = 9.0
    assert [number for number, _ in gaps.settle()] == [3]
    assert gaps.settle() == []


def test_passes_are_apart() -> None:
    device = Device()
    gaps = Gaps(device)
    train(device, gaps, [0.0] * 5, 0.01, 0.0)
    device.host += 100.0  # an evaluation, whatever
    train(device, gaps, [0.0] * 5, 0.01, 0.0)
    measured = gaps.starvation()
    assert measured is not None
    assert measured.batches == 8
    assert measured.elapsed_seconds == pytest.approx(8 * 0.01, abs=1e-3)
    assert measured.seconds < 1e-4


def test_nothing_is_recorded_while_a_graph_is_captured() -> None:
    device = Device()
    gaps = Gaps(device)
    gaps.begin_pass()
    for number in range(9):
        device.capturing = 3 <= number < 6
        gaps.enter()
        device.host += 0.005
        gaps.taken(number)
        device.work(0.001)
    device.host += 1
    assert [number for number, _ in gaps.settle()] == [1, 2, 7, 8]


def test_events_are_used_again_and_their_number_is_bounded() -> None:
    device = Device()
    gaps = Gaps(device)
    train(device, gaps, [0.002] * 500, 0.001, 0.0)
    assert len(device.events) < 12
    gaps.begin_pass()
    for number in range(5000):  # a device that has got stuck
        gaps.enter()
        gaps.taken(number)
        device.work(1.0)
    assert len(device.events) < 2100
    asked = device.asked
    gaps.enter()
    assert device.asked == asked + 1


class Event:
    """One of torch's."""

    clock = itertools.count()

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = next(self.clock)

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        return float(end.at - self.at)


class Cuda:
    """torch.cuda, as far as it is asked."""

    Event = Event

    def __init__(self, *, initialized: bool, capturing: bool = False) -> None:
        self.is_initialized = lambda: initialized
        self.is_current_stream_capturing = lambda: capturing


def test_torch_records_only_where_the_program_uses_a_device() -> None:
    def events(**how: bool) -> TorchEvents:
        return TorchEvents(type("torch", (), {"cuda": Cuda(**how)}))

    assert events(initialized=False).record() is None
    assert events(initialized=True, capturing=True).record() is None
    recorder = events(initialized=True)
    first, second = recorder.record(), recorder.record()
    assert recorder.passed(second)
    assert recorder.seconds(first, second) == pytest.approx(1e-3)
    recorder.give_back(first)
    assert recorder.record() is first


def test_a_profile_measures_the_device_of_any_loader(monkeypatch: Any) -> None:
    device = Device()
    monkeypatch.setattr(
        "brimful.profiling.profiler.gaps_of_torch", lambda: gaps_module.Gaps(device)
    )

    def batches() -> Any:
        for _ in range(10):
            device.host += 0.03
            yield torch.zeros(2, 3, dtype=torch.int64)

    with bf.profile(batches()) as p:
        for _ in p:
            device.work(0.01)
    device.host += 1
    stats = p.stats()
    assert stats.starvation is not None
    assert stats.starvation.seconds == pytest.approx(9 * 0.02, abs=1e-4)
    rows = p.profile().batches
    assert rows[0].starvation is None
    assert all(row.starvation == pytest.approx(0.02, abs=1e-5) for row in rows[1:])


def test_without_cuda_no_device_is_measured() -> None:
    assert torch.version.cuda is not None or gaps_module.gaps_of_torch() is None
