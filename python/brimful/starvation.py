"""How long a device stood still because a batch was not there."""

from __future__ import annotations

from dataclasses import dataclass

from brimful import _core


@dataclass(frozen=True, kw_only=True)
class Starvation:
    """Device time that the stream which batches are used on waited for them, by its own clock.

    Measured with events, which the host reads later without waiting; the first batch of every pass
    and the time before it are left out, and so is what a graph's capture takes. It speaks of one
    stream: what others did meanwhile is not seen.

    Attributes:
        batches: batches measured; those of the last moments may be missing.
        elapsed_seconds: from each pass's first batch to its last.
        seconds: time starved: the sum of the next four.
        load_seconds: the batch was not made yet.
        ring_seconds: and the thread that made it was waiting for a slot.
        copy_seconds: it was on its way to the device.
        handoff_seconds: it was on the device, and the host late to say so.
        fraction: seconds / elapsed_seconds, 0..1; None before the second batch.
        headroom_seconds: how long the device still had work when `next()` was entered: the 1st
            percentile of the last 1,024 batches. It falls before starvation shows. None before the
            second batch.
        pinned_bytes: page-locked memory of the loader.
    """

    batches: int
    elapsed_seconds: float
    seconds: float
    load_seconds: float
    ring_seconds: float
    copy_seconds: float
    handoff_seconds: float
    fraction: float | None
    headroom_seconds: float | None
    pinned_bytes: int

    def since(self, earlier: Starvation) -> Starvation:
        """What came after `earlier`; headroom and memory are those of now."""
        return _starvation(
            {name: getattr(self, name) - getattr(earlier, name) for name in _ADDITIVE},
            self.headroom_seconds,
            self.pinned_bytes,
        )


_ADDITIVE = (
    "batches",
    "elapsed_seconds",
    "seconds",
    "load_seconds",
    "ring_seconds",
    "copy_seconds",
    "handoff_seconds",
)


def _starvation(sums: dict[str, float], headroom: float | None, pinned_bytes: int) -> Starvation:
    elapsed = sums["elapsed_seconds"]
    return Starvation(
        batches=int(sums.pop("batches")),
        fraction=sums["seconds"] / elapsed if elapsed else None,
        headroom_seconds=headroom,
        pinned_bytes=pinned_bytes,
        **sums,
    )


def starvation_of(transfer: _core.Transfer) -> Starvation:
    """What was measured on the way to a device."""
    counts = transfer.starvation
    sums = {
        "batches": counts.batches,
        "elapsed_seconds": counts.elapsed,
        "seconds": counts.starved,
        "load_seconds": counts.load,
        "ring_seconds": counts.ring,
        "copy_seconds": counts.copy,
        "handoff_seconds": counts.handoff,
    }
    return _starvation(sums, counts.headroom, transfer.pinned_bytes)
