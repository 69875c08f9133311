"""What each rank of a job does in tests of gathered profiles: one of them has slower storage."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch.distributed as dist

import brimful as bf
from brimful.profiling.diagnose import diagnose
from brimful.profiling.ranks import RankReport
from run_ranks import leave_group

BATCHES = 12


def batches(rank: int, slow: int, waited: list[float]) -> Iterator[dict[str, Any]]:
    """One document a batch, `rank + 1` tokens of four; `slow` waits for each of them."""
    for _ in range(BATCHES):
        if rank == slow:
            began = time.perf_counter()
            time.sleep(0.03)
            waited.append(time.perf_counter() - began)
        yield {"input_ids": np.ones((1, 4), int), "attention_mask": np.arange(4)[None] <= rank}


def gathered(rank: int, slow: int, group: Any = None) -> tuple[RankReport, float]:
    """The report, and what this rank's storage took without the first batch."""
    waited: list[float] = [0.0]
    with bf.profile(batches(rank, slow, waited)) as profiler:
        for _ in profiler:
            dist.barrier(group)  # as gradients make ranks wait for each other
    return profiler.gather(group), sum(waited[2:])


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    slow = world - 1
    report, waited = gathered(rank, slow)
    assert [figures.rank for figures in report.ranks] == list(range(world))
    assert [figures.tokens for figures in report.ranks] == [float(r + 1) for r in range(world)]
    assert all(figures.batches == BATCHES and figures.slots == 4 for figures in report.ranks)
    mine = report.ranks[rank]
    if rank == slow:
        assert abs(mine.wait * (BATCHES - 1) - waited) < max(0.05 * waited, 0.005)
        assert mine.blocked is not None
        assert mine.blocked > 0.5 * mine.wait  # the rest stands in line for a core
    same: list[Any] = [None] * world
    dist.all_gather_object(same, str(report))
    assert len(set(same)) == 1, "every rank gets the same report"
    line = next(one for one in diagnose([], ranks=report).lines if "same pace" in one.question)
    if world > 1:
        assert report.slowest == slow, str(report)
        assert "waits" in report.summary()
        assert line.status == "look here"
        pair = dist.new_group([0, slow])
        if rank in (0, slow):
            half, _ = gathered(0 if rank == 0 else 1, slow=1, group=pair)
            assert len(half.ranks) == 2
            assert half.slowest == 1
    else:
        assert report.slowest is None
        assert line.status == "ok"
    leave_group()


if __name__ == "__main__":
    sys.exit(main())
