"""What came from which source, beside what was meant to come."""

from __future__ import annotations

from collections.abc import Mapping

from brimful.profiling.report.elements import Bar, Html, bar_list, legend, section
from brimful.wording import brief, counted, percent

_MOST = 12  # sources shown; the others are summed up
Exposure = Mapping[str, Mapping[str, int]]


def exposure_by_source(exposure: Exposure | None, weights: Mapping[str, float] | None) -> Html:
    """Shares of tokens by source, most first, with the share that was meant where it is known."""
    if not exposure:
        return Html("")
    tokens = {source: row.get("tokens", 0) for source, row in exposure.items()}
    whole = sum(tokens.values())
    if not whole:
        return Html("")
    meant = _shares(weights)
    order = sorted(exposure, key=lambda source: -tokens[source])
    scale = max(max(tokens.values()) / whole, *meant.values(), 0.0)
    bars = []
    for source in order[:_MOST]:
        share = tokens[source] / whole
        parts = [(share / scale, "work", "")]
        value = percent(share)
        note = f"{counted(exposure[source].get('documents', 0), 'document')}, "
        note += f"{brief(tokens[source])} tokens"
        if source in meant:
            note += f"; meant {percent(meant[source])}"
            missing = (meant[source] - share) / scale
            if missing > 0:
                parts.append((missing, "padding", "missing from what was meant"))
            else:
                parts = [
                    (meant[source] / scale, "work", ""),
                    (-missing, "first", "more than was meant"),
                ]
        bars.append(Bar(source, value, parts, note))
    rest = order[_MOST:]
    if rest:
        share = sum(tokens[source] for source in rest) / whole
        bars.append(
            Bar(
                f"{counted(len(rest), 'more source')}",
                percent(share),
                [(share / scale, "rest", "")],
            )
        )
    keys = [("work", "delivered")]
    if meant:
        keys += [("padding", "missing from what was meant"), ("first", "more than was meant")]
    lead = "Tokens delivered, by source, of all ranks since the first step of the run."
    return section("Exposure", lead, bar_list(bars), legend(keys), wide=False)


def _shares(weights: Mapping[str, float] | None) -> dict[str, float]:
    whole = sum((weights or {}).values())
    return {source: weight / whole for source, weight in (weights or {}).items()} if whole else {}
