"""The timeline: what the last steps held, waited for and were logged with, and what stood out."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import brimful as bf
from traces import loaded, on_track
from truth import corpus_of


def make(lengths: Any = (5, 3, 8, 2, 7, 6) * 8, **how: Any) -> bf.DataLoader:
    return bf.DataLoader(corpus_of(list(lengths)), **{"seq_len": 8, "packing": "pad"} | how)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_step_tells_what_its_batches_held(accumulate: int, workers: int):
    loader = make(accumulate=accumulate, num_workers=workers)
    wanted: dict[int, list[bf.Batch]] = {}
    for batch in itertools.chain(loader, loader):
        wanted.setdefault(batch.step, []).append(batch)
    timeline = loader.timeline
    assert [row.step for row in timeline] == list(wanted) == list(range(2 * 48 // accumulate))
    for row, batches in zip(timeline, wanted.values(), strict=True):
        assert row.batches == len(batches)
        assert {row.epoch} == {batch.epoch for batch in batches}
        assert row.tokens == sum(batch.num_tokens for batch in batches)
        assert row.effective_tokens == sum(batch.num_items for batch in batches)
        assert row.attention_work == sum(batch.attention_work for batch in batches)
        assert row.slots == 8 * len(batches)
        assert row.utilization == row.tokens / row.slots
        assert row.starvation is None
        assert row.load_seconds > 0
    assert [row.step for row in timeline if row.first] == [0, len(timeline) // 2]
    assert sum(row.tokens for row in timeline) == loader.stats().tokens


def test_times_of_steps_join_up():
    loader = make(accumulate=2)
    list(loader)
    list(loader)
    rows = loader.timeline
    for row, following in itertools.pairwise(rows):
        assert row.entered <= row.taken <= following.entered
        if following.first:
            assert row.seconds is None, "what came between two iterations is no step"
        else:
            assert row.entered + row.seconds == pytest.approx(following.entered)
    assert rows[-1].seconds is None
    stalls = sum(row.stall_seconds for row in rows)
    assert stalls == pytest.approx(sum(r.stall_seconds for r in loader.records()))


def test_what_is_logged_lies_beside_its_step():
    loader = make(accumulate=2)
    for batch in loader:
        if batch.micro_batch == 1:
            loader.log(loss=batch.step * 0.5, lr=1e-3)
            loader.log(grad_norm=torch.tensor([2.0]), loss=np.float32(batch.step))
    for row in loader.timeline:
        assert row.logged == {"loss": row.step, "lr": 1e-3, "grad_norm": 2.0}
    assert loader.timeline.at(5).logged["loss"] == 5


def test_a_loop_that_is_behind_names_its_step():
    loader = make()
    batches = iter(loader)
    waiting = [next(batches), next(batches)]  # as accelerate and Lightning look ahead
    for batch in batches:
        done, waiting = waiting[0], [waiting[1], batch]
        loader.log(step=done.step, loss=done.step)
    logged = {row.step: row.logged for row in loader.timeline}
    assert [logged[step] for step in range(46)] == [{"loss": step} for step in range(46)]
    assert logged[46] == logged[47] == {}


def test_a_number_is_kept_as_it_was_when_it_was_logged():
    loader = make()
    total = torch.zeros((), requires_grad=True)
    running = torch.zeros(())
    for batch in itertools.islice(loader, 3):
        running += batch.num_tokens
        loader.log(running=running, total=total + 1)
    tokens = np.cumsum([row.tokens for row in loader.timeline]).tolist()
    assert [row.logged["running"] for row in loader.timeline] == tokens
    assert all(isinstance(x, float) for row in loader.timeline for x in row.logged.values())


class OnDevice:
    """A tensor of a device, whose value only `float()` waits for."""

    class Device:
        type = "cuda"

    def __init__(self, value: float, waits: list[float]) -> None:
        self.value, self.waits, self.device = value, waits, self.Device()

    def numel(self) -> int:
        return 1

    def is_complex(self) -> bool:
        return False

    def detach(self) -> "OnDevice":
        return self

    def clone(self) -> "OnDevice":
        return OnDevice(self.value, self.waits)

    def __float__(self) -> float:
        self.waits.append(self.value)
        return self.value


def test_numbers_on_a_device_are_waited_for_when_they_are_read_and_once():
    loader, waits = make(), []
    for number, _ in enumerate(itertools.islice(loader, 4)):
        loss = OnDevice(float(number), waits)
        loader.log(loss=loss)
        loss.value = -1.0  # the loop goes on with its tensor
    assert waits == []
    for _ in range(2):
        assert [row.logged["loss"] for row in loader.timeline] == [0, 1, 2, 3]
    assert waits == [0, 1, 2, 3]


META = torch.zeros((), device="meta")


@pytest.mark.parametrize("value", ["3", None, [1, 2], torch.zeros(2), np.zeros(2), 1j, {}, META])
def test_what_is_no_number_is_refused(value: Any):
    loader = make()
    next(iter(loader))
    with pytest.raises(bf.PlanError, match=r"log: loss is .*a number"):
        loader.log(loss=value)
    assert loader.timeline[0].logged == {}


def test_nothing_can_be_logged_before_the_first_batch():
    with pytest.raises(bf.PlanError, match="no batch was delivered"):
        make().log(loss=1.0)


def test_a_timeline_stays_as_it_was_while_the_loader_goes_on():
    loader = make()
    batches = iter(loader)
    assert len(loader.timeline) == 0
    assert repr(loader.timeline) == "<brimful timeline: 0 steps>"
    next(batches)
    early = loader.timeline
    next(batches)
    loader.log(loss=1.0)
    assert (len(early), len(loader.timeline)) == (1, 2)
    assert repr(loader.timeline) == "<brimful timeline: 2 steps, 0 to 1>"
    assert early[-1].logged == {}
    assert [row.step for row in early] == [0]
    assert (early[0].seconds, loader.timeline[0].seconds is None) == (None, False)


def test_a_step_that_came_twice_is_found_where_it_came_last():
    loader = make()
    loader.set_epoch(0)
    for number in range(2):
        for _ in loader:
            loader.log(times=number)
    timeline = loader.timeline
    assert [row.step for row in timeline] == [*range(48)] * 2
    assert timeline.at(3) is timeline[51]
    assert (timeline[3].logged, timeline[51].logged) == ({"times": 0}, {"times": 1})
    with pytest.raises(bf.PlanError, match="step 48 is not in the timeline"):
        timeline.at(48)


def test_iterators_that_take_turns_keep_their_steps_apart():
    loader = make(accumulate=2)
    loader.set_epoch(0)
    first, second = iter(loader), iter(loader)
    for _ in range(3):
        next(first), next(second), next(first)
    rows = loader.timeline
    assert sum(row.batches for row in rows) == 9
    assert sum(row.tokens for row in rows) == loader.stats().tokens
    assert all(row.batches <= 2 for row in rows)


def test_steps_keep_the_numbers_they_had_when_a_state_is_loaded():
    loader = make(accumulate=2)
    list(itertools.islice(loader, 8))
    state = loader.state_dict()
    other = make(accumulate=1)
    list(itertools.islice(other, 5))
    other.load_state_dict(state, allow_batch_change=True)
    batches = list(itertools.islice(other, 4))
    assert [row.step for row in other.timeline] == [0, 1, 2, 3, 4, *(b.step for b in batches)]


def test_the_last_batches_are_kept():
    loader = make([4] * 6000, seq_len=4)
    for _ in itertools.chain(loader, loader):
        loader.log(loss=1.0)
    timeline = loader.timeline
    assert (timeline[0].step, timeline[-1].step, len(timeline)) == (2000, 11_999, 10_000)
    assert all(row.logged for row in timeline)


def test_a_timeline_is_written_as_lines_and_as_a_trace(tmp_path: Path):
    loader = make(accumulate=2, num_workers=2)
    for batch in itertools.chain(loader, loader):
        loader.log(loss=math.nan if batch.step == 4 else 1.5, seconds=3, name=4)
    timeline = loader.timeline
    timeline.write_jsonl(tmp_path / "t.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [row.step for row in timeline]
    assert rows[4]["logged"] == {"loss": "nan", "seconds": 3, "name": 4}
    assert all(row["utilization"] == row["tokens"] / row["slots"] for row in rows)
    timeline.write_trace(tmp_path / "t.json")
    events = loaded(tmp_path / "t.json")
    names = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    steps = on_track(events, "steps", names)
    assert [e["name"] for e in steps] == [f"step {row.step}" for row in timeline]
    assert steps[0]["args"]["logged"] == {"loss": 1.5, "seconds": 3, "name": 4}
    assert "loss" not in steps[4]["args"]["logged"]
    losses = [e["args"]["loss"] for e in events if e["ph"] == "C" and e["name"] == "loss"]
    assert losses == [1.5] * (len(timeline) - 1)
    check_makers(events, names, loader)


def check_makers(events: Any, names: Any, loader: bf.DataLoader) -> None:
    """Each batch is on one thread's track and one slot's, at the times of its record."""
    tracks = {e["args"]["name"]: e["tid"] for e in names if e["name"] == "thread_name"}
    threads = {tid for name, tid in tracks.items() if name.startswith("thread ")}
    slots = {tid for name, tid in tracks.items() if name.startswith("slot ")}
    records = {f"batch {r.number}": r for r in loader.records()}
    began = min(r.entered for r in records.values())
    for group, end in ((threads, "filled"), (slots, "taken")):
        made = [e for e in events if e.get("tid") in group and e["name"].startswith("batch")]
        for event in made:
            record = records[event["name"]]
            assert event["ts"] == pytest.approx(1e6 * (record.leased - began), abs=0.01)
            wanted = 1e6 * (getattr(record, end) - record.leased)
            assert event["dur"] == pytest.approx(wanted, abs=0.01)
        seen = {event["name"] for event in made}
        assert seen == {name for name, r in records.items() if r.leased >= began}
    assert len(threads) <= 2
    assert len(slots) == len({r.slot for r in records.values() if r.leased >= began})


def test_a_profile_of_a_native_loader_shows_its_threads_and_slots(tmp_path: Path):
    from brimful.profiling.trace import write_trace

    loader = make([4] * 300, num_workers=2)
    list(itertools.islice(loader, 10))  # before the profile
    with bf.profile(loader) as p:
        for _ in p:
            pass
    write_trace(p.profile(), tmp_path / "t.json")
    events = loaded(tmp_path / "t.json")
    names = {
        e["args"].get("name") for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    }
    assert {"steps", "consumer", "slot 0"} <= names
    assert names & {"thread 0", "thread 1"}
    batches = {e["name"] for e in events if e["name"].startswith("batch ")}
    assert "batch 9" not in batches
    assert "batch 60" in batches


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_path_has_waits_and_what_was_logged(workers: int, tmp_path: Path):
    loader = bf.DataLoader(list(range(12)), batch_size=3, num_workers=workers)
    assert loader.explain().path == "torch"
    with pytest.raises(bf.PlanError, match="no batch was delivered"):
        loader.log(loss=1.0)
    for _ in range(2):
        for batch in loader:
            loader.log(total=batch.sum())
    timeline = loader.timeline
    assert [row.step for row in timeline] == list(range(8))
    assert [row.first for row in timeline] == [True, False, False, False] * 2
    assert [row.logged["total"] for row in timeline] == [3, 12, 21, 30] * 2
    stalls = sum(row.stall_seconds for row in timeline)
    assert 0 < stalls <= loader.stats().stall_seconds
    assert timeline[0].tokens is None
    with pytest.raises(bf.PlanError, match="knows no documents"):
        timeline.exposure(0)
    timeline.write_trace(tmp_path / "t.json")
    assert len([e for e in loaded(tmp_path / "t.json") if e["ph"] == "X"]) == 8
