"""Where the seconds of a profile went, what was lost to which cause, and what would be gained."""

from __future__ import annotations

from collections.abc import Sequence

from brimful.profiling.figures import Finding, Profile, ProfileStats, Verdict
from brimful.profiling.report.elements import (
    Bar,
    Html,
    bar_list,
    element,
    legend,
    section,
    strip,
    unbroken,
)
from brimful.profiling.verdict import IN_WORDS
from brimful.wording import duration, percent

# The consumer's own time is no loss; what makes batches late is all of one colour.
_COLOURS = {"consumer": "work", "padding": "padding", "first batch": "first"}
_NOW = "as it is"


def useful_share(stats: ProfileStats) -> float | None:
    """Share of the time after first batches that went into real tokens; None if not counted."""
    busy = stats.stall_seconds + stats.step_seconds
    if not busy or stats.utilization is None:
        return None
    return stats.step_seconds * stats.utilization / busy


def where_time_went(stats: ProfileStats) -> Html:
    """All of the wall time in one bar."""
    whole = stats.wall_seconds
    if whole <= 0:
        return section("Where the time went", "No time was measured: no batch was drawn.")
    used = stats.utilization
    parts = [
        (stats.step_seconds * (1 if used is None else used), "work", "steps"),
        (stats.step_seconds * (0 if used is None else 1 - used), "padding", "steps, on padding"),
        (stats.stall_seconds, "stall", "stall"),
        (stats.first_batch_seconds, "first", "first batches"),
        (stats.end_seconds, "blocked", "ends of passes"),
    ]
    if used is not None:
        parts[0] = (parts[0][0], "work", "steps, on tokens")
    rest = max(whole - sum(seconds for seconds, _, _ in parts), 0.0)
    parts.append((rest, "rest", "between passes, and the profile's own counting"))
    told = [
        (seconds, colour, f"{words}: {duration(seconds)}, {percent(seconds / whole)}")
        for seconds, colour, words in parts
        if seconds > 0.0005 * whole
    ]
    scale = max(whole, sum(seconds for seconds, _, _ in parts))
    lead = f"{duration(whole)} from the first iter() to the end of the last step."
    if used is not None:
        lead += " A step is split by slots: what padding takes of it is an estimate."
    return section(
        "Where the time went",
        lead,
        strip([(seconds / scale, colour, words) for seconds, colour, words in told], height=44),
        legend((colour, words) for _, colour, words in told),
    )


def tells_why_starved(profile: Profile) -> bool:
    """Whether brimful brought the batches to the device; from outside there is only a sum."""
    return profile.facts.kind == "brimful" and profile.facts.settings.get("device") is not None


def device_time(profile: Profile) -> Html:
    """What the device did meanwhile; nothing without one."""
    starved = profile.stats.starvation
    if starved is None or not starved.elapsed_seconds:
        return Html("")
    whole = max(starved.elapsed_seconds, starved.seconds)
    parts = [
        (whole - starved.seconds, "work", "at work, or not waiting for data"),
        (starved.seconds, "starve", "waiting for a batch"),
    ]
    if tells_why_starved(profile):
        parts[1:] = [
            (starved.load_seconds, "starve", "the batch was not made yet"),
            (starved.ring_seconds, "first", "its thread waited for a slot"),
            (starved.copy_seconds, "collate", "it was on its way"),
            (starved.handoff_seconds, "stall", "it was there, the host late"),
        ]
    told = [
        (seconds, colour, f"{words}: {duration(seconds)}, {percent(seconds / whole)}")
        for seconds, colour, words in parts
        if seconds > 0
    ]
    return section(
        "The device",
        f"{duration(whole)} by its own clock, from each pass's first batch to its last.",
        strip([(seconds / whole, colour, words) for seconds, colour, words in told], height=44),
        legend((colour, words) for _, colour, words in told),
    )


def findings(found: Sequence[Finding], wall_seconds: float) -> Html:
    """What was lost to which cause, most first, with the figure behind it and what to change."""
    if not found:
        return section("What to change", "Nothing was lost that would be worth a change.")
    scale = max(wall_seconds, *(finding.seconds for finding in found), 1e-12)
    lines = [
        element(
            "li",
            element(
                "div",
                element("span", IN_WORDS.get(finding.cause, finding.cause), class_="cause"),
                element("span", _lost(finding.seconds, scale), class_="value"),
                class_="top",
            ),
            strip(
                [
                    (finding.seconds / scale, _COLOURS.get(finding.cause, "stall"), ""),
                    (1 - finding.seconds / scale, "track", ""),
                ],
                height=10,
            ),
            element("p", unbroken(finding.figure), class_="figure"),
            element("p", unbroken(finding.advice), class_="advice"),
        )
        for finding in found
    ]
    lead = "By seconds of the wall time. What the consumer does with batches is no loss."
    return section("What to change", lead, element("ol", *lines, class_="findings"))


def _lost(seconds: float, whole: float) -> str:
    return f"{duration(seconds)} · {percent(seconds / whole)}" if seconds else "nothing lost"


def gains(verdict: Verdict, *, starved: bool) -> Html:
    """A step as it is, and as it would be with the same tokens; `starved`: on a device's clock."""
    now, ready = verdict.step_seconds, verdict.without_stall
    if not now or ready is None:
        return Html("")
    tokens = ready if verdict.without_both is None else verdict.without_both
    waiting = "starvation" if starved else "stall"
    rows = [
        (_NOW, now, [(ready - tokens, "padding"), (now - ready, "stall")]),
        (f"without {waiting}", ready, [(ready - tokens, "padding")]),
    ]
    if verdict.without_padding is not None:
        full = verdict.without_padding
        rows.append(("without padding", full, [(full - tokens, "stall")]))
        rows.append(("without both", tokens, []))
    scale = max(seconds for _, seconds, _ in rows)
    bars = [
        Bar(
            label,
            f"{duration(seconds)}{'' if label == _NOW else f' · {_factor(now, seconds)}'}",
            [(tokens / scale, "work", ""), *((lost / scale, c, c) for lost, c in parts)],
            strong=label == _NOW,
        )
        for label, seconds, parts in rows
    ]
    lead = "Time of a step that delivers the same tokens, waiting included."
    keys = [("work", "step"), ("stall", waiting)]
    if verdict.without_padding is not None:
        keys[0] = ("work", "tokens")
        lead += " It is taken to grow with the slots of the batch."
        keys.insert(1, ("padding", "padding"))
    return section("What you would gain", lead, bar_list(bars), legend(keys))


def _factor(now: float, then: float) -> str:
    if then <= 0:
        return "no time at all"
    return f"{now / then:.2f} times as fast" if now / then >= 1.005 else "as now"
