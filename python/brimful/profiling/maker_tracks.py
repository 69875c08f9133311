"""Tracks of a native loader's threads and slots: what each did for which batch, and when.

Between two batches a thread waits for a slot or plans ahead. What lies in a slot after its batch
was taken is the consumer's to know.
"""

from __future__ import annotations

from collections.abc import Sequence

from brimful.profiling.tracks import Tracks
from brimful.records import BatchRecord

_THREADS, _SLOTS = 100, 10_000  # tracks, from the top


def add_makers(tracks: Tracks, records: Sequence[BatchRecord], origin: float) -> None:
    """One track a thread and one a slot; `origin` is when the trace begins, by the records' clock.

    Batches from before that are left out.
    """
    made = sorted((record for record in records if record.leased >= origin), key=lambda r: r.leased)
    threads, slots = Lanes(tracks, "thread", _THREADS), Lanes(tracks, "slot", _SLOTS)
    for r in made:
        track = threads.place(r.thread, r.leased - origin, r.filled - origin)
        tracks.slice(track, f"batch {r.number}", r.leased - origin, r.filled - r.leased)
        tracks.slice(track, "plan", r.claimed - origin, r.plan_seconds)
        making = r.read_seconds + r.fill_seconds
        read = {"read_ms": round(1000 * r.read_seconds, 6)}
        tracks.slice(track, "fill", r.filled - origin - making, making, read)
        track = slots.place(r.slot, r.leased - origin, r.taken - origin)
        tracks.slice(track, f"batch {r.number}", r.leased - origin, r.taken - r.leased)
        tracks.slice(track, "filling", r.leased - origin, r.filled - r.leased)
        tracks.slice(track, "ready", r.filled - origin, r.taken - r.filled)


class Lanes:
    """Gives each thread or slot a track, and another one where two streams of one loader, each with
    threads of its own, worked at the same time: slices of a track must not overlap.
    """

    def __init__(self, tracks: Tracks, kind: str, first: int) -> None:
        self._tracks = tracks
        self._kind = kind
        self._first = first
        self._keys: dict[int, int] = {}  # thread or slot -> its number
        self._ends: dict[tuple[int, int], float] = {}
        self._track_of: dict[tuple[int, int], int] = {}

    def place(self, key: int, begin: float, end: float) -> int:
        """The track for a stretch of time; stretches come in order of their beginning."""
        number = key if self._kind == "thread" else self._keys.setdefault(key, len(self._keys))
        lane = 0
        while self._ends.get((number, lane), begin) > begin:
            lane += 1
        self._ends[number, lane] = end
        if (number, lane) not in self._track_of:
            track = self._track_of[number, lane] = self._first + len(self._track_of)
            name = "consumer, making batches" if number < 0 else f"{self._kind} {number}"
            self._tracks.name(track, name + (f" ({lane + 1})" if lane else ""))
        return self._track_of[number, lane]
