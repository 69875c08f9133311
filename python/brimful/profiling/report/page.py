"""The page itself: what it says first, and its sections in the order of the questions."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from brimful.profiling.diagnosis import Diagnosis
from brimful.profiling.figures import LoaderFacts, Profile, ProfileStats, Verdict
from brimful.profiling.ranks import RankReport
from brimful.profiling.report.elements import Html, element, joined, unbroken
from brimful.profiling.report.fullness import by_strategy, histogram
from brimful.profiling.report.run import over_run
from brimful.profiling.report.seconds import (
    device_time,
    findings,
    gains,
    useful_share,
    where_time_went,
)
from brimful.profiling.report.sources import Sources, exposure_by_source
from brimful.profiling.report.steps import over_steps, waterfall
from brimful.profiling.report.system import diagnosis_lines, ranks_side_by_side
from brimful.profiling.report.tables import everything, settings, slowest
from brimful.profiling.report.threads import by_thread
from brimful.profiling.report.vessels import vessels
from brimful.profiling.timeline import Timeline
from brimful.wording import brief, count, counted, duration, percent


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
        device_time(stats),
        findings(verdict.findings, stats.wall_seconds),
        gains(verdict, starved=stats.starvation is not None),
        over_steps(profile.batches),
        waterfall(profile.batches),
        over_run(timeline),
        histogram(profile),
        by_strategy(profile),
        exposure_by_source(sources),
        by_thread(stats),
        ranks_side_by_side(ranks),
        diagnosis_lines(diagnosis),
        slowest(profile.batches),
        settings(facts.settings),
        everything(stats),
    ]
    body = element(
        "main",
        element(
            "header",
            _mast(name),
            element("h1", unbroken(verdict.headline)),
            _promise(verdict, starved=stats.starvation is not None),
            _chips(facts, stats),
            _simulated(facts),
            vessels(profile.batches),
            _tiles(stats),
        ),
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


def _mast(name: str) -> Html:
    called = element("span", name, class_="what")
    return element("div", _mark(), element("span", "brimful"), called, class_="mast")


def _promise(verdict: Verdict, *, starved: bool) -> Html:
    """What there is to gain, in a sentence; nothing where it is not worth one."""
    now, then = verdict.step_seconds, verdict.without_both
    if not now or not then or now < 1.02 * then:
        return Html("")
    waiting = "starvation" if starved else "stall"
    return element(
        "p",
        f"A step takes {duration(now)}; without {waiting} and padding it would take ",
        element("b", f"{duration(then)}, {now / then:.2f} times as fast"),
        ".",
        class_="sub",
    )


def _mark() -> Html:
    """A vessel that is full."""
    return Html(
        '<svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">'
        '<path class="work" d="M3 5h16l-1.6 13.2a2 2 0 0 1-2 1.8H6.6a2 2 0 0 1-2-1.8z"/>'
        '<path class="first" d="M1.6 2.4h18.8L20 5H2z"/></svg>'
    )


def _chips(facts: LoaderFacts, stats: ProfileStats) -> Html:
    told: list[tuple[str, str]] = [("", counted(stats.batches, "batch", "batches"))]
    if facts.workers is not None:
        what = "thread" if facts.kind == "brimful" else "worker"
        told.append(("", counted(facts.workers, what)))
    if facts.depth is not None:
        told.append(("depth", count(facts.depth)))
    told.append(("", counted(facts.cores, "core")))
    told += [
        (name, str(facts.settings[name]))
        for name in ("packing", "batch_size", "seq_len", "layout", "io")
        if facts.settings.get(name) is not None
    ]
    chips = [element("li", f"{name} " if name else "", element("b", value)) for name, value in told]
    return element("ul", *chips, class_="chips")


def _simulated(facts: LoaderFacts) -> Html:
    if facts.simulated_step is None:
        return Html("")
    return element(
        "p",
        element("strong", "The accelerator is simulated: "),
        f"a step sleeps {duration(facts.simulated_step)} and computes nothing.",
        class_="warning",
    )


def _tiles(stats: ProfileStats) -> Html:
    busy = stats.stall_seconds + stats.step_seconds
    useful = useful_share(stats)
    rate = stats.tokens / stats.wall_seconds if stats.tokens and stats.wall_seconds else None
    starved = stats.starvation
    passes = max(stats.first_batches, 1)
    labelled = (
        stats.effective_tokens / stats.tokens
        if stats.tokens and stats.effective_tokens is not None
        else None
    )
    step = busy / stats.batches if stats.batches else None
    tiles = [
        (
            "Time on tokens",
            None if useful is None else percent(useful),
            "neither stall nor padding",
        ),
        (
            "Stall",
            None if stats.stall_fraction is None else percent(stats.stall_fraction),
            f"{duration(stats.stall_seconds)} in next()",
        ),
        (
            "Starvation",
            None if starved is None or starved.fraction is None else percent(starved.fraction),
            "of the device's time" if starved else "no device to ask",
        ),
        (
            "Utilization",
            None if stats.utilization is None else percent(stats.utilization),
            "tokens of slots",
        ),
        (
            "Effective tokens",
            None if labelled is None else percent(labelled),
            "of the tokens have a label",
        ),
        ("Tokens a second", None if rate is None else brief(rate), "over the whole wall time"),
        ("Step", None if step is None else duration(step), "stall and consumer, on average"),
        (
            "First batch",
            duration(stats.first_batch_seconds / passes) if stats.first_batches else None,
            "after iter()" if passes == 1 else f"after iter(), mean of {passes} passes",
        ),
    ]
    return element("dl", *(_tile(*tile) for tile in tiles), class_="tiles")


def _tile(name: str, value: str | None, note: str) -> Html:
    shown = element("dd", "not measured", class_="none") if value is None else element("dd", value)
    return element("div", joined(element("dt", name), shown, element("dd", note, class_="note")))
