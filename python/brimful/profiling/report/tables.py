"""The tables of a report: every figure with its meaning, and the settings behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brimful.profiling.figures import Profile, ProfiledBatch, ProfileStats
from brimful.profiling.report.elements import Html, element, section, table
from brimful.profiling.report.seconds import tells_why_starved
from brimful.wording import brief, count, duration, percent

_SLOWEST = 12
_NONE = "not measured"


def _number(value: int | None) -> str:
    return _NONE if value is None else count(value)


def _seconds(value: float | None) -> str:
    return _NONE if value is None else duration(value)


def _bytes(value: int | None) -> str:
    return _NONE if value is None else f"{brief(value)}B" if value >= 10_000 else f"{value} B"


def _share(value: float | None) -> str:
    return _NONE if value is None else percent(value)


def everything(profile: Profile) -> Html:
    """All sums of a profile."""
    stats = profile.stats
    rows = _rows(stats) + _starvation(stats, is_split=tells_why_starved(profile))
    return section(
        "Everything",
        "All figures of the profile, of all its batches.",
        element(
            "div",
            table(["figure", "value", "meaning"], rows, text_columns=3),
            class_="everything",
        ),
    )


def _rows(stats: ProfileStats) -> list[tuple[str, str, str]]:
    return [
        ("batches", count(stats.batches), "all of them"),
        ("first batches", count(stats.first_batches), "of these, the first ones of passes"),
        ("wall", duration(stats.wall_seconds), "from the first iter() to the end of the last step"),
        ("first batch", duration(stats.first_batch_seconds), "from iter() to it, over all passes"),
        ("stall", duration(stats.stall_seconds), "host time in next(), first batches left out"),
        ("stall, share", _share(stats.stall_fraction), "of the time after first batches"),
        ("ends", duration(stats.end_seconds), "in next() that gave no batch, at ends of passes"),
        ("step", duration(stats.step_seconds), "what the consumer did with batches"),
        ("load", _seconds(stats.load_seconds), "making batches, over all threads or processes"),
        ("blocked", _seconds(stats.blocked_seconds), "of it not running: storage, locks, sleep"),
        ("collate", _seconds(stats.collate_seconds), "of it in the collate function"),
        ("loaded batches", count(stats.loaded_batches), "whose load was measured"),
        ("slots", _number(stats.slots), "places for tokens, padding included"),
        ("tokens", _number(stats.tokens), "slots that hold a real token"),
        ("effective tokens", _number(stats.effective_tokens), "tokens with a label"),
        ("utilization", _share(stats.utilization), "tokens of slots"),
        ("documents", _number(stats.documents), "segments, or rows of padded batches"),
        ("attention work", _number(stats.attention_work), "sum of squared segment lengths"),
        ("bytes", _bytes(stats.num_bytes), "of all tensors and arrays in batches"),
        (
            "queue depth",
            _NONE if stats.queue_depth is None else f"{stats.queue_depth:.2f}",
            "batches ready when next() was called, on average",
        ),
        ("anonymous memory", _bytes(stats.anonymous_bytes), "of this process at the end"),
        (
            "file-backed memory",
            _bytes(stats.file_backed_bytes),
            "page cache in use here, which the system takes back when it needs it",
        ),
        ("memory of workers", _bytes(stats.worker_bytes), "anonymous, of worker processes"),
        ("read from storage", _bytes(stats.read_bytes), "page cache not counted"),
        ("major faults", _number(stats.major_faults), "pages of mapped files that were waited for"),
    ]


def _starvation(stats: ProfileStats, *, is_split: bool) -> list[tuple[str, str, str]]:
    starved = stats.starvation
    if starved is None:
        return [("starvation", _NONE, "device time that its stream waited for a batch")]
    whole = [
        ("starvation", duration(starved.seconds), "device time that its stream waited for a batch"),
        ("starvation, share", _share(starved.fraction), "of the device's time between batches"),
    ]
    if not is_split:
        return whole
    return [
        *whole,
        ("starvation: load", duration(starved.load_seconds), "the batch was not made yet"),
        ("starvation: ring", duration(starved.ring_seconds), "its thread waited for a slot"),
        ("starvation: copy", duration(starved.copy_seconds), "it was on its way to the device"),
        ("starvation: handoff", duration(starved.handoff_seconds), "it was there, the host late"),
        ("headroom", _seconds(starved.headroom_seconds), "work the device still had at next()"),
        ("pinned memory", _bytes(starved.pinned_bytes), "page-locked, of the loader"),
    ]


def settings(told: Mapping[str, Any]) -> Html:
    """How the loader is set up, as far as it tells."""
    if not told:
        return Html("")
    rows = [(name, str(value)) for name, value in told.items()]
    listed = element("div", table(["setting", "value"], rows, text_columns=2), class_="settings")
    return section("Settings", "", listed, wide=False)


def slowest(batches: Sequence[ProfiledBatch]) -> Html:
    """The batches that were waited for longest."""
    waited = sorted((b for b in batches if not b.first), key=lambda b: -b.wait)[:_SLOWEST]
    if not waited:
        return Html("")
    rows = [
        (
            count(batch.number),
            duration(batch.wait),
            _brief(batch.step),
            _brief(batch.load),
            _brief(batch.blocked),
            "-" if batch.queue_depth is None else count(batch.queue_depth),
            "-" if batch.figures.tokens is None else count(batch.figures.tokens),
        )
        for batch in waited
    ]
    head = ["batch", "stall", "step", "load", "blocked", "ready", "tokens"]
    longest = element("div", table(head, rows), class_="slowest")
    return section("Waited for longest", "", longest, wide=False)


def _brief(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)
