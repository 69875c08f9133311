"""What came from which source, beside what was meant to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from brimful.profiling.diagnosis_data import target_shares
from brimful.profiling.makers import is_native_loader
from brimful.profiling.report.elements import Bar, Html, bar_list, legend, section
from brimful.wording import brief, counted, percent

_MOST = 12  # sources shown; the others are summed up


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a run delivered of each source, over all ranks.

    Attributes:
        counts: source -> {"documents", "tokens"}, as `Stats.exposure`.
        meant: the share that each was meant to have, in any unit; empty where none was.
        unit: what shares are shares of.
    """

    counts: Mapping[str, Mapping[str, int]]
    meant: Mapping[str, float] = field(default_factory=dict)
    unit: Literal["tokens", "documents"] = "tokens"


def sources_of(loader: Any) -> Sources | None:
    """Those of a native loader since step 0; None for loaders that know no sources.

    The shares that a schedule means are those of the tokens so far.
    """
    if not is_native_loader(loader):
        return None
    counts, rule = loader.stats().exposure, loader.corpus.rule
    if rule is None or rule.weights is None:
        return Sources(counts=counts)
    tokens = sum(held["tokens"] for held in counts.values())
    return Sources(counts=counts, meant=target_shares(rule.schedule, tokens), unit=rule.unit)


def exposure_by_source(sources: Sources | None) -> Html:
    """Shares by source, most first, with the share that was meant where it is known."""
    if sources is None:
        return Html("")
    unit = sources.unit
    held = dict.fromkeys(sources.meant, 0)
    held |= {source: row.get(unit, 0) for source, row in sources.counts.items()}
    whole = sum(held.values())
    if not whole:
        return Html("")
    total = sum(sources.meant.values())
    meant = {source: share / total for source, share in sources.meant.items()} if total else {}
    order = sorted(held, key=lambda source: -held[source])
    scale = max(max(held.values()) / whole, *meant.values(), 0.0)
    bars = []
    for source in order[:_MOST]:
        share = held[source] / whole
        row = sources.counts.get(source, {})
        note = f"{counted(row.get('documents', 0), 'document')}, "
        note += f"{brief(row.get('tokens', 0))} tokens"
        if source in meant:
            note += f"; meant {percent(meant[source])}"
        parts = _parts(share / scale, meant.get(source, share) / scale)
        bars.append(Bar(source, percent(share), parts, note))
    rest = order[_MOST:]
    if rest:
        share = sum(held[source] for source in rest) / whole
        name = counted(len(rest), "more source")
        bars.append(Bar(name, percent(share), [(min(share / scale, 1.0), "rest", "")]))
    keys = [("work", "delivered")]
    if meant:
        keys += [("padding", "missing from what was meant"), ("first", "more than was meant")]
    lead = f"{unit.capitalize()} delivered, by source, of all ranks since the run's first step."
    return section("Exposure", lead, bar_list(bars), legend(keys), wide=False)


def _parts(share: float, meant: float) -> list[tuple[float, str, str]]:
    """A bar that shows what is missing or too much."""
    if share <= meant:
        return [(share, "work", ""), (meant - share, "padding", "missing from what was meant")]
    return [(meant, "work", ""), (share - meant, "first", "more than was meant")]
