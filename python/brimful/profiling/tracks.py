"""The parts of a trace in the Trace Event Format, which Perfetto and chrome://tracing open.

Times are seconds here and microseconds in the file, to the nanosecond. A track is a row of slices;
slices of one track that lie inside each other are shown below each other. A counter is a curve.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_PROCESS = 1
_ROUNDING = 2  # nanoseconds that slices may overlap by because their ends were rounded


class Tracks:
    """Collects slices and counters, and writes them in order of time."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._names: dict[int, str] = {}  # of tracks, by their place from the top
        self._slices: list[tuple[int, int, int, str, dict[str, Any]]] = []  # begin, end, track ...
        self._counters: list[tuple[int, str, dict[str, float]]] = []

    def slice(
        self,
        track: int,
        name: str,
        begin: float,
        seconds: float,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """A stretch of time; details of None are left out."""
        known = {key: value for key, value in (details or {}).items() if value is not None}
        first = _nano(begin)
        self._slices.append((first, max(first, _nano(begin + seconds)), track, name, known))

    def counter(self, name: str, time: float, values: Mapping[str, float | None]) -> None:
        """Points of one or more curves; where nothing was measured there is none."""
        known = {key: value for key, value in values.items() if value is not None}
        if known:
            self._counters.append((_nano(time), name, known))

    def name(self, track: int, name: str) -> None:
        """Names a track; tracks are shown by number."""
        self._names[track] = name

    def events(self) -> list[dict[str, Any]]:
        """All of them: names first, then by time, a longer slice before those inside it."""
        named = [_metadata("process_name", 0, {"name": self._process})]
        for track, name in sorted(self._names.items()):
            named.append(_metadata("thread_name", track, {"name": name}))
            named.append(_metadata("thread_sort_index", track, {"sort_index": track}))
        timed: list[tuple[int, dict[str, Any]]] = [
            (
                begin,
                {"ph": "X", "name": name, "tid": track, "dur": (end - begin) / 1e3, "args": args},
            )
            for begin, end, track, name, args in _nested(self._slices)
        ]
        timed += [
            (time, {"ph": "C", "name": name, "args": args}) for time, name, args in self._counters
        ]
        timed.sort(key=lambda pair: pair[0])  # stable: slices stay nested
        return named + [{**event, "pid": _PROCESS, "ts": time / 1e3} for time, event in timed]

    def write(self, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
        """Writes the file; `about` goes along as its metadata."""
        trace = {
            "traceEvents": self.events(),
            "displayTimeUnit": "ms",
            "otherData": {key: str(value) for key, value in about.items()},
        }
        Path(path).write_text(json.dumps(trace, allow_nan=False), encoding="utf-8")


def _nested(
    slices: Iterable[tuple[int, int, int, str, dict[str, Any]]],
) -> Iterable[tuple[int, int, int, str, dict[str, Any]]]:
    """By beginning, longer ones first, trimmed where rounding made neighbours of a track overlap:
    a viewer would show one below the other.
    """
    ordered = sorted(slices, key=lambda one: (one[0], -one[1]))
    ends = [one[1] for one in ordered]
    open_slices: dict[int, list[int]] = {}  # places of those that a track is inside of
    for place, (begin, _, track, _, _) in enumerate(ordered):
        around = open_slices.setdefault(track, [])
        while around and ends[around[-1]] - begin <= _ROUNDING:
            last = around.pop()
            ends[last] = min(ends[last], max(begin, ordered[last][0]))
        if around and 0 < ends[place] - ends[around[-1]] <= _ROUNDING:
            ends[place] = ends[around[-1]]
        around.append(place)
    return [(one[0], end, *one[2:]) for one, end in zip(ordered, ends, strict=True)]


def _nano(seconds: float) -> int:
    return round(seconds * 1e9)


def _metadata(name: str, track: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": _PROCESS, "tid": track, "args": values}
