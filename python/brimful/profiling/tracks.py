"""The parts of a trace in the Trace Event Format, which Perfetto and chrome://tracing open.

Times are seconds here and microseconds in the file. A track is a row of slices; slices of one track
that lie inside each other are shown below each other. A counter is a curve.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROCESS = 1


class Tracks:
    """Collects slices and counters, and writes them in order of time."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._names: dict[int, str] = {}  # of tracks, by their place from the top
        self._events: list[dict[str, Any]] = []

    def slice(
        self,
        track: int,
        name: str,
        begin: float,
        seconds: float,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """A stretch of time; details of None are left out."""
        self._events.append(
            {
                "ph": "X",
                "name": name,
                "pid": _PROCESS,
                "tid": track,
                "ts": _micro(begin),
                "dur": round(_micro(begin + seconds) - _micro(begin), 3),
                "args": {key: value for key, value in (details or {}).items() if value is not None},
            }
        )

    def counter(self, name: str, time: float, values: Mapping[str, float | None]) -> None:
        """Points of one or more curves; where nothing was measured there is none."""
        known = {key: value for key, value in values.items() if value is not None}
        if known:
            event = {"ph": "C", "name": name, "pid": _PROCESS, "ts": _micro(time), "args": known}
            self._events.append(event)

    def name(self, track: int, name: str) -> None:
        """Names a track; tracks are shown by number."""
        self._names[track] = name

    def events(self) -> list[dict[str, Any]]:
        """All of them: names first, then by time, a longer slice before those inside it."""
        named = [_metadata("process_name", 0, {"name": self._process})]
        for track, name in sorted(self._names.items()):
            named.append(_metadata("thread_name", track, {"name": name}))
            named.append(_metadata("thread_sort_index", track, {"sort_index": track}))
        return named + sorted(self._events, key=lambda event: (event["ts"], -event.get("dur", 0)))

    def write(self, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        """Writes the file; `about` goes along as its metadata."""
        trace = {
            "traceEvents": self.events(),
            "displayTimeUnit": "ms",
            "otherData": {key: str(value) for key, value in about.items()},
        }
        Path(path).write_text(json.dumps(trace, allow_nan=False), encoding="utf-8")


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _metadata(name: str, track: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": _PROCESS, "tid": track, "args": values}
