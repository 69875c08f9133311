"""What a loader on torch's path delivered and waited for. brimful sees whole batches there, no
tokens, so that nothing else is counted.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from brimful.wording import counted


@dataclass(frozen=True, kw_only=True)
class TorchStats:
    """Counts and times since the loader was made, or since the last lap.

    Attributes:
        batches: batches delivered.
        stall_seconds: host time blocked in `next()`, without each epoch's first batch.
        first_batch_seconds: time from `iter()` to the first batch, over all epochs.
    """

    batches: int = 0
    stall_seconds: float = 0.0
    first_batch_seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The same as a plain dict of numbers, for any logger."""
        return dataclasses.asdict(self)

    def since(self, earlier: TorchStats) -> TorchStats:
        """What came after `earlier`."""
        return TorchStats(
            batches=self.batches - earlier.batches,
            stall_seconds=self.stall_seconds - earlier.stall_seconds,
            first_batch_seconds=self.first_batch_seconds - earlier.first_batch_seconds,
        )

    def summary(self) -> str:
        """One line for people: what came, and how long the loop waited for it."""
        return (
            f"{counted(self.batches, 'batch', 'batches')}, stall {self.stall_seconds:.2f} s, "
            f"first batch {self.first_batch_seconds:.2f} s"
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """When a batch was asked for and came, by `time.perf_counter()`."""

    entered: float
    taken: float
    first: bool


@dataclass
class Clock:
    """Running sums of one loader's passes, as `TorchStats` has them, and its last batches."""

    batches: int = 0
    stall_seconds: float = 0.0
    first_batch_seconds: float = 0.0
    last: deque[Moment] = field(default_factory=lambda: deque(maxlen=10_000))

    def read(self) -> TorchStats:
        """The sums now."""
        return TorchStats(
            batches=self.batches,
            stall_seconds=self.stall_seconds,
            first_batch_seconds=self.first_batch_seconds,
        )
