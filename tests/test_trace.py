"""Profiles as traces and as JSON lines: every time is where it belongs, every figure is there."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful.profiling.figures import (
    BatchFigures,
    LoaderFacts,
    Profile,
    ProfiledBatch,
    ProfileStats,
)
from brimful.profiling.jsonl import batch_objects, write_jsonl
from brimful.profiling.trace import trace_events, write_trace
from traces import checked, loaded, on_track

FIGURES = BatchFigures(
    slots=64,
    tokens=48,
    effective_tokens=40,
    documents=3,
    attention_work=900,
    num_bytes=1024,
    lengths=(16, 16, 16),
)


def profile_of(*batches: ProfiledBatch, workers: int | None = 2, **facts: Any) -> Profile:
    return Profile(
        facts=LoaderFacts(kind="torch", name="test.Loader", workers=workers, **facts),
        stats=ProfileStats(batches=len(batches)),
        batches=batches,
    )


def slices(profile: Profile, track: str) -> list[tuple[str, float, float]]:
    """(name, begin, end) of a track, in milliseconds."""
    events = trace_events(profile)
    return [
        (e["name"], e["ts"] / 1000, (e["ts"] + e["dur"]) / 1000)
        for e in on_track(checked(events), track, events)
    ]


TWO = profile_of(
    ProfiledBatch(number=0, first=True, entered=0.0, wait=0.5, step=0.1, figures=FIGURES),
    ProfiledBatch(
        number=1,
        first=False,
        entered=0.6,
        wait=0.02,
        step=None,
        load=0.3,
        queue_depth=2,
        starvation=0.001,
    ),
)


def test_steps_waits_and_work_are_where_they_were():
    assert slices(TWO, "steps") == [("step 0", 0, 600), ("step 1", 600, 620)]
    assert slices(TWO, "consumer") == [
        ("first batch", 0, 500),
        ("work", 500, 600),
        ("stall", 600, 620),
    ]


def test_a_slice_tells_what_the_batch_held_and_nothing_that_was_not_measured():
    events = trace_events(TWO)
    first, second = on_track(checked(events), "steps", events)
    assert first["args"] == {
        "slots": 64,
        "tokens": 48,
        "effective_tokens": 40,
        "documents": 3,
        "bytes": 1024,
    }
    assert second["args"] == {"bytes": 0, "starvation_ms": 1.0}


def test_curves_have_a_point_where_something_was_measured():
    counters: dict[str, list[Any]] = {}
    for event in checked(trace_events(TWO)):
        if event["ph"] == "C":
            counters.setdefault(event["name"], []).append((event["ts"] / 1e6, event["args"]))
    assert counters == {
        "utilization (%)": [(0.5, {"used": 75.0})],
        "batches ready": [(0.6, {"batches": 2})],
        "load (ms)": [(0.62, {"load": 300.0})],
        "waits (ms)": [(0.62, {"stall": 20.0, "starvation": 1.0})],
    }


def test_a_consumer_that_makes_its_batches_does_so_inside_its_wait():
    batch = ProfiledBatch(
        number=0,
        first=False,
        entered=1.0,
        wait=0.1,
        step=0.2,
        load=0.08,
        blocked=0.05,
        collate=0.02,
    )
    assert slices(profile_of(batch, workers=0), "consumer") == [
        ("stall", 1000, 1100),
        ("load", 1020, 1100),
        ("collate", 1080, 1100),
        ("work", 1100, 1300),
    ]


def test_of_a_loader_that_does_not_tell_its_load_the_wait_says_how_long_nothing_ran():
    batch = ProfiledBatch(number=0, first=False, entered=0.0, wait=0.1, step=0.2, blocked=0.04)
    events = trace_events(profile_of(batch, workers=None))
    stall, _ = on_track(checked(events), "consumer", events)
    assert stall["args"] == {"blocked_ms": 40.0}


def test_files_open_in_viewers_and_say_what_was_profiled(tmp_path: Path):
    profile = profile_of(*TWO.batches, settings={"batch_size": 8}, simulated_step=0.1)
    write_trace(profile, tmp_path / "t.json")
    assert loaded(tmp_path / "t.json") == checked(trace_events(profile))
    about = json.loads((tmp_path / "t.json").read_text())["otherData"]
    assert about == {
        "loader": "test.Loader",
        "kind": "torch",
        "workers": "2",
        "batch_size": "8",
        "simulated_step_seconds": "0.1",
    }


def test_a_profile_of_nothing_is_a_trace_and_no_lines(tmp_path: Path):
    write_trace(profile_of(), tmp_path / "t.json")
    write_jsonl(profile_of(), tmp_path / "t.jsonl")
    assert loaded(tmp_path / "t.json") == []
    assert (tmp_path / "t.jsonl").read_text() == ""


@pytest.mark.parametrize("write", [write_trace, write_jsonl])
def test_an_absent_folder_is_named(write: Any, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="absent"):
        write(TWO, tmp_path / "absent" / "file")


def test_json_lines_are_one_object_a_batch_with_the_same_keys(tmp_path: Path):
    write_jsonl(TWO, tmp_path / "t.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert rows == batch_objects(TWO)
    assert rows[0] == {
        "number": 0,
        "first": True,
        "entered": 0.0,
        "wait": 0.5,
        "stall": 0.0,
        "step": 0.1,
        "load": None,
        "blocked": None,
        "collate": None,
        "starvation": None,
        "queue_depth": None,
        "slots": 64,
        "tokens": 48,
        "effective_tokens": 40,
        "utilization": 0.75,
        "documents": 3,
        "attention_work": 900,
        "num_bytes": 1024,
    }
    assert rows[1].keys() == rows[0].keys()
    assert (rows[1]["stall"], rows[1]["utilization"]) == (0.02, None)
    named = batch_objects.__doc__ or ""
    assert all(f"`{key}`" in named for key in rows[0]), "each key is documented"


seconds = st.floats(0, 1e4, allow_nan=False)
maybe = st.none() | seconds


@given(
    st.lists(st.tuples(st.booleans(), seconds, seconds, maybe, maybe, maybe), max_size=8),
    st.sampled_from([None, 0, 1, 4]),
)
def test_any_profile_makes_a_sound_trace_that_loses_no_time(
    rows: list[tuple[bool, float, float, float | None, float | None, float | None]],
    workers: int | None,
):
    batches, now = [], 0.0
    for number, (first, wait, step, load, collate, starvation) in enumerate(rows):
        batches.append(
            ProfiledBatch(
                number=number,
                first=first,
                entered=now,
                wait=wait,
                step=step,
                load=load,
                collate=collate,
                starvation=starvation,
            )
        )
        now += wait + step
    profile = profile_of(*batches, workers=workers)
    steps = slices(profile, "steps")
    assert len(steps) == len(rows)
    assert sum(end - begin for _, begin, end in steps) == pytest.approx(1000 * now, abs=0.1)
    parts = [s for s in slices(profile, "consumer") if s[0] in ("first batch", "stall", "work")]
    assert sum(end - begin for _, begin, end in parts) == pytest.approx(1000 * now, abs=0.1)
    for row in batch_objects(profile):
        json.dumps(row, allow_nan=False)
