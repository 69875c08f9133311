"""The names of figures in monitoring, and the attributes of `Stats` and `ProfileStats` they are."""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """One figure.

    Attributes:
        name: without the suffix that a counter gets.
        field: the attribute.
        help: what it is, in a sentence.
    """

    name: str
    field: str
    help: str


def _metric(field: str, text: str) -> Metric:
    return Metric(f"brimful_{field}", field, text)


COUNTERS = (
    _metric("batches", "Batches delivered."),
    _metric("steps", "Optimizer steps delivered whole."),
    _metric("slots", "Places for tokens in batches."),
    _metric("tokens", "Real tokens; by slots, utilization."),
    _metric("effective_tokens", "Tokens with a label."),
    _metric("documents", "Documents begun."),
    _metric("attention_work", "Sum of squared segment lengths."),
    _metric("dropped_documents", "Documents left out whole."),
    _metric("dropped_tokens", "Tokens left out."),
    _metric("truncated_documents", "Documents cut at seq_len."),
    _metric("split_documents", "Documents in more than one piece."),
    _metric("empty_documents", "Documents without tokens."),
    _metric("bad_documents", "Documents put aside while filling."),
    _metric("bad_tokens", "Tokens of pieces put aside."),
    _metric("dummy_rows", "Rows without tokens, for a rank that had none left."),
    _metric("skipped_steps", "Steps left out by skip=."),
    _metric("skipped_documents", "Documents of them."),
    _metric("skipped_tokens", "Tokens of them."),
    _metric("stall_seconds", "Host time blocked in next(), first batches apart."),
    _metric("first_batch_seconds", "Time from iter() to first batches."),
    _metric("step_seconds", "What the consumer did with batches, under a profile."),
    _metric("load_seconds", "Making batches, under a profile, hidden or not."),
    _metric("blocked_seconds", "Of load, time in which the maker did not run."),
    _metric("backpressure_seconds", "Threads waiting for a free slot."),
    _metric("plan_seconds", "Threads planning."),
    _metric("read_seconds", "Threads reading files."),
    _metric("fill_seconds", "Threads writing columns."),
    _metric("read_bytes", "Bytes read from storage, under a profile."),
    _metric("file_opens", "Token files opened."),
    _metric("file_reopens", "Token files opened again."),
)
GAUGES = (
    _metric("queue_depth", "Batches ready when next() was called, mean since the beginning."),
    _metric("imbalance", "Costliest rank's attention work over the mean."),
    _metric("anonymous_bytes", "Memory of the process's own."),
    _metric("file_backed_bytes", "Resident pages of mapped files, which the system takes back."),
    _metric("worker_bytes", "Memory of worker processes."),
    _metric("pinned_bytes", "Page-locked memory of the loader."),
    _metric(
        "headroom_seconds", "Work the device still had when next() was called, 1st percentile."
    ),
)
STARVATION = tuple(
    Metric("brimful_starvation_seconds", f"{cause}_seconds", cause)
    for cause in ("load", "ring", "copy", "handoff")
)
