"""A loader and its consumer as arithmetic: when batches are made, waited for and used.

Nothing here measures; it is the truth that verdicts are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from brimful.profiling.figures import (
    BatchFigures,
    LoaderFacts,
    Profile,
    ProfiledBatch,
    ProfileStats,
)
from brimful.starvation import Starvation


def profile_of(
    loads: Sequence[float],
    steps: Sequence[float],
    *,
    workers: int,
    depth: int = 4,
    blocked: Sequence[float] | None = None,
    cores: int = 8,
    kind: Literal["brimful", "torch", "iterable"] = "torch",
    slots: int = 0,
    tokens: int = 0,
    **more: Any,
) -> Profile:
    """The profile of a run in which batch i takes `loads[i]` to make and `steps[i]` to use.

    Workers take the next number when they are free and at most `depth` batches are ahead of the
    consumer, which gets them in order; without workers it makes them itself. `slots` and `tokens`
    are those of a batch. `more` are fields of ProfileStats.
    """
    n = len(loads)
    blocked = [0.0] * n if blocked is None else blocked
    free = [0.0] * max(workers, 1)
    made, taken, batches = [], [], []
    now = 0.0
    for i in range(n):
        if workers:
            worker = min(range(workers), key=free.__getitem__)
            room = taken[i - depth - workers] if i >= depth + workers else 0.0
            free[worker] = max(free[worker], room) + loads[i]
            made.append(free[worker])
        entered = now
        now = max(now, made[i]) if workers else now + loads[i]
        taken.append(now)
        batches.append(
            ProfiledBatch(
                number=i,
                first=i == 0,
                entered=entered,
                wait=now - entered,
                step=steps[i],
                load=loads[i],
                blocked=blocked[i],
                queue_depth=int(bool(workers) and made[i] <= entered),
                figures=BatchFigures(slots=slots or None, tokens=tokens or None),
            )
        )
        now += steps[i]
    stats = ProfileStats(
        **{
            "batches": n,
            "first_batches": 1,
            "wall_seconds": now,
            "first_batch_seconds": batches[0].wait,
            "stall_seconds": sum(batch.wait for batch in batches[1:]),
            "step_seconds": sum(steps),
            "load_seconds": sum(loads[1:]),
            "blocked_seconds": sum(blocked[1:]),
            "loaded_batches": n - 1,
            "slots": n * slots or None,
            "tokens": n * tokens or None,
            **more,
        }
    )
    facts = LoaderFacts(kind=kind, name="model", workers=workers, depth=depth, cores=cores)
    return Profile(facts=facts, stats=stats, batches=tuple(batches))


def device(batches: int, **parts: float) -> Starvation:
    """A device that waited for so much of ten seconds."""
    seconds = sum(parts.values()) - parts.get("ring_seconds", 0.0)
    names = ("load_seconds", "ring_seconds", "copy_seconds", "handoff_seconds")
    return Starvation(
        batches=batches,
        elapsed_seconds=10.0,
        seconds=seconds,
        fraction=seconds / 10,
        headroom_seconds=None,
        pinned_bytes=0,
        **{name: parts.get(name, 0.0) for name in names},
    )
