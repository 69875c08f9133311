"""Running sums of a profile, as `ProfileStats` has them."""

from __future__ import annotations

from typing import Any

from brimful.profiling.clocks import Making
from brimful.profiling.figures import BatchFigures

_COUNTED = ("slots", "tokens", "effective_tokens", "documents", "attention_work")
_MADE = ("load", "blocked", "collate", "queue_depth")


class Sums:
    """Adds up what is known of batches, each figure when it becomes known."""

    def __init__(self) -> None:
        self.batches = 0
        self.first_batches = 0
        self.first_batch_seconds = 0.0
        self.stall_seconds = 0.0
        self.end_seconds = 0.0
        self.step_seconds = 0.0
        self._num_bytes = 0
        self._counted = dict.fromkeys(_COUNTED, 0)
        self._uncounted: set[str] = set()
        self._made = dict.fromkeys(_MADE, 0.0)
        self._makings = dict.fromkeys(_MADE, 0)
        self._length_counts: list[int] = []

    def add_wait(self, seconds: float, *, first: bool) -> None:
        """Of a batch."""
        self.batches += 1
        if first:
            self.first_batches += 1
            self.first_batch_seconds += seconds
        else:
            self.stall_seconds += seconds

    def add_figures(self, figures: BatchFigures) -> None:
        """What a batch holds."""
        self._num_bytes += figures.num_bytes
        for name in _COUNTED:
            value = getattr(figures, name)
            if value is None:
                self._uncounted.add(name)
            else:
                self._counted[name] += value
        counts = self._length_counts
        for length in figures.lengths or ():
            entry = length.bit_length() - 1
            if entry >= len(counts):
                counts.extend([0] * (entry + 1 - len(counts)))
            counts[entry] += 1

    def add_making(self, making: Making) -> None:
        """How a batch was made that is no first one."""
        for name in _MADE:
            value = getattr(making, name)
            if value is not None:
                self._made[name] += value
                self._makings[name] += 1

    def fields(self) -> dict[str, Any]:
        """The fields of `ProfileStats` that are sums or means of batches."""
        made = {name: self._made[name] if self._makings[name] else None for name in _MADE}
        depths = made.pop("queue_depth")
        return {
            "batches": self.batches,
            "first_batches": self.first_batches,
            "first_batch_seconds": self.first_batch_seconds,
            "stall_seconds": self.stall_seconds,
            "end_seconds": self.end_seconds,
            "step_seconds": self.step_seconds,
            **{f"{name}_seconds": seconds for name, seconds in made.items()},
            "loaded_batches": self._makings["load"],
            **{
                name: None if name in self._uncounted or not self.batches else count
                for name, count in self._counted.items()
            },
            "num_bytes": self._num_bytes,
            "queue_depth": None if depths is None else depths / self._makings["queue_depth"],
            "length_counts": tuple(self._length_counts),
        }
