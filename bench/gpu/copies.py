"""A batch on its way over the bus, and what it costs to record an event."""

from __future__ import annotations

import time

import torch

from gpu import timing
from gpu.row import Row, span

SLOTS = 131_072


def measure_copies(slots: int = SLOTS) -> list[Row]:
    """As a parcel, and as columns made on the host; from page-locked memory."""
    rows = []
    for what, each in (("tokens of 2 B", 2), ("columns of 28 B", 28)):
        size = slots * each
        from_ = torch.empty(size, dtype=torch.uint8, pin_memory=timing.DEVICE == "cuda")
        to = torch.empty(size, dtype=torch.uint8, device=timing.DEVICE)
        taken = timing.seconds(lambda to=to, from_=from_: to.copy_(from_, non_blocking=True))
        rate = f"{size / taken / 1e9:.1f} GB/s"
        rows.append(Row(f"copy to the device, {slots:,} slots, {what} each", span(taken), rate))
    return rows


def measure_events(repeats: int = 2000) -> list[Row]:
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats)]
    events[0].record()
    timing.synchronize()
    start = time.perf_counter()
    for event in events:
        event.record()
    taken = (time.perf_counter() - start) / repeats
    timing.synchronize()
    return [Row("record an event", span(taken), "host seconds, through torch")]
