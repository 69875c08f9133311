"""Where the seconds of a profile went: waits put down to what would have avoided them.

A wait that lasts (making a batch takes longer, by all who make them, than a step) is put down to
storage as far as reads that take no time would have avoided it, and beyond that to threads where
one on every core would make batches in time, else to filling. A wait that comes of bursts, while
batches are made fast enough on the whole, is put down to depth, except for what every batch waits
even when it is ready: the way from the one who made it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from brimful.profiling.figures import Profile

# More are no advice.
MOST_MAKERS = 64
_MOST_DEPTH = 1000
_BARELY = 0.1  # of making a batch: what is waited beside the work
_SPARE = 1.05  # of the makers that are needed, so that they are a little ahead


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
        workers: who make batches, at a time; 0: the consumer.
        cores: that they may use.
    """

    batches: int
    wait: float
    step: float
    load: float | None
    blocked: float | None
    starved: float | None
    workers: int
    cores: int

    @property
    def total(self) -> float:
        """From one batch to the next."""
        return self.wait + self.step

    @property
    def lost(self) -> float:
        """The part of `total` that data was waited for."""
        return self.wait if self.starved is None else min(self.starved, self.total)

    @property
    def work(self) -> float:
        """The part of `load` that keeps a core busy. Where there are more makers than cores it is
        measured too long, for they stand in line; but all cores were busy at most all the time.
        """
        busy = (self.load or 0.0) - (self.blocked or 0.0)
        return busy if self.workers <= self.cores else min(busy, self.cores * self.total)

    @property
    def every(self) -> float:
        """Seconds from one batch to the next of those who make them now, if none had to rest."""
        load, workers = self.load or 0.0, max(self.workers, 1)
        return max(load / workers, self.work / min(workers, self.cores))

    def every_with(self, makers: int) -> float:
        """The same of another number; those who work gain nothing by more than there are cores."""
        making = self.work + (self.blocked or 0.0)
        return max(making / makers, self.work / min(makers, self.cores))

    @property
    def keeps_cores_busy(self) -> bool:
        """Whether even one maker on every core would take longer for a batch than a step."""
        return self.work / self.cores > self.step

    @property
    def only_works(self) -> bool:
        """Whether making a batch is work that waits for next to nothing."""
        return (self.blocked or 0.0) <= _BARELY * (self.load or 0.0)


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
        workers=facts.workers or 0,
        cores=max(facts.cores, 1),
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
    if not stall:
        return {}
    if not means.load:  # what making costs was not measured
        return {"fill": stall}
    parts = _lasting(means, told_apart=profile.facts.kind == "iterable")
    short = sum(parts.values())
    # Without workers nothing is ever ready.
    steady = min(short * means.batches, stall) if means.workers else stall
    ready = min(_share_of_ready(profile, late=short > 0) * stall, stall - steady)
    if not short:
        return {"copy": ready, "depth": stall - ready}
    lost = {name: (stall - ready) * part / short for name, part in parts.items()}
    return {**lost, "copy": ready}


def _lasting(means: Pace, *, told_apart: bool) -> dict[str, float]:
    """What a batch is late by however many may wait ready, taken apart. Storage and threads are one
    cause, of the larger part, where one number of workers is the advice about both.
    """
    if means.workers:
        late = max(means.every - means.step, 0.0)
        of_work = means.work / min(means.workers, means.cores) - means.step
    else:  # the consumer makes them, and does not use any meanwhile
        late, of_work = means.load or 0.0, means.work
    rest = min(max(of_work, 0.0), late)
    if means.keeps_cores_busy:
        return {"storage": late - rest, "fill": rest}
    if told_apart:
        return {"storage": late - rest, "threads": rest}
    return {"threads" if rest > late - rest else "storage": late}


def _share_of_ready(profile: Profile, *, late: bool) -> float:
    """Of the waits, what was waited for batches that were there: for brimful's, which are ready in
    their order, all waits with one ready; for others those with as many ready as there may be, or
    what nine of ten batches wait at least, where it is not that they are made too late.
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
    return known if ordered or late else min(max(known, least), 1.0)


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
    needed = worst + means.step
    return math.ceil(needed / means.step) if needed < _MOST_DEPTH * means.step else None


def makers_needed(means: Pace) -> int:
    """Threads or processes that make a batch a step, or as near to it as more of them come: one a
    core where they work, more where they wait as well, and never more than 64.
    """
    making = means.work + (means.blocked or 0.0)
    most = MOST_MAKERS
    if means.only_works:
        most = min(means.cores, MOST_MAKERS)
    elif means.work * MOST_MAKERS > making * means.cores:
        most = int(making * means.cores / means.work)
    if making * _SPARE >= most * means.step:
        return most
    return max(math.ceil(making * _SPARE / means.step), 1)
