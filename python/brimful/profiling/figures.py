"""What a profile is made of: one record a batch, their sums, and facts about the loader.

Times are host seconds unless a name says otherwise. None means not measured, never nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from brimful.records import BatchRecord
from brimful.starvation import Starvation
from brimful.telemetry import utilization
from brimful.times import ThreadTimes

Kind = Literal["brimful", "torch", "iterable"]


@dataclass(frozen=True, kw_only=True)
class BatchFigures:
    """What one batch holds, read from the batch itself.

    Attributes:
        slots: places for tokens, padding included.
        tokens: slots that hold a real token.
        effective_tokens: tokens with a label other than -100.
        documents: segments or, in padded rows, rows.
        attention_work: sum of squared segment lengths.
        num_bytes: of all tensors and arrays in it.
        lengths: of the segments, for a histogram.
    """

    slots: int | None = None
    tokens: int | None = None
    effective_tokens: int | None = None
    documents: int | None = None
    attention_work: int | None = None
    num_bytes: int = 0
    lengths: tuple[int, ...] | None = None

    @property
    def utilization(self) -> float | None:
        """tokens / slots; None where either is unknown."""
        return utilization(self.tokens, self.slots)


@dataclass(frozen=True, kw_only=True)
class ProfiledBatch:
    """One batch under a profile.

    Attributes:
        number: from 0 in the profile.
        first: the first of a pass; its wait is no stall and is counted apart.
        entered: when `next()` was called, or `iter()` for a first batch, in seconds since the
            profile began.
        wait: host time in `next()`; of a first batch, since `iter()`.
        step: time from the return of `next()` to the next call of it or the pass's end: what the
            consumer did with the batch. None of the last batch before the profile was read.
        load: time that making it took, wherever it was made; hidden or not.
        blocked: the part of `load` in which the maker was not running: storage, locks, sleep. Of a
            loader that does not tell its load, the part of `wait` in which the consumer was not.
        collate: the part of `load` spent in the collate function.
        queue_depth: batches ready when `next()` was called.
        starvation: device seconds.
        figures: what it holds.
    """

    number: int
    first: bool
    entered: float
    wait: float
    step: float | None
    load: float | None = None
    blocked: float | None = None
    collate: float | None = None
    queue_depth: int | None = None
    starvation: float | None = None
    figures: BatchFigures = BatchFigures()


@dataclass(frozen=True, kw_only=True)
class ProfileStats:
    """Sums over the batches of a profile; None where nothing was measured. What batches hold is
    summed only where every batch tells it.

    Attributes:
        batches: all of them; first_batches: of these, the first ones of passes.
        wall_seconds: from the first `iter()` to the end of the last step.
        first_batch_seconds: from `iter()` to the first batch, over all passes.
        stall_seconds: in `next()`, first batches left out.
        end_seconds: in `next()` that gave no batch: at a pass's end, where torch waits for worker
            processes to end, and before errors.
        step_seconds: what the consumer did with batches.
        load_seconds, blocked_seconds, collate_seconds: as in `ProfiledBatch`, summed over all
            threads or processes that make batches; first batches left out.
        loaded_batches: batches whose load was measured, for means.
        slots, tokens, effective_tokens, documents, attention_work, num_bytes: of all batches.
        queue_depth: mean; starvation: of the device.
        anonymous_bytes, file_backed_bytes: resident memory of the process at the end; the second is
            page cache, which the system takes back.
        worker_bytes: anonymous memory of worker processes.
        read_bytes: read from storage meanwhile by the process and its workers, page cache not
            counted; major_faults: pages of mapped files that were waited for.
        threads: what each thread of a native loader did meanwhile, and last its consumer, who makes
            batches at times.
        length_counts: segments by length: entry k counts lengths in [2**k, 2**(k+1)).
    """

    batches: int = 0
    first_batches: int = 0
    wall_seconds: float = 0.0
    first_batch_seconds: float = 0.0
    stall_seconds: float = 0.0
    end_seconds: float = 0.0
    step_seconds: float = 0.0
    load_seconds: float | None = None
    blocked_seconds: float | None = None
    collate_seconds: float | None = None
    loaded_batches: int = 0
    slots: int | None = None
    tokens: int | None = None
    effective_tokens: int | None = None
    documents: int | None = None
    attention_work: int | None = None
    num_bytes: int = 0
    queue_depth: float | None = None
    starvation: Starvation | None = None
    anonymous_bytes: int = 0
    file_backed_bytes: int = 0
    worker_bytes: int | None = None
    read_bytes: int | None = None
    major_faults: int | None = None
    threads: tuple[ThreadTimes, ...] | None = None
    length_counts: tuple[int, ...] = ()

    @property
    def utilization(self) -> float | None:
        """tokens / slots; None where either is unknown."""
        return utilization(self.tokens, self.slots)

    @property
    def stall_fraction(self) -> float | None:
        """Share of the time after first batches in which the consumer waited; None without any."""
        busy = self.stall_seconds + self.step_seconds
        return self.stall_seconds / busy if busy else None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dicts and numbers, for any logger."""
        return {
            **dataclasses.asdict(self),
            "utilization": self.utilization,
            "stall_fraction": self.stall_fraction,
        }


@dataclass(frozen=True, kw_only=True)
class LoaderFacts:
    """How the loader is set up, as far as it tells.

    Attributes:
        kind: who makes batches: brimful's threads, torch's DataLoader or one like it, or something
            that only hands them out.
        name: of its class, with the module.
        workers: threads or processes that make batches; 0: the consumer does it in `next()`.
        depth: batches that may be ready ahead.
        cores: that this process may use.
        settings: for people: packing, batch_size, seq_len, layout, io ...
        simulated_step: seconds that a step slept instead of computing; None for a real consumer.
    """

    kind: Kind
    name: str
    workers: int | None = None
    depth: int | None = None
    cores: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    simulated_step: float | None = None


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A finished profile, or one so far.

    Attributes:
        facts: how the loader is set up.
        stats: sums over all batches.
        batches: the last 10,000.
        records: of a native loader, what its threads did meanwhile: by batch, of the last 10,000
            that it delivered, whoever took them.
        began: when the profile did, by `time.perf_counter()`, as records tell time.
    """

    facts: LoaderFacts
    stats: ProfileStats
    batches: tuple[ProfiledBatch, ...] = ()
    records: tuple[BatchRecord, ...] = ()
    began: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One place where seconds went, the figure that shows it and what to change.

    Attributes:
        cause: a word of `CAUSES`.
        seconds: lost to it, of the profile's wall time.
        figure: the measurement behind it, in words.
        advice: what to change.
    """

    cause: str
    seconds: float
    figure: str
    advice: str


# Reading files; making batches; two settings that keep them from being made in time; the way from
# the one who makes them to the loop and its device; the consumer, whose own time is no loss (only
# what it lets a device wait for a batch that is there); and places without tokens.
CAUSES = ("storage", "fill", "threads", "depth", "copy", "consumer", "padding", "first batch")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a profile comes to.

    Attributes:
        headline: one sentence.
        findings: most seconds first.
        step_seconds: a step as it is: mean of wait and consumer.
        without_stall, without_padding, without_both: a step as it would be, in seconds, with the
            same tokens; None where padding was not measured.
    """

    headline: str
    findings: tuple[Finding, ...]
    step_seconds: float | None
    without_stall: float | None
    without_padding: float | None
    without_both: float | None
