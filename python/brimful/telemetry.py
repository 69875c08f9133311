"""What a loader delivered, dropped and waited for, in numbers that add up."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brimful import _core
from brimful.corpus import Corpus
from brimful.process_memory import process_memory
from brimful.starvation import Starvation, starvation_of
from brimful.times import Threads, Times, add_threads
from brimful.wording import counted


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Counts of all ranks since step 0; they are part of the state and survive a resume.

    Attributes:
        bins: bins delivered, each `seq_len` slots ("bucket": as many as its batch is wide).
        slots: places in batches, without dummy rows.
        tokens: real tokens delivered.
        effective_tokens: tokens delivered with a label other than -100.
        documents: documents whose first token was delivered.
        dropped_documents, dropped_tokens, truncated_documents: as in `Stats`; and so are
            split_documents, empty_documents, dummy_rows and what was skipped.
    """

    bins: int
    slots: int
    tokens: int
    effective_tokens: int
    documents: int
    dropped_documents: int
    dropped_tokens: int
    truncated_documents: int
    split_documents: int
    empty_documents: int
    dummy_rows: int
    skipped_steps: int
    skipped_documents: int
    skipped_tokens: int


@dataclass(frozen=True, kw_only=True)
class Stats:
    """Counts of this rank since the loader was made (or since the last lap), and where time went.

    Attributes:
        batches: batches delivered.
        bins: rows of documents in them, dummy rows not counted.
        slots: places in these: bins x seq_len in either layout ("bucket": bins x the longest row
            of their batch).
        tokens: real tokens.
        effective_tokens: tokens with a label other than -100.
        utilization: tokens / slots, 0..1; None before the first batch.
        steps: optimizer steps delivered whole, from their first micro-batch to their last, with as
            many rows as a step has.
        imbalance: mean over these of the costliest rank's attention work over that of all ranks on
            average, the sum of squared document lengths standing for it; 1 is even, and the inverse
            is the share of time that ranks work at best. None before the first step.
        documents: documents whose first token was delivered.
        dropped_documents: documents left out whole: overlong ones by the rule "drop", and those
            in bins that `drop_last` left out.
        dropped_tokens: tokens of those, and the cut ends of truncated documents.
        truncated_documents: documents cut to `seq_len` by the rule "truncate".
        split_documents: documents delivered in more than one piece.
        empty_documents: documents without tokens, passed over.
        bad_documents: documents put aside while filling, by the rule "skip"; their tokens are in
            none of the counts above, but in those of `exposure` and `all_ranks`, which speak of
            the plan: only the rank that reads a token knows that it is bad.
        bad_tokens: tokens of pieces put aside.
        dummy_rows: batches of one flagged row without tokens, for a rank that had none left.
        skipped_steps: steps left out by `skip=`.
        skipped_documents, skipped_tokens: this rank's documents (begun there) and tokens of them.
        stall_seconds: host time in `next()` while no batch was ready, without each epoch's first:
            blocked, or at work on one.
        first_batch_seconds: time from `iter()` to the first batch, over all epochs.
        backpressure_seconds: time workers waited for a free slot, or without a core rested while
            the consumer made batches itself, summed over threads.
        plan_seconds, read_seconds, fill_seconds: time spent planning, reading files (with
            `io="pread"`) and filling, summed over threads.
        threads: these times by thread: of `num_workers`, and last of the consumer, for batches that
            `next()` made itself.
        queue_depth: batches ready when `next()` was called, on average; near `depth` the consumer
            is the slower side, near 0 the loader is. None before the first batch.
        file_opens: token files and what lies beside them, each opened once for all loaders of the
            process.
        file_reopens: how often one of them was opened again: many files take turns, and after an
            error a repaired one is taken in.
        anonymous_bytes, file_backed_bytes: resident memory of the whole process: its own, and pages
            of mapped files, which the system takes back when memory is short.
        starvation_seconds: device time spent waiting for data; None without a device.
        starvation: the same with its causes; None without a device.
        exposure: source -> {"documents", "tokens", "effective_tokens"} delivered, over all ranks
            since step 0; after drops and cuts, so that shares of them are those of the run.
        dropped, skipped: source -> {"documents", "tokens"} dropped, and left out by `skip=`, over
            all ranks since step 0.
        all_ranks: the counts of all ranks since step 0.
    """

    batches: int
    bins: int
    slots: int
    tokens: int
    effective_tokens: int
    utilization: float | None
    steps: int
    imbalance: float | None
    documents: int
    dropped_documents: int
    dropped_tokens: int
    truncated_documents: int
    split_documents: int
    empty_documents: int
    bad_documents: int
    bad_tokens: int
    dummy_rows: int
    skipped_steps: int
    skipped_documents: int
    skipped_tokens: int
    stall_seconds: float
    first_batch_seconds: float
    backpressure_seconds: float
    plan_seconds: float
    read_seconds: float
    fill_seconds: float
    threads: Threads
    queue_depth: float | None
    file_opens: int
    file_reopens: int
    anonymous_bytes: int
    file_backed_bytes: int
    starvation_seconds: float | None
    starvation: Starvation | None
    exposure: dict[str, dict[str, int]]
    dropped: dict[str, dict[str, int]]
    skipped: dict[str, dict[str, int]]
    all_ranks: Totals

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dicts and numbers, for any logger."""
        return dataclasses.asdict(self)

    def since(self, earlier: Stats) -> Stats:
        """What came after `earlier`, for the counts and times of this rank."""
        changes: dict[str, Any] = {
            name: getattr(self, name) - getattr(earlier, name) for name in _ADDITIVE
        }
        changes["utilization"] = utilization(changes["tokens"], changes["slots"])
        in_all = [stats.steps * (stats.imbalance or 0) for stats in (self, earlier)]
        steps = changes["steps"]
        changes["imbalance"] = (in_all[0] - in_all[1]) / steps if steps else None
        ready = [stats.batches * (stats.queue_depth or 0) for stats in (self, earlier)]
        batches = changes["batches"]
        changes["queue_depth"] = (ready[0] - ready[1]) / batches if batches else None
        changes["threads"] = add_threads(self.threads, earlier.threads, -1)
        if self.starvation is not None and earlier.starvation is not None:
            changes["starvation"] = self.starvation.since(earlier.starvation)
            changes["starvation_seconds"] = changes["starvation"].seconds
        return dataclasses.replace(self, **changes)

    def summary(self) -> str:
        """One line for people: what came, how full it was, what was lost, how long it stalled."""
        used = "-" if self.utilization is None else f"{100 * self.utilization:.2f} %"
        parts = [
            counted(self.batches, "batch", "batches"),
            f"{counted(self.tokens, 'token')} ({self.effective_tokens:,} effective)",
            f"utilization {used}",
            f"stall {self.stall_seconds:.2f} s",
        ]
        if self.starvation_seconds is not None:
            parts.append(f"starvation {self.starvation_seconds:.2f} s")
        losses = [
            f"{counted(count, 'document')} {what}"
            for count, what in (
                (self.dropped_documents, "dropped"),
                (self.truncated_documents, "truncated"),
                (self.split_documents, "split"),
                (self.empty_documents, "empty"),
                (self.bad_documents, "bad"),
            )
            if count
        ]
        if self.dropped_tokens:
            losses.append(f"{counted(self.dropped_tokens, 'token')} dropped")
        if self.skipped_steps:
            losses.append(f"{counted(self.skipped_steps, 'step')} skipped")
        return ", ".join(parts + losses)


# What the core counts of batches, and the waits of threads and of the consumer.
TALLY_FIELDS = (
    "bins",
    "slots",
    "tokens",
    "effective_tokens",
    "documents",
    "dropped_documents",
    "dropped_tokens",
    "truncated_documents",
    "split_documents",
    "empty_documents",
    "dummy_rows",
    "skipped_steps",
    "skipped_documents",
    "skipped_tokens",
)
# And of each source, over all ranks.
EXPOSURE_FIELDS = (
    "documents",
    "tokens",
    "effective_tokens",
    "dropped_documents",
    "dropped_tokens",
    "skipped_documents",
    "skipped_tokens",
)
_SECONDS_FIELDS = (
    "stall_seconds",
    "first_batch_seconds",
    "backpressure_seconds",
    "plan_seconds",
    "read_seconds",
    "fill_seconds",
)
_ADDITIVE = (
    "batches",
    "steps",
    "bad_documents",
    "bad_tokens",
    "file_opens",
    "file_reopens",
    *TALLY_FIELDS,
    *_SECONDS_FIELDS,
)


def utilization(tokens: int | None, slots: int | None) -> float | None:
    """tokens / slots; None where either is unknown, and where there are no slots."""
    return tokens / slots if slots and tokens is not None else None


def gather(
    counts: _core.Counts, times: Times, corpus: Corpus, transfer: _core.Transfer | None
) -> Stats:
    """The figures of a loader from what its core counted, on the way to a device too."""
    starvation = None if transfer is None else starvation_of(transfer)
    rank, everyone = counts.rank, counts.all_ranks
    figures: dict[str, Any] = {name: getattr(rank, name) for name in TALLY_FIELDS}
    figures |= times.seconds()
    opens, reopens = corpus._native.file_counts
    memory = process_memory()
    columns = counts.exposure
    return Stats(
        batches=counts.batches,
        utilization=utilization(rank.tokens, rank.slots),
        steps=counts.steps,
        imbalance=counts.imbalance / counts.steps if counts.steps else None,
        bad_documents=counts.bad_documents,
        bad_tokens=counts.bad_tokens,
        file_opens=opens,
        file_reopens=reopens,
        anonymous_bytes=memory.anonymous,
        file_backed_bytes=memory.file_backed,
        threads=times.threads,
        queue_depth=times.queue_depths / counts.batches if counts.batches else None,
        starvation_seconds=None if starvation is None else starvation.seconds,
        starvation=starvation,
        exposure=_by_source(corpus, columns, ("documents", "tokens", "effective_tokens")),
        dropped=_by_source(corpus, columns, ("documents", "tokens"), "dropped_"),
        skipped=_by_source(corpus, columns, ("documents", "tokens"), "skipped_"),
        all_ranks=Totals(**{name: getattr(everyone, name) for name in TALLY_FIELDS}),
        **figures,
    )


def _by_source(
    corpus: Corpus, columns: Mapping[str, Any], names: tuple[str, ...], prefix: str = ""
) -> dict[str, dict[str, int]]:
    rows = zip(*(columns[prefix + name].tolist() for name in names), strict=True)
    return {
        source: dict(zip(names, row, strict=True))
        for source, row in zip(corpus.sources, rows, strict=True)
    }
