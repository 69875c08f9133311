"""Loaders that put batches on a device: brimful's ways, and torch's DataLoader over packed rows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

import brimful as bf
from gpu import timing
from gpu.row import Row

TOKENS, MEAN_LENGTH = 50_000_000, 900
BATCH_SIZE, SEQ_LEN = 16, 4096
SECONDS = 2.0  # of each loader, after its first batches


def documents(tokens: int = TOKENS) -> list[np.ndarray]:
    """Arrays of geometric length in memory, so that no disk is measured."""
    random = np.random.default_rng(17)
    values = random.integers(0, 50_000, tokens, dtype=np.uint16)
    cuts = random.geometric(1 / MEAN_LENGTH, tokens // MEAN_LENGTH).cumsum()
    return np.split(values, cuts[cuts < tokens])


class PackedRows(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Documents end to end, cut into rows: as quick as numpy and torch make these columns."""

    def __init__(self, documents: list[np.ndarray], seq_len: int) -> None:
        self.values = np.concatenate(documents)
        self.begins = np.cumsum([0, *map(len, documents[:-1])])
        self.seq_len = seq_len

    def __len__(self) -> int:
        return len(self.values) // self.seq_len

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        begin, end = row * self.seq_len, (row + 1) * self.seq_len
        ids = self.values[begin:end].astype(np.int64)
        slots = np.arange(begin, end)
        # The first document of the row may have begun before it.
        first, last = np.searchsorted(self.begins, (begin, end - 1), "right")
        inside = np.append(self.begins[first:last], end)
        starts = np.repeat(np.append(begin, inside[:-1]), np.diff(inside, prepend=begin))
        labels = ids.copy()
        labels[starts == slots] = -100
        columns = {"input_ids": ids, "labels": labels, "position_ids": slots - starts}
        return {name: torch.from_numpy(column) for name, column in columns.items()}


def rate(batches: Iterable[Any], to_device: bool, seconds: float) -> float:
    """Slots a second that arrive on the device."""
    slots, start = 0, 0.0
    for number, batch in enumerate(batches):
        if number == 20:  # threads run, memory is there
            timing.synchronize()
            slots, start = 0, time.perf_counter()
        columns = batch.values()
        if to_device:
            columns = [column.to(timing.DEVICE, non_blocking=True) for column in columns]
        slots += next(iter(columns)).numel()
        if number > 20 and time.perf_counter() - start > seconds:
            break
    timing.synchronize()
    return slots / (time.perf_counter() - start)


def measure_loaders(
    tokens: int = TOKENS, seconds: float = SECONDS, processes: tuple[int, ...] = (2, 8)
) -> list[Row]:
    source = documents(tokens)
    corpus, packed = bf.open(source), PackedRows(source, SEQ_LEN)

    def ours(**how: Any) -> Iterable[Any]:
        loader = bf.DataLoader(
            corpus, batch_size=BATCH_SIZE, seq_len=SEQ_LEN, shuffle=True, num_workers=2, **how
        )
        return itertools.chain.from_iterable(itertools.repeat(loader))

    def torchs(workers: int) -> Iterable[Any]:
        loader = torch.utils.data.DataLoader(
            packed,
            BATCH_SIZE,
            shuffle=True,
            num_workers=workers,
            pin_memory=timing.DEVICE == "cuda",
            persistent_workers=True,
        )
        return itertools.chain.from_iterable(itertools.repeat(loader))

    ways: list[tuple[str, Iterable[Any], bool]] = [
        ("brimful, 2 threads, .to(device)", ours(), True),
        ("brimful, 2 threads, pin_memory, .to(device)", ours(pin_memory=True), True),
        ("brimful, 2 threads, device=", ours(device=timing.DEVICE), False),
        *(
            (f"torch, {count} processes, pin_memory, .to(device)", torchs(count), True)
            for count in processes
        ),
    ]
    size = f"{BATCH_SIZE} x {SEQ_LEN}, three int64 columns"
    return [
        Row(name, f"{rate(batches, to_device, seconds) / 1e6:,.0f} M slots/s", size)
        for name, batches, to_device in ways
    ]
