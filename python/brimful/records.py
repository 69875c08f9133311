"""Records of the last batches: what each held, how long it took to make and to wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brimful import _core
from brimful.telemetry import utilization


@dataclass(frozen=True)
class BatchStarvation:
    """Device time that one batch was waited for, by its causes; see `Starvation`.

    Attributes:
        load_seconds: the batch was not made yet.
        ring_seconds: and the thread that made it was waiting for a slot.
        copy_seconds: it was on its way to the device.
        handoff_seconds: it was on the device, and the host late to say so.
        headroom_seconds: how long the device still had work when `next()` was entered.
    """

    load_seconds: float
    ring_seconds: float
    copy_seconds: float
    handoff_seconds: float
    headroom_seconds: float

    @property
    def seconds(self) -> float:
        """Time starved, all causes together."""
        return self.load_seconds + self.ring_seconds + self.copy_seconds + self.handoff_seconds


@dataclass(frozen=True)
class BatchRecord:
    """One delivered batch. Times are in seconds; a thread's work that was hidden behind the
    consumer's is in them too, a wait is not.

    Attributes:
        number: of all batches that the loader delivered, from 0.
        epoch, step, micro_batch: its place: the step's number in its epoch, its own in the step.
        first: whether it is the first of an iteration.
        slots: places in the batch, without dummy rows.
        tokens: real tokens, without bad documents.
        effective_tokens: labels other than -100.
        attention_work: sum of squared segment lengths, as in `Batch`.
        plan_seconds: planning by the thread that claimed it; a window that was not planned ahead
            is planned with its first batch.
        read_seconds: reading files with `io="pread"` and comparing them with checksums; what mapped
            files cost beside that is filling.
        fill_seconds: writing columns.
        running_seconds: processor time of the thread that made it. Where it is less than the three
            before it together, the thread waited: for storage, or for a core. Of batches that take
            less than 200 us some are measured, and the others taken to be like them.
        stall_seconds: host time blocked, or at work on a batch, in `next()`; 0 for an iteration's
            first batch, which `Stats.first_batch_seconds` counts.
        queue_depth: batches ready when `next()` was called, out of `depth`.
        slots_in_use: slots of the ring with the consumer, being filled or ready, at its return.
        leased, claimed, filled: when the thread that made it had a slot, began with it, and was
            done; all as `time.perf_counter()` tells time.
        entered, taken: when `next()` was called for it, and returned it.
        thread: of `num_workers`, from 0; -1: the consumer, in `next()`.
        slot: address of the memory that it was filled into; equal for batches in the same slot.
        starvation: None without a device, for an iteration's first batch, and until the device has
            come past it.
    """

    number: int
    epoch: int
    step: int
    micro_batch: int
    first: bool
    slots: int
    tokens: int
    effective_tokens: int
    attention_work: int
    plan_seconds: float
    read_seconds: float
    fill_seconds: float
    running_seconds: float
    stall_seconds: float
    queue_depth: int
    slots_in_use: int
    leased: float
    claimed: float
    filled: float
    entered: float
    taken: float
    thread: int
    slot: int
    starvation: BatchStarvation | None

    @property
    def utilization(self) -> float | None:
        """tokens / slots; None for a dummy row."""
        return utilization(self.tokens, self.slots)


def records(ledger: _core.Ledger, transfer: _core.Transfer | None, since: int) -> list[BatchRecord]:
    """The records in a loader's ledger from number `since` on, in order of delivery."""
    rows = ledger.records(since)
    measured = [row[-1] for row in rows if row[-1] is not None]
    starved = dict(transfer.starved_batches(min(measured))) if transfer and measured else {}
    found = []
    for *groups, number in rows:
        fields: list[Any] = [field for group in groups for field in group]
        parts = starved.get(-1 if number is None else number)
        fields.append(None if parts is None else BatchStarvation(*parts))
        found.append(BatchRecord(*fields))
    return found
