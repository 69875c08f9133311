"""Records of the last batches: what each held, how long it took to make and to wait for."""

from __future__ import annotations

from dataclasses import dataclass

from brimful import _core


@dataclass(frozen=True)
class BatchRecord:
    """One delivered batch. Times are in seconds; a thread's work that was hidden behind the
    consumer's is in them too, a wait is not.

    Attributes:
        epoch, step, micro_batch: its place: the step's number in its epoch, its own in the step.
        slots: places in the batch, without dummy rows.
        tokens: real tokens, without bad documents.
        effective_tokens: labels other than -100.
        attention_work: sum of squared segment lengths, as in `Batch`.
        plan_seconds: planning by the thread that claimed it; a window that was not planned ahead
            is planned with its first batch.
        read_seconds: reading files with `io="pread"` and comparing them with checksums; what mapped
            files cost beside that is filling.
        fill_seconds: writing columns.
        stall_seconds: host time blocked in `next()`; 0 for an iteration's first batch, which
            `Stats.first_batch_seconds` counts.
        queue_depth: batches ready when `next()` was called, out of `depth`.
        slots_in_use: slots of the ring with the consumer, being filled or ready, at its return.
    """

    epoch: int
    step: int
    micro_batch: int
    slots: int
    tokens: int
    effective_tokens: int
    attention_work: int
    plan_seconds: float
    read_seconds: float
    fill_seconds: float
    stall_seconds: float
    queue_depth: int
    slots_in_use: int

    @property
    def utilization(self) -> float | None:
        """tokens / slots; None for a dummy row."""
        return self.tokens / self.slots if self.slots else None


def records(ledger: _core.Ledger) -> list[BatchRecord]:
    """The records in a loader's ledger, in order of delivery."""
    return [
        BatchRecord(*place, *counts, *times, *ring)
        for place, counts, times, ring in ledger.records()
    ]
