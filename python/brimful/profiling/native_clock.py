"""How long brimful's own threads took for batches: they keep records of the last ones."""

from __future__ import annotations

from typing import Any

from brimful.loader import DataLoader
from brimful.profiling.clocks import MakerStats, Making, WaitClock
from brimful.records import BatchRecord


class NativeClock(WaitClock):
    """Of a native `brimful.DataLoader`. A batch's record is the loader's newest as it comes."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__()
        self._loader = loader
        self._before = loader.stats()
        self._first = loader._ledger.num_records
        # Batches by the numbers of their records: those that were not read yet, and those that did
        # not tell yet how long the device waited.
        self._unread: dict[int, int] = {}
        self._unstarved: dict[int, int] = {}

    def enter(self) -> None:
        """The threads keep time themselves."""

    def taken(self, number: int, batch: Any) -> None:
        """Remembers which record is this batch's."""
        self._unread[self._loader._ledger.num_records - 1] = number

    def settle(self) -> list[tuple[int, Making]]:
        """Reads the records of batches that were taken since."""
        unread = dict(self._unread)
        if not unread:
            return []
        settled = [
            (unread[record.number], _making(record))
            for record in self._loader.records(min(unread))
            if record.number in unread
        ]
        if self._loader.config.device is not None:
            self._unstarved |= unread
        for record_number in unread:  # only now: an interrupt before it loses nothing
            self._unread.pop(record_number, None)
        return settled

    def starved(self) -> list[tuple[int, float]] | None:
        """Of batches that the device has come past since."""
        if self._loader.config.device is None:
            return None
        waiting = self._unstarved
        records = self._loader.records(min(waiting)) if waiting else []
        found = [
            (number, record.number, record.starvation.seconds)
            for record in records
            if record.starvation is not None and (number := waiting.get(record.number)) is not None
        ]
        if found:  # the device comes past them in their order; others are not measured at all
            newest = found[-1][1]
            self._unstarved = {record: n for record, n in waiting.items() if record > newest}
        return [(number, seconds) for number, _, seconds in found]

    def records(self) -> tuple[BatchRecord, ...]:
        """All since the profile began, of the last 10,000."""
        return tuple(self._loader.records(self._first))

    def stats(self) -> MakerStats:
        """Threads and device as the loader counts them."""
        since = self._loader.stats().since(self._before)
        own = self._usage()
        return MakerStats(
            read_bytes=own.read_bytes,
            major_faults=own.major_faults,
            starvation=since.starvation,
            threads=since.threads,
        )


def _making(record: BatchRecord) -> Making:
    load = record.plan_seconds + record.read_seconds + record.fill_seconds
    return Making(
        load=load,
        blocked=max(0.0, load - record.running_seconds),
        queue_depth=record.queue_depth,
    )
