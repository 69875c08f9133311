"""Where the seconds of a profile went: waits put down to what would have avoided them.

A wait that lasts (making a batch takes longer, by all who make them, than a step) is put down to
storage as far as reads that take no time would have avoided it, to threads as far as one on every
core would have, and to filling beyond that. A wait that comes of bursts, while batches are made
fast enough on the whole, is put down to depth, except for what every batch waits even when it is
ready: the way from the one who made it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from brimful.profiling.figures import Profile

# Where so much of the wait lasts, or makers are so much slower than the loop that no queue would
# ever fill, bursts are not told apart from it.
_LASTING = 0.5
_SLOWER = 1.5
# More are no advice.
_MOST_MAKERS = 64
_MOST_DEPTH = 1000


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds of an average batch, first batches left out; None where not measured.

    Attributes:
        batches: how many the means are over.
        wait: the consumer's, in `next()`.
        step: what the consumer did with it.
        load: making it; by several at a time, where there are workers.
        blocked: the part of `load` that was waited for storage.
        starved: the device's; it counts in place of `wait` where it was measured.
    """

    batches: int
    wait: float
    step: float
    load: float | None
    blocked: float | None
    starved: float | None

    @property
    def total(self) -> float:
        """From one batch to the next."""
        return self.wait + self.step

    @property
    def lost(self) -> float:
        """The part of `total` that data was waited for."""
        return self.wait if self.starved is None else min(self.starved, self.total)


def pace(profile: Profile) -> Pace:
    """The means of a profile; of no batches, zeros."""
    stats, facts = profile.stats, profile.facts
    waits = max(stats.batches - stats.first_batches, 0)
    steps = stats.batches - (bool(profile.batches) and profile.batches[-1].step is None)
    wait = stats.stall_seconds / waits if waits else 0.0
    load = blocked = None
    if stats.load_seconds is not None and stats.loaded_batches:
        load = stats.load_seconds / stats.loaded_batches
        if stats.blocked_seconds is not None:
            blocked = min(stats.blocked_seconds / stats.loaded_batches, load)
    elif not facts.workers and waits:  # whatever makes it, the consumer waits for it
        load = wait
        if stats.blocked_seconds is not None:
            blocked = min(stats.blocked_seconds / waits, load)
    device = stats.starvation
    measured = device is not None and device.batches > 0
    return Pace(
        batches=waits,
        wait=wait,
        step=stats.step_seconds / steps if steps else 0.0,
        load=load,
        blocked=None if load is None else _storage_part(profile, blocked),
        starved=device.seconds / device.batches if device is not None and measured else None,
    )


def _storage_part(profile: Profile, blocked: float | None) -> float | None:
    """The part of a load that is put down to storage."""
    stats = profile.stats
    if profile.facts.kind != "brimful":
        return blocked
    # Its threads are not running either while others keep all cores busy. That tokens, of two bytes
    # or more, came from storage is told by the system, or, of file systems that it does not count,
    # by reads that took most of the time.
    cold = bool(stats.read_bytes and stats.tokens and stats.read_bytes >= stats.tokens / 4)
    reads = sum(times.read for times in stats.threads or ())
    work = sum(times.plan + times.fill for times in stats.threads or ())
    return blocked if cold or reads > work else 0.0


def seconds_by_cause(profile: Profile) -> dict[str, float]:
    """Seconds lost to each cause, of the profile's wall time; those of nothing are left out."""
    stats, means = profile.stats, pace(profile)
    stall = stats.stall_seconds
    lost = _waits(profile, means, stall)
    device = stats.starvation
    if device is not None and device.batches:
        late = max(device.load_seconds - device.ring_seconds, 0.0)
        whole = sum(lost.values())
        shares = {name: lost[name] / whole for name in lost} if whole else {"fill": 1.0}
        lost = {name: share * late for name, share in shares.items()}
        lost["depth"] = lost.get("depth", 0.0) + device.ring_seconds
        lost["copy"] = lost.get("copy", 0.0) + device.copy_seconds
        lost["consumer"] = device.handoff_seconds
    if stats.utilization is not None:
        computing = stats.step_seconds
        if means.starved is not None:
            computing = max(stall + computing - means.starved * means.batches, 0.0)
        lost["padding"] = computing * (1 - stats.utilization)
    lost["first batch"] = stats.first_batch_seconds + stats.end_seconds
    return {name: seconds for name, seconds in lost.items() if seconds > 0}


def _waits(profile: Profile, means: Pace, stall: float) -> dict[str, float]:
    """The stall by its causes."""
    load, workers = means.load, profile.facts.workers
    if not stall:
        return {}
    if not load:  # what making costs was not measured
        return {"fill": stall}
    parts = _lasting(means, load, workers or 0, profile.facts.cores)
    short = sum(parts.values())
    steady = stall if not workers else short * means.batches
    slower = bool(workers) and load / (workers or 1) >= _SLOWER * means.step
    if steady >= _LASTING * stall or slower:
        return {name: stall * part / short for name, part in parts.items()}
    lost = {name: part * means.batches for name, part in parts.items()}
    ready = min(_share_of_ready(profile) * stall, stall - steady) if not steady else 0.0
    return {**lost, "copy": ready, "depth": stall - steady - ready}


def _lasting(means: Pace, load: float, workers: int, cores: int) -> dict[str, float]:
    """What a batch is late by however many may wait ready, taken apart."""
    step, running = means.step, load - (means.blocked or 0.0)

    def late(cost: float, makers: int) -> float:
        return max(cost / makers - step, 0.0) if makers else cost

    everything = late(load, workers)
    storage = everything - late(running, workers)
    fill = min(late(running, max(cores, workers, 1)), everything - storage)
    return {"storage": storage, "threads": everything - storage - fill, "fill": fill}


def _share_of_ready(profile: Profile) -> float:
    """Of the waits, what was waited for batches that were there: for brimful's, which are ready in
    their order, all waits with one ready; for others those with as many ready as there may be, or
    what nine of ten batches wait at least.
    """
    batches = [batch for batch in profile.batches if not batch.first]
    waits = sorted(batch.wait for batch in batches)
    whole = sum(waits)
    if not whole:
        return 0.0
    ordered = profile.facts.kind == "brimful"
    enough = 1 if ordered else max(profile.facts.depth or 0, 1)
    known = sum(batch.wait for batch in batches if (batch.queue_depth or 0) >= enough) / whole
    least = waits[len(waits) // 10] * len(waits) / whole
    return known if ordered else min(max(known, least), 1.0)


def depth_needed(profile: Profile, means: Pace) -> int | None:
    """Batches that must be ready ahead so that the longest burst is not noticed; None: unknown, or
    so many that it is no advice, as for a loop that does nothing.
    """
    makers = max(profile.facts.workers or 0, 1)
    worst = behind = 0.0
    for batch in profile.batches:
        if batch.load is None:
            return None
        behind = max(behind + batch.load / makers - means.step, 0.0)
        worst = max(worst, behind, batch.load - means.step)
    return _whole(worst + means.step, means.step, most=_MOST_DEPTH)


def makers_needed(means: Pace) -> int | None:
    """Threads or processes that make a batch a step; None as in `depth_needed`."""
    return None if means.load is None else _whole(means.load * 1.05, means.step, most=_MOST_MAKERS)


def _whole(seconds: float, step: float, *, most: int) -> int | None:
    """How many steps that is, rounded up."""
    return math.ceil(seconds / step) if seconds < most * step else None
