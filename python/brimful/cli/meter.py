"""One meter for every loader: how fast batches come, what they hold, how long the loop waited.

The first batch is timed apart and counted nowhere else: starting workers is paid once a run. Counts
are read from the batch (`num_tokens`, `num_items`), so that measuring costs all loaders the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from brimful import PlanError


@dataclass(frozen=True)
class Measured:
    """What one loader did after its first batch. Times in seconds."""

    name: str
    batches: int
    slots: int
    tokens: int
    effective_tokens: int
    seconds: float
    stall_seconds: float
    first_batch_seconds: float

    @property
    def utilization(self) -> float:
        """Real tokens a slot, 0 to 1."""
        return self.tokens / self.slots

    @property
    def tokens_per_second(self) -> float:
        """Real tokens a second."""
        return self.tokens / self.seconds

    @property
    def effective_tokens_per_second(self) -> float:
        """Tokens with a label a second."""
        return self.effective_tokens / self.seconds

    @property
    def stall_share(self) -> float:
        """Share of the time that the loop waited for the next batch."""
        return self.stall_seconds / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """Fields and derived figures, for JSON."""
        names = ("utilization", "tokens_per_second", "effective_tokens_per_second", "stall_share")
        return {**self.__dict__, **{name: getattr(self, name) for name in names}}


def simulated_step(seconds_per_slot: float) -> Callable[[int], None]:
    """A training step that only sleeps, for a time in proportion to the slots it is given."""

    def step(slots: int) -> None:
        time.sleep(slots * seconds_per_slot)

    return step


def measure(
    name: str,
    loader: Iterable[Any],
    *,
    seconds: float | None,
    step: Callable[[int], None] | None = None,
) -> Measured:
    """Draws batches for so many seconds, over as many epochs as that takes; None: for one epoch.

    Raises PlanError when an epoch has fewer than two batches: nothing is left to measure.
    """
    began = time.perf_counter()
    batches = _epochs(loader) if seconds is not None else iter(loader)
    first = next(batches, None)
    first_batch_seconds = time.perf_counter() - began
    if first is not None and step is not None:
        step(_slots(first))

    drawn = slots = tokens = effective = 0
    stall = 0.0
    start = before = time.perf_counter()
    for batch in batches:
        stall += time.perf_counter() - before
        size = _slots(batch)
        drawn += 1
        slots += size
        tokens += _counted(batch, "num_tokens")
        effective += _counted(batch, "num_items")
        if step is not None:
            step(size)
        before = time.perf_counter()
        if seconds is not None and before - start >= seconds:
            break
    if not drawn:
        raise PlanError(
            f"{name}: an epoch gives fewer than two batches, too few to measure; "
            "use a smaller batch size or more documents"
        )
    total = before - start
    return Measured(name, drawn, slots, tokens, effective, total, stall, first_batch_seconds)


def _epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Batches of one epoch after the other, until an epoch has fewer than two."""
    while True:
        drawn = 0
        for batch in loader:
            drawn += 1
            yield batch
        if drawn < 2:
            return


def _slots(batch: Any) -> int:
    """Places in the batch, padding included."""
    return math.prod(batch["input_ids"].shape)


def _counted(batch: Any, name: str) -> int:
    """A count that the batch carries: an attribute of ours, an entry of a plain dict."""
    return int(batch[name] if isinstance(batch, dict) else getattr(batch, name))
