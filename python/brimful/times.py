"""Where time goes: by thread, and summed over the streams of a loader."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from itertools import chain, zip_longest

from brimful import _core


@dataclass(frozen=True)
class ThreadTimes:
    """What one thread that makes batches spent its time on, in seconds.

    Attributes:
        plan: packing and dealing.
        read: reading files with `io="pread"`; what mapped files cost is in `fill`.
        fill: writing columns.
        backpressure: waiting for a free slot, or resting while the consumer makes batches.
    """

    plan: float = 0.0
    read: float = 0.0
    fill: float = 0.0
    backpressure: float = 0.0

    def plus(self, other: ThreadTimes, sign: int = 1) -> ThreadTimes:
        """The sum; with a sign of -1 the difference."""
        both = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return ThreadTimes(*(mine + sign * theirs for mine, theirs in both))


Threads = tuple[ThreadTimes, ...]


def add_threads(mine: Threads, theirs: Threads, sign: int = 1) -> Threads:
    """Thread by thread, and the last ones, which are consumers; who is missing has done nothing."""
    workers = zip_longest(mine[:-1], theirs[:-1], fillvalue=ThreadTimes())
    consumers = zip_longest(mine[-1:], theirs[-1:], fillvalue=ThreadTimes())
    return tuple(one.plus(other, sign) for one, other in chain(workers, consumers))


@dataclass(frozen=True)
class Times:
    """The times of a loader's streams, added up.

    Attributes:
        stall, first_batch: seconds that the consumer waited in `next()`, and for first batches.
        queue_depths: batches ready when `next()` was called, summed over batches.
        threads: of the workers, and last of the consumer.
    """

    stall: float = 0.0
    first_batch: float = 0.0
    queue_depths: int = 0
    threads: Threads = ()

    def plus(self, counters: _core.PrefetchCounters) -> Times:
        """These and those of one more stream."""
        return Times(
            stall=self.stall + counters.stall_seconds,
            first_batch=self.first_batch + counters.first_batch_seconds,
            queue_depths=self.queue_depths + counters.queue_depths,
            threads=add_threads(self.threads, tuple(ThreadTimes(*row) for row in counters.threads)),
        )

    def seconds(self) -> dict[str, float]:
        """By the names that they have in `Stats`, those of threads summed."""
        all_threads = functools.reduce(ThreadTimes.plus, self.threads, ThreadTimes())
        return {
            "stall_seconds": self.stall,
            "first_batch_seconds": self.first_batch,
            "backpressure_seconds": all_threads.backpressure,
            "plan_seconds": all_threads.plan,
            "read_seconds": all_threads.read,
            "fill_seconds": all_threads.fill,
        }
