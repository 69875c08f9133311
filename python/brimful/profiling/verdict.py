"""What a profile comes to: where seconds were lost, most first, and what a step would cost else."""

from __future__ import annotations

from brimful.profiling.advice import advice_for, figure_for
from brimful.profiling.figures import CAUSES, Finding, Profile, Verdict
from brimful.profiling.losses import Pace, pace, seconds_by_cause
from brimful.wording import counted, duration, percent

# Of the wall time; what is below is not named, or not in the headline.
_WORTH_NAMING = 0.01
_WORTH_A_HEADLINE = 0.02
IN_WORDS = {
    "storage": "reading from storage",
    "fill": "making batches",
    "threads": "too few threads",
    "depth": "too few batches ready ahead",
    "copy": "the way of batches to the loop",
    "consumer": "the loop itself",
    "padding": "padding",
    "first batch": "the first batch",
}


def verdict(profile: Profile) -> Verdict:
    """Seconds lost by cause, and the step that would be left. Pure: it measures nothing.

    Stall and starvation are not added up: where a device was measured its starvation counts, for a
    host that waits while the device still has work loses nothing. Padding is what steps spent on
    slots without tokens, for the time of a step is taken to grow with its slots.

    Returns:
        Findings of one percent of the wall time or more; without any, one about the consumer.
    """
    means, stats = pace(profile), profile.stats
    lost = seconds_by_cause(profile)
    if not stats.batches:
        return Verdict(
            headline="No batch was drawn, so there is nothing to say.",
            findings=(),
            step_seconds=None,
            without_stall=None,
            without_padding=None,
            without_both=None,
        )
    named = {
        cause: lost[cause]
        for cause in CAUSES
        if cause in lost and lost[cause] >= _WORTH_NAMING * stats.wall_seconds
    }
    if not named:
        named["consumer"] = lost.get("consumer", 0.0)
    findings = tuple(
        Finding(
            cause=cause,
            seconds=seconds,
            figure=figure_for(cause, profile, means),
            advice=advice_for(cause, profile, means),
        )
        for cause, seconds in sorted(named.items(), key=lambda entry: -entry[1])
    )
    without_stall = means.total - means.lost
    used = stats.utilization
    return Verdict(
        headline=_headline(profile, findings),
        findings=findings,
        step_seconds=means.total,
        without_stall=without_stall,
        without_padding=None if used is None else _without_padding(means, used),
        without_both=None if used is None else without_stall * used,
    )


def _without_padding(means: Pace, used: float) -> float:
    """The step with fewer slots, which a loader at its limit cannot follow."""
    computing = (means.total - means.lost) * used
    if not means.workers or means.load is None:
        return computing + means.lost
    lasting = means.every - (means.total - means.lost)
    if lasting > 0:  # the loader gives the pace
        return max(computing, means.total)
    return max(computing, min(means.every, means.total)) + means.lost


def _headline(profile: Profile, findings: tuple[Finding, ...]) -> str:
    """The first finding, beside all that was waited, both as shares of the wall time."""
    stats = profile.stats
    if stats.batches == stats.first_batches:
        return (
            f"Only first batches were drawn ({stats.batches}), in "
            f"{duration(stats.first_batch_seconds)}: draw more to see what is waited for."
        )
    device, wall = stats.starvation, stats.wall_seconds
    measured = device is not None and device.batches > 0
    waits = device.seconds if device is not None and measured else stats.stall_seconds
    waits = min(waits + stats.first_batch_seconds + stats.end_seconds, wall)
    waited = f"The {'device' if measured else 'loop'} waited {percent(_share(waits, wall))} of "
    waited += "the time for data"
    top = findings[0]
    if top.seconds < _WORTH_A_HEADLINE * wall or not top.seconds:
        return f"{waited}: the loader keeps up, and steps are what takes the time."
    share = percent(_share(top.seconds, wall))
    if top.cause == "padding":
        used = percent(stats.utilization)
        return f"{waited}; most is lost to padding, {share}: {used} of the slots hold tokens."
    return f"{waited}; most is lost to {IN_WORDS[top.cause]}: {share}."


def _share(seconds: float, wall: float) -> float | None:
    return seconds / wall if wall else None


def describe(verdict: Verdict, profile: Profile) -> str:
    """A verdict for people: the headline, findings with their seconds, and what there is to gain.

    Lines are as long as their sentences; whoever prints them may fill them.
    """
    lines = [verdict.headline]
    wall = profile.stats.wall_seconds
    for number, finding in enumerate(verdict.findings, 1):
        share = percent(finding.seconds / wall) if wall else "-"
        lost = f"{duration(finding.seconds)} lost, {share}" if finding.seconds else "nothing lost"
        lines += [
            "",
            f"{number}. {IN_WORDS[finding.cause].capitalize()}: {lost}",
            f"   {finding.figure}",
            f"   {finding.advice}",
        ]
    lines += gains(verdict, profile)
    return "\n".join(lines)


def gains(verdict: Verdict, profile: Profile) -> list[str]:
    """What a step would take without stall, without padding and without both, as lines."""
    now = verdict.step_seconds
    if not now:
        return []
    waiting = "starvation" if pace(profile).starved is not None else "stall"
    lines = ["", f"A step of the same tokens takes {duration(now)}:"]
    for name, seconds in (
        (f"with zero {waiting}", verdict.without_stall),
        ("with zero padding", verdict.without_padding),
        ("with neither", verdict.without_both),
    ):
        if seconds is not None:
            gain = now / seconds if seconds else 1.0
            faster = f" ({gain:.2f} times as fast)" if gain >= 1.005 else ""
            lines.append(f"   {name} {duration(seconds)}{faster}")
    if verdict.without_padding is not None:
        lines.append("   (where the time of a step grows with its slots)")
    simulated = profile.facts.simulated_step
    if simulated is not None:
        lines.append(
            f"   Steps only slept, {duration(simulated)} each: no model ran on these "
            f"{counted(profile.stats.batches, 'batch', 'batches')}."
        )
    return lines
