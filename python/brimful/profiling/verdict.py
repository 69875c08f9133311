"""What a profile comes to: where seconds were lost, most first, and what a step would cost else."""

from __future__ import annotations

from brimful.profiling.advice import advice_for, figure_for
from brimful.profiling.figures import CAUSES, Finding, Profile, Verdict
from brimful.profiling.losses import Pace, pace, seconds_by_cause
from brimful.wording import counted, duration, percent

# Of the wall time; what is below is not named, or not in the headline.
_WORTH_NAMING = 0.005
_WORTH_A_HEADLINE = 0.02
# What is lost once a pass, and the consumer's own time, are not what a headline is about.
_RECURRING = ("storage", "fill", "threads", "depth", "copy", "padding")
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
        Findings of half a percent of the wall time or more, and one about the consumer, which is
        the last where it lost nothing.
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
    named.setdefault("consumer", 0.0)
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
        without_padding=None if used is None else _without_padding(profile, means, used),
        without_both=None if used is None else without_stall * used,
    )


def _without_padding(profile: Profile, means: Pace, used: float) -> float:
    """The step with fewer slots, which a loader at its limit cannot follow."""
    computing = (means.total - means.lost) * used
    workers = profile.facts.workers
    if not workers or means.load is None:
        return computing + means.lost
    lasting = means.load / workers - (means.total - means.lost)
    if lasting > 0:  # the loader gives the pace
        return max(computing, means.total)
    return max(computing, min(means.load / workers, means.total)) + means.lost


def _headline(profile: Profile, findings: tuple[Finding, ...]) -> str:
    stats = profile.stats
    if stats.batches == stats.first_batches:
        return (
            f"Only first batches were drawn ({stats.batches}), in "
            f"{duration(stats.first_batch_seconds)}: draw more to see what is waited for."
        )
    device = stats.starvation
    if device is not None and device.batches:
        waited = f"The device waited {percent(device.fraction)} of the time for data"
    else:
        waited = f"The loop waited {percent(stats.stall_fraction)} of the time for data"
    enough = _WORTH_A_HEADLINE * stats.wall_seconds
    recurring = [f for f in findings if f.cause in _RECURRING and f.seconds >= enough]
    if not recurring:
        return f"{waited}: the loader keeps up, and steps are what takes the time."
    top = recurring[0]
    share = percent(top.seconds / stats.wall_seconds)
    if top.cause == "padding":
        used = percent(stats.utilization)
        return f"{waited}; most is lost to padding: {used} of the slots hold tokens."
    return f"{waited}; most is lost to {IN_WORDS[top.cause]}: {share}."


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
