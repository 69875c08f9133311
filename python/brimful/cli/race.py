"""Two loaders, one epoch each, under the same simulated training step: what padding costs."""

from __future__ import annotations

import brimful as bf
from brimful.cli.meter import Measured, measure, simulated_step
from brimful.cli.padding import padded_loader


def race(
    corpus: bf.Corpus, *, batch_size: int, seq_len: int, seconds_per_slot: float, seed: int
) -> list[Measured]:
    """torch with padding (0 and 2 workers), then brimful (2 threads); both deliver every token."""
    step = simulated_step(seconds_per_slot)
    results = []
    for workers in (0, 2):
        padded = padded_loader(
            corpus,
            batch_size=batch_size,
            seq_len=seq_len,
            num_workers=workers,
            shuffle=True,
            seed=seed,
        )
        results.append(measure(f"torch, {workers} workers", padded, seconds=None, step=step))
    loader = bf.DataLoader(
        corpus,
        batch_size=batch_size,
        seq_len=seq_len,
        packing="best_fit_decreasing",
        shuffle=True,
        seed=seed,
        num_workers=2,
        fields=("input_ids", "labels"),
    )
    results.append(measure("brimful, 2 threads", loader, seconds=None, step=step))
    loader.close()
    return results
