"""What `brimful profile` prints at the end: the figures, then the verdict in words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import Console

from brimful.cli.text import block, brief, count, duration, percent, print_path
from brimful.profiling.diagnosis import Diagnosis
from brimful.profiling.figures import LoaderFacts, Profile, ProfileStats, Verdict
from brimful.profiling.verdict import describe
from brimful.wording import counted

NAME_WIDTH = 14
BAR_WIDTH = 30
WORTH_NAMING = 0.005  # of the whole time


def print_profile(
    console: Console,
    title: str,
    profile: Profile,
    verdict: Verdict,
    diagnosis: Diagnosis | None = None,
) -> None:
    """One loop: what it drew from and at what pace, where its seconds went; answers, where there
    is a diagnosis; and at the end, where it is seen first, what to change.
    """
    print_path(console, "", title)
    for name, value in figure_lines(profile):
        _print_pair(console, name, value)
    console.print()
    for name, seconds in spent(profile.stats):
        share = seconds / (profile.stats.wall_seconds or 1)
        bar = block(console) * round(BAR_WIDTH * share)
        _print_pair(console, name, f"{duration(seconds):>8} {percent(share):>8}  {bar}".rstrip())
    console.print()
    if diagnosis is not None:
        _print_diagnosis(console, diagnosis)
        console.print()
    lines = describe(verdict, profile).split("\n")
    console.print(_filled(console, f"verdict: {lines[0]}"), style="bold", markup=False)
    for line in lines[1:]:
        console.print(_filled(console, line), markup=False)


def figure_lines(profile: Profile) -> Iterator[tuple[str, str]]:
    """Figures of a profile, each with its name; what was not measured is left out or says so."""
    facts, stats = profile.facts, profile.stats
    yield "loader", _described(facts)
    if facts.settings:
        yield "settings", ", ".join(f"{key} {value}" for key, value in facts.settings.items())
    each = ""
    if stats.loaded_batches and stats.load_seconds is not None:
        each = f", {duration(stats.load_seconds / stats.loaded_batches)} to make one"
    drawn = counted(stats.batches, "batch", "batches")
    yield "drawn", f"{drawn} in {duration(stats.wall_seconds)}{each}"
    if facts.simulated_step is not None:
        yield "step", f"simulated: it sleeps {duration(facts.simulated_step)}, no model runs"
    if stats.tokens is not None and stats.wall_seconds:
        effective = ""
        if stats.effective_tokens is not None:
            effective = f", {brief(stats.effective_tokens / stats.wall_seconds)} effective"
        yield "tokens/s", f"{brief(stats.tokens / stats.wall_seconds)}{effective}"
    if stats.slots is not None and stats.tokens is not None:
        yield (
            "utilization",
            f"{percent(stats.utilization)}: {count(stats.tokens)} tokens in "
            f"{count(stats.slots)} slots",
        )
    else:
        yield "utilization", "not measured: no input_ids with a mask or boundaries in host memory"
    yield "starvation", _starvation(stats)
    yield "memory", _memory(stats)


def spent(stats: ProfileStats) -> Iterator[tuple[str, float]]:
    """Where the host's seconds went. Elsewhere: ends of passes, what a program does between them,
    and the profile's own counting.
    """
    yield "first batches", stats.first_batch_seconds
    yield "stall", stats.stall_seconds
    yield "steps", stats.step_seconds
    named = stats.first_batch_seconds + stats.stall_seconds + stats.step_seconds
    if stats.wall_seconds - named >= WORTH_NAMING * stats.wall_seconds:
        yield "elsewhere", stats.wall_seconds - named


def _print_diagnosis(console: Console, diagnosis: Diagnosis) -> None:
    """Its lines by area: what is to be looked at, and what is as it should be."""
    area = ""
    for line in diagnosis.lines:
        if line.area != area:
            area = line.area
            console.print(area, style="bold", markup=False)
        text = f"{line.question} {line.figure[:1].upper()}{line.figure[1:]}."
        if line.advice:
            text += f" {line.advice}"
        style = "bold" if line.status == "look here" else ""
        filled = _filled(console, f"  {line.status:<12}  {text}", indent=2 + NAME_WIDTH)
        console.print(filled, markup=False, style=style)


def _described(facts: LoaderFacts) -> str:
    made = ""
    if facts.workers is not None:
        kind = "thread" if facts.kind == "brimful" else "worker"
        made = f", {counted(facts.workers, kind)}"
    depth = "" if facts.depth is None else f", {counted(facts.depth, 'batch', 'batches')} ahead"
    return f"{facts.name}{made}{depth}, {counted(facts.cores, 'core')}"


def _starvation(stats: ProfileStats) -> str:
    device = stats.starvation
    if device is None or not device.batches:
        return "not measured: batches are not used on a CUDA device"
    return f"{percent(device.fraction)} of the device's time, {duration(device.seconds)}"


def _memory(stats: ProfileStats) -> str:
    parts = [f"{brief(stats.anonymous_bytes)}B of its own"]
    if stats.worker_bytes:
        parts.append(f"{brief(stats.worker_bytes)}B in workers")
    parts.append(f"{brief(stats.file_backed_bytes)}B page cache")
    return ", ".join(parts)


def _print_pair(console: Console, name: str, value: str) -> None:
    text = f"{name:<{NAME_WIDTH}}{value}"
    print_path(console, "", _filled(console, text, indent=NAME_WIDTH))


def _filled(console: Console, line: str, indent: int | None = None) -> str:
    """The line within the width of the terminal, or 79 characters; further lines as far in."""
    if indent is None:
        indent = len(line) - len(line.lstrip())
    return textwrap.fill(
        line,
        min(console.width, 79),
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
        drop_whitespace=True,
    )
