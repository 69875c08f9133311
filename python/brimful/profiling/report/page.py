"""The page itself: what it says first, and its sections in the order of the questions."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from brimful.profiling.diagnosis import Diagnosis
from brimful.profiling.figures import Profile, Verdict
from brimful.profiling.ranks import RankReport
from brimful.profiling.report.elements import Html, element
from brimful.profiling.report.fullness import by_strategy, histogram
from brimful.profiling.report.head import first_sight
from brimful.profiling.report.run import over_run
from brimful.profiling.report.seconds import (
    device_time,
    findings,
    gains,
    where_time_went,
)
from brimful.profiling.report.sources import Sources, exposure_by_source
from brimful.profiling.report.steps import over_steps
from brimful.profiling.report.system import diagnosis_lines, ranks_side_by_side
from brimful.profiling.report.tables import everything, settings, slowest
from brimful.profiling.report.threads import by_thread
from brimful.profiling.report.waterfall import waterfall
from brimful.profiling.timeline import Timeline


def write_html(
    path: str | Path,
    profile: Profile,
    verdict: Verdict,
    *,
    sources: Sources | None = None,
    diagnosis: Diagnosis | None = None,
    ranks: RankReport | None = None,
    timeline: Timeline | None = None,
    title: str | None = None,
) -> None:
    """Writes the page of `html` into a file, UTF-8; what that cannot hold is written as its code.

    Raises:
        FileNotFoundError: its folder is not there.
    """
    page = html(
        profile,
        verdict,
        sources=sources,
        diagnosis=diagnosis,
        ranks=ranks,
        timeline=timeline,
        title=title,
    )
    Path(path).write_text(page, encoding="utf-8", errors="backslashreplace")


def html(
    profile: Profile,
    verdict: Verdict,
    *,
    sources: Sources | None = None,
    diagnosis: Diagnosis | None = None,
    ranks: RankReport | None = None,
    timeline: Timeline | None = None,
    title: str | None = None,
) -> str:
    """A profile as a page that needs nothing else: it loads no file and runs no script.

    Args:
        profile: what was measured; sections of what was not are left out.
        verdict: what it comes to.
        sources: what came from which source; `sources_of(loader)` where it knows.
        diagnosis: what `loader.diagnose()` answered.
        ranks: profiles of all ranks, as `gather()` has them.
        timeline: `loader.timeline`, for what was logged and spikes of it.
        title: of the page; None: the loader's name.
    """
    facts, stats = profile.facts, profile.stats
    name = title or facts.name
    sections = [
        where_time_went(stats),
        device_time(profile),
        findings(verdict.findings, stats.wall_seconds),
        gains(verdict, starved=stats.starvation is not None),
        over_steps(profile.batches),
        waterfall(profile),
        over_run(timeline),
        histogram(profile),
        by_strategy(profile),
        exposure_by_source(sources),
        by_thread(stats),
        ranks_side_by_side(ranks),
        diagnosis_lines(diagnosis),
        slowest(profile.batches),
        settings(facts.settings),
        everything(profile),
    ]
    body = element(
        "main",
        first_sight(name, profile, verdict),
        element("div", *sections, class_="page"),
        element("footer", _WORDS),
    )
    style = Html(resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _meta_policy(),
        element("title", f"{name} - brimful profile"),
        element("link", rel="icon", href="data:,"),
        element("style", style),
    )
    page = element("html", head, element("body", _hatches(), body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


_WORDS = (
    "Stall is host time in next(); starvation is device time that its stream waited for a batch; "
    "backpressure is a thread's time waiting for a free slot. None of them is part of another. "
    "Tokens are slots that hold a real token, effective tokens those with a label."
)


def _meta_policy() -> Html:
    """Forbids the page to load anything: what it shows is in it."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">')


def _hatches() -> Html:
    """Patterns of what is waste: told apart without colours as well."""
    patterns = [
        Html(
            f'<pattern id="hatch-{name}" width="7" height="7" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate({turn})"><rect width="7" height="7"/>'
            '<path d="M0 0V7" stroke-width="3"/></pattern>'
        )
        for name, turn in (("padding", 45), ("blocked", -45))
    ]
    return element("svg", element("defs", *patterns), class_="defs", aria_hidden="true")
