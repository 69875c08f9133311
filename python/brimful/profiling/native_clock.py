"""How long brimful's own threads took for batches: they keep records of the last ones."""

from __future__ import annotations

from typing import Any

from brimful.batch import Batch
from brimful.loader import DataLoader
from brimful.profiling.clocks import MakerStats, Making, WaitClock


class NativeClock(WaitClock):
    """Of a native `brimful.DataLoader`."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__()
        self._loader = loader
        self._before = loader.stats()
        self._read = loader._ledger.num_records  # records before this one are of no use any more
        # Batches whose records are not read yet: number, and the place where the batch tells it.
        self._pending: list[tuple[int, tuple[int, int, int] | None]] = []

    def enter(self) -> None:
        """The threads keep time themselves."""

    def taken(self, number: int, batch: Any) -> None:
        """Remembers which record is this batch's."""
        is_batch = isinstance(batch, Batch)  # else of a collate_fn
        place = (batch.epoch, batch._step, batch.micro_batch) if is_batch else None
        self._pending.append((number, place))

    def settle(self) -> list[tuple[int, Making]]:
        """Reads the records of batches that were taken since, the newest of the loader's."""
        pending, self._pending = self._pending, []
        settled: list[tuple[int, Making]] = []
        records = self._loader.records(self._read) if pending else []
        if records:
            self._read = records[-1].number + 1
        for number, place in reversed(pending):
            # Another iterator may have drawn batches of the same loader meanwhile.
            for newest in reversed(range(len(records))):
                record = records[newest]
                if place in (None, (record.epoch, record.step, record.micro_batch)):
                    load = record.plan_seconds + record.read_seconds + record.fill_seconds
                    settled.append((number, Making(load=load, queue_depth=record.queue_depth)))
                    del records[newest:]
                    break
        settled.reverse()
        return settled

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
