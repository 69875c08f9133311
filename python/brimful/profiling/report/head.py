"""What a report says first: the headline, what there is to gain, and the figures that matter."""

from __future__ import annotations

from brimful.profiling.figures import LoaderFacts, Profile, ProfileStats, Verdict
from brimful.profiling.report.elements import Html, element, joined, unbroken
from brimful.profiling.report.seconds import useful_share
from brimful.profiling.report.vessels import vessels
from brimful.wording import brief, count, counted, duration, percent


def first_sight(name: str, profile: Profile, verdict: Verdict) -> Html:
    """The head of the page."""
    facts, stats = profile.facts, profile.stats
    return element(
        "header",
        _mast(name),
        element("h1", unbroken(verdict.headline)),
        _promise(verdict, starved=stats.starvation is not None),
        _chips(facts, stats),
        _simulated(facts),
        vessels(profile.batches),
        _tiles(stats, verdict),
    )


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


def _tiles(stats: ProfileStats, verdict: Verdict) -> Html:
    useful = useful_share(stats)
    rate = stats.tokens / stats.wall_seconds if stats.tokens and stats.wall_seconds else None
    starved = stats.starvation
    passes = max(stats.first_batches, 1)
    step = verdict.step_seconds
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
            *_effective(stats),
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


def _effective(stats: ProfileStats) -> tuple[str | None, str]:
    """As a share of tokens, or their number where tokens were not counted."""
    if stats.effective_tokens is None:
        return None, "no labels were seen"
    if not stats.tokens:
        return brief(stats.effective_tokens), "have a label"
    return percent(stats.effective_tokens / stats.tokens), "of the tokens have a label"


def _tile(name: str, value: str | None, note: str) -> Html:
    shown = element("dd", "not measured", class_="none") if value is None else element("dd", value)
    return element("div", joined(element("dt", name), shown, element("dd", note, class_="note")))
