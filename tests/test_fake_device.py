"""The fake device finds what a real one hides: each fault is seeded here beside its cure."""

from __future__ import annotations

import ctypes
import threading

import pytest

from brimful import _core

BYTES = 64
POISON = bytes([0xDD]) * BYTES


class Bench:
    """A fake device, a batch's way over it, and how its parts may be left out."""

    def __init__(self, **config: object) -> None:
        self.device = _core.FakeDevice(copy_seconds=5, **config)
        self.compute = self.device.create_stream()
        self.copies = self.device.create_stream()
        self.slot = self.device.allocate_pinned(BYTES)
        self.copied = self.device.create_event()

    def send(self) -> int:
        """Fills the slot and copies it to a new block of the device."""
        self.device.host_writes(self.slot, BYTES)
        ctypes.memset(self.slot, 7, BYTES)
        block = self.device.allocate(BYTES, self.copies)
        self.device.copy_to_device(block, self.slot, BYTES, self.copies)
        self.device.record(self.copied, self.copies)
        return block

    def fault(self) -> str:
        """The one kind of fault that was found."""
        faults = set(self.device.faults)
        assert len(faults) == 1, faults
        return faults.pop()


@pytest.mark.parametrize("advance", [0, 100])
@pytest.mark.parametrize("waits", [True, False])
def test_a_stream_that_does_not_wait_for_the_copy_is_found_however_late_it_is(waits, advance):
    b = Bench()
    block = b.send()
    if waits:
        b.device.wait(b.compute, b.copied)
    b.device.advance(advance)
    found = b.device.read(b.compute, block, BYTES)
    assert found == (bytes([7]) * BYTES if waits or advance else POISON)
    if waits:
        assert b.device.faults == []
    else:
        assert "reads memory that a copy" in b.fault()
        assert b.device.now == advance


@pytest.mark.parametrize("waits", [True, False])
def test_a_slot_that_is_filled_again_before_its_copy_is_done_is_found(waits):
    b = Bench()
    b.send()
    if waits:
        b.device.sleep_until(b.copied)
        assert b.device.now == 5
    else:
        b.device.advance(100)  # long done, and still nobody has looked
    b.device.host_writes(b.slot, BYTES)
    if waits:
        assert b.device.faults == []
    else:
        assert b.fault().startswith("a fill (host) writes memory that a copy")


@pytest.mark.parametrize("recorded", [True, False])
def test_an_event_that_was_never_recorded_counts_as_reached_and_orders_nothing(recorded):
    b = Bench(forgotten=set() if recorded else {"record"})
    b.send()
    assert b.device.reached(b.copied) != recorded
    b.device.sleep_until(b.copied)
    b.device.host_writes(b.slot, BYTES)
    assert (b.device.faults == []) == recorded


@pytest.mark.parametrize("recorded", [True, False])
def test_a_destination_that_is_lent_again_while_a_kernel_reads_it_is_found(recorded):
    b = Bench()
    block = b.send()
    b.device.wait(b.compute, b.copied)
    if recorded:
        b.device.record_stream(block, b.compute)
    b.device.launch(b.compute, 50, reads=[(block, BYTES)])
    b.device.free(block)
    again = b.device.allocate(BYTES, b.copies)
    assert (again == block) != recorded  # torch's allocator knows of streams that it was told of
    assert (b.device.faults == []) == recorded
    b.device.advance(100)
    assert b.device.allocate(BYTES, b.copies) == block or not recorded


def test_shutting_down_with_a_copy_under_way_is_found():
    b = Bench()
    b.send()
    b.device.free_pinned(b.slot)
    assert "the release of pinned memory (host) writes memory that a copy" in b.fault()
    b = Bench()
    b.send()
    b.device.synchronize(b.copies)
    b.device.free_pinned(b.slot)
    assert b.device.faults == []
    assert b.device.pinned_bytes == 0
    b = Bench()
    b.send()
    b.device.fail("cudaErrorIllegalAddress")  # which ends the copy, and waiting for it too
    b.device.free_pinned(b.slot)
    assert b.device.faults == []


def test_c86_each_thread_has_a_device_of_its_own_and_begins_with_device_0():
    device = _core.FakeDevice(devices=2)
    device.select_device(1)
    event = device.create_event()
    stream = device.create_stream()
    assert device.contexts == {1}
    errors = []

    def other_thread() -> None:
        assert device.selected_device == 0
        own = device.create_event()
        try:
            device.record(own, stream)
        except _core.DeviceError as error:
            errors.append(str(error))
        device.record(event, stream)

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    assert errors == ["an event of device 0 is recorded on a stream of device 1"]
    assert device.contexts == {0, 1}  # memory on a device that is none of ours
    with pytest.raises(_core.DeviceError, match="no such device"):
        device.select_device(2)


@pytest.mark.parametrize(
    ("mode", "by", "ends"),
    [
        ("global", "self", True),
        ("global", "other", True),
        ("thread_local", "self", True),
        ("thread_local", "other", False),
        ("relaxed", "other", False),
    ],
)
def test_a_question_about_an_event_may_end_a_capture(mode, by, ends):
    device = _core.FakeDevice()
    stream, event = device.create_stream(), device.create_event()

    def capture() -> None:
        device.begin_capture(stream, mode)

    if by == "self":
        capture()
    else:
        thread = threading.Thread(target=capture)
        thread.start()
        thread.join()
    device.reached(event)
    assert (device.faults != []) == ends
    device.end_capture(stream)
    count = len(device.faults)
    device.reached(event)
    assert len(device.faults) == count


def test_streams_are_queues_and_events_tell_when():
    device = _core.FakeDevice()
    a, b = device.create_stream(), device.create_stream()
    events = [device.create_event() for _ in range(4)]
    device.record(events[0], a)
    device.launch(a, 3)
    device.record(events[1], a)
    device.launch(b, 1)
    device.wait(b, events[1])  # from 3 on
    device.launch(b, 2)
    device.record(events[2], b)
    with pytest.raises(_core.DeviceError, match="not reached"):
        device.seconds_between(events[0], events[2])
    with pytest.raises(_core.DeviceError, match="never recorded"):
        device.seconds_between(events[0], events[3])
    assert not device.reached(events[2])
    device.sleep_until(events[2])
    assert device.now == 5
    assert device.seconds_between(events[0], events[2]) == 5
    assert device.seconds_between(events[1], events[2]) == 2


def test_a_read_beside_a_read_is_no_race_and_a_write_after_both_is_ordered_by_both():
    device = _core.FakeDevice()
    streams = [device.create_stream() for _ in range(3)]
    events = [device.create_event() for _ in range(2)]
    block = device.allocate(BYTES, streams[2])
    device.synchronize(streams[2])
    half = [(block, BYTES // 2)]
    for stream, event in zip(streams, events, strict=False):
        device.launch(stream, 1, reads=half)
        device.record(event, stream)
    assert device.faults == []
    device.wait(streams[2], events[0])
    device.launch(streams[2], 1, writes=[(block + BYTES // 2, BYTES // 2)])
    assert device.faults == []  # another half
    device.launch(streams[2], 1, writes=[(block + BYTES // 2 - 1, 1)])
    (fault,) = device.faults
    assert "stream 2" in fault  # the one it did not wait for
