"""Prints the limits of this machine, in tokens a second, for a corpus made in memory.

PYTHONPATH=bench python -m rivals.limit [millions of tokens]
"""

import math
import statistics
import sys

import numpy as np

from rivals.limit import FixedRows, Varlen

SEQ_LEN = 4096
ROUNDS = 7
TOKENS_A_ROUND = 30_000_000


def main() -> None:
    size = 1_000_000 * int(sys.argv[1] if len(sys.argv) > 1 else 100)
    generator = np.random.default_rng(1)
    tokens = generator.integers(0, 50_000, size, dtype=np.uint16)
    lengths = (
        generator.lognormal(math.log(449), 1.248, size // 300).astype(np.int64).clip(1, 100_000)
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    offsets = offsets[offsets <= size]

    jobs: dict[str, FixedRows | Varlen] = {}
    for batch_size in (8, 64):
        jobs[f"fixed rows, {batch_size} x {SEQ_LEN}"] = FixedRows(
            tokens, batch_size=batch_size, seq_len=SEQ_LEN
        )
        jobs[f"varlen, 5 columns, {batch_size} x {SEQ_LEN}"] = Varlen(
            tokens, offsets, slots=batch_size * SEQ_LEN
        )
    rates: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            batch_size = int(name.split()[-3])
            rates[name].append(job.run(TOKENS_A_ROUND // (batch_size * SEQ_LEN)))
    for name, seen in rates.items():
        median = statistics.median(seen)
        print(f"{name}: {median / 1e6:,.0f} M tokens/s, {1e9 / median:.3f} ns/token")


main()
