"""What the Trace Event Format asks of a file, as far as viewers rely on it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

_NEEDED = {
    "X": {"name": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float)},
    "C": {"name": str, "pid": int, "ts": (int, float), "args": dict},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
}


def checked(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slices and counters, after a check of every event."""
    timed = []
    for event in events:
        for key, kind in _NEEDED[event["ph"]].items():
            assert isinstance(event[key], kind), (key, event)
            assert not isinstance(event[key], bool)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            continue
        assert math.isfinite(event["ts"])
        assert event["ts"] >= 0
        assert event.get("dur", 0) >= 0
        if event["ph"] == "C":
            assert event["args"], "a counter has a curve"
            assert all(math.isfinite(value) for value in event["args"].values())
        timed.append(event)
    assert [e["ts"] for e in timed] == sorted(e["ts"] for e in timed)
    _check_nesting([event for event in timed if event["ph"] == "X"])
    named = {e["tid"] for e in events if e["name"] == "thread_name"}
    assert {e["tid"] for e in timed if "tid" in e} <= named, "every track has a name"
    return timed


def _check_nesting(slices: list[dict[str, Any]]) -> None:
    """Slices of a track lie beside or inside each other: viewers drop one that sticks out."""
    open_slices: dict[int, list[int]] = {}
    for piece in slices:
        ends = open_slices.setdefault(piece["tid"], [])
        begin = round(1000 * piece["ts"])  # in nanoseconds, as viewers keep time
        end = begin + round(1000 * piece["dur"])
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or end <= ends[-1], piece
        ends.append(end)


def loaded(path: Path) -> list[dict[str, Any]]:
    """The checked events of a file."""
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert all(isinstance(value, str) for value in trace["otherData"].values())
    return checked(trace["traceEvents"])


def on_track(events: list[dict[str, Any]], name: str, all_events: list[dict[str, Any]]) -> Any:
    """The slices of the track of this name."""
    (track,) = (e["tid"] for e in all_events if e["ph"] == "M" and e["args"].get("name") == name)
    return [event for event in events if event["ph"] == "X" and event["tid"] == track]
