"""Traces of profiles that came from another process, or of several loaders of one loop."""

import dataclasses
from pathlib import Path
from typing import Any

import brimful as bf
from brimful.profiling.joined import joined
from brimful.profiling.saved import SavedProfile, read_saved, save
from brimful.profiling.trace import trace_events
from brimful.records import BatchStarvation
from traces import checked
from truth import corpus_of


def native_profile(documents: int = 40) -> Any:
    loader = bf.DataLoader(corpus_of([4] * documents), seq_len=4, num_workers=2, depth=2)
    with bf.profile(loader) as p:
        for _ in p:
            pass
    return p.profile()


def test_a_profile_is_the_same_on_the_other_side(tmp_path: Path):
    profile = native_profile()
    starved = BatchStarvation(0.1, 0.2, 0.3, 0.4, 0.5)
    first, *others = profile.records
    records = (dataclasses.replace(first, starvation=starved), *others)
    profile = dataclasses.replace(profile, records=records)
    saved = SavedProfile(place="x.py:1", rank=None, process=7, finished=True, profile=profile)
    save(tmp_path, [saved])
    (found,) = read_saved(tmp_path)
    assert found.profile.records == records
    assert found.profile.batches == profile.batches
    assert trace_events(found.profile) == trace_events(profile)


def test_threads_of_a_later_loader_follow_those_of_the_earlier_one():
    earlier, later = native_profile(30), native_profile(50)
    both = joined(earlier, later)
    events = checked(trace_events(both))
    slices = [event for event in events if event["ph"] == "X"]
    steps = [event for event in slices if event["name"].startswith("step ")]
    assert len(steps) == 80
    ends = 1e6 * earlier.stats.wall_seconds
    fills = sorted(event["ts"] for event in slices if event["name"] == "fill")
    assert len(fills) == len(both.records) == 80
    assert fills[29] <= ends + 1
    assert fills[30] >= ends - 1
    for profile in (earlier, later, both):
        for record, batch in zip(profile.records, profile.batches, strict=True):
            returned = profile.began + batch.entered + batch.wait
            assert batch.entered - 1e-9 <= record.taken - profile.began <= returned
