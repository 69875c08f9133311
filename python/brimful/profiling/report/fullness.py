"""How full batches were: lengths of what they hold, and what each packing makes of the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from brimful.pack_plan import PackPlan
from brimful.packing import Strategy, pack
from brimful.profiling.figures import Profile
from brimful.profiling.report.axis import beside, left_axis, ticks
from brimful.profiling.report.elements import (
    Bar,
    Html,
    bar_list,
    box,
    chart,
    element,
    legend,
    line,
    section,
    text,
)
from brimful.wording import brief, count, counted, percent

# All that take no longer than reading the lengths does, in the order of what they ask for.
STRATEGIES: tuple[Strategy, ...] = (
    "pad",
    "concat",
    "streaming",
    "best_fit",
    "first_fit_decreasing",
    "best_fit_decreasing",
)
_HEIGHT, _TOP = 260.0, 8.0
_MOST_PACKED = 1 << 16  # segments; all strategies together take less than a second for so many


def lengths_of(profile: Profile) -> npt.NDArray[np.int64]:
    """Lengths of the segments of the batches that the profile kept, in order: [segments]."""
    kept = [batch.figures.lengths for batch in profile.batches if batch.figures.lengths]
    flat = np.concatenate([np.asarray(lengths, np.int64) for lengths in kept or [()]])
    return flat[flat > 0]


def histogram(profile: Profile) -> Html:
    """Segments and tokens by length in powers of two; nothing where lengths were not counted."""
    counts = list(profile.stats.length_counts)
    if not sum(counts):
        return Html("")
    first = next(k for k, n in enumerate(counts) if n)
    last = max(k for k, n in enumerate(counts) if n)
    lengths = lengths_of(profile)
    places = np.arange(first, last + 1)
    segments = np.asarray(counts[first : last + 1]) / sum(counts)
    tokens = _token_shares(lengths, first, last)
    highest = max(float(segments.max()), float(tokens.max()) if tokens is not None else 0.0)
    scale = ticks(highest, 3)

    def height(share: float) -> float:
        return (_HEIGHT - _TOP) * share / scale[-1]

    marks = [line(0, 1, _HEIGHT - height(v), _HEIGHT - height(v), "grid") for v in scale]
    width = 1 / len(places)
    for i, power in enumerate(places.tolist()):
        held = [("segments", "work", float(segments[i]))]
        if tokens is not None:
            held.append(("tokens", "good", float(tokens[i])))
        each = 0.84 * width / len(held)
        for k, (what, colour, share) in enumerate(held):
            tip = f"{count(1 << power)} to {count((2 << power) - 1)}: {percent(share)} of {what}"
            x = i * width + 0.08 * width + k * each
            marks.append(box(x, each, _HEIGHT - height(share), height(share), colour, tip))
        label = _power(power)
        odd = " odd" if (len(places) - 1 - i) % 2 else ""
        marks.append(
            text((i + 0.5) * width, _HEIGHT + 15, label, anchor="middle", colour=f"label{odd}")
        )
    told = (
        f"{counted(sum(counts), 'segment')}, most of {count(1 << _largest(counts))} to "
        f"{count((2 << _largest(counts)) - 1)} tokens."
    )
    keys = [("work", "share of segments")]
    if tokens is not None:
        keys.append(("good", "share of tokens"))
    labels = [(_HEIGHT - height(v), f"{100 * v:g} %") for v in scale]
    return section(
        "Lengths",
        "Of segments, documents or their pieces, as they came in batches. Each pair of columns "
        "reaches from its number to the next, in tokens.",
        element(
            "figure",
            beside(
                left_axis(labels, _HEIGHT + 6),
                chart("lengths", "Histogram of lengths", told, _HEIGHT + 20, marks),
            ),
            legend(keys),
        ),
        wide=False,
    )


def _largest(counts: Sequence[int]) -> int:
    return max(range(len(counts)), key=lambda k: counts[k])


def _power(power: int) -> str:
    """1,024 as it is up to five digits, then with a unit."""
    return count(1 << power) if power < 14 else f"{1 << (power - 10):,} Ki"


def _token_shares(
    lengths: npt.NDArray[np.int64], first: int, last: int
) -> npt.NDArray[np.float64] | None:
    if not len(lengths):
        return None
    edges = np.int64(1) << np.arange(first, last + 2, dtype=np.int64)
    places = np.searchsorted(edges, lengths, side="right") - 1
    sums = np.bincount(places, weights=lengths, minlength=len(edges) - 1)
    return sums[: len(edges) - 1] / float(lengths.sum())


def capacity_of(profile: Profile) -> int | None:
    """Tokens of a row: its setting, else the longest segment."""
    told = profile.facts.settings.get("seq_len")
    if isinstance(told, int) and not isinstance(told, bool) and told > 0:
        return told
    longest = max((max(b.figures.lengths) for b in profile.batches if b.figures.lengths), default=0)
    return longest or None


def by_strategy(profile: Profile) -> Html:
    """Utilization as measured, and of each cheap strategy on the same lengths."""
    lengths, capacity = lengths_of(profile), capacity_of(profile)
    measured = profile.stats.utilization
    if measured is None or not len(lengths) or capacity is None:
        return Html("")
    bars = [
        Bar(
            "this loader",
            percent(measured),
            [(measured, "work", ""), (1 - measured, "padding", "padding")],
            "measured",
            strong=True,
        )
    ]
    packed = lengths[-_MOST_PACKED:]
    for strategy in STRATEGIES:
        plan = pack(packed, capacity, strategy=strategy)
        filled = plan.utilization or 0.0
        bars.append(
            Bar(
                strategy,
                percent(filled),
                [(filled, "good", ""), (1 - filled, "padding", "padding")],
                _note(plan),
            )
        )
    lead = (
        f"What bf.pack makes of the {'last' if len(packed) < len(lengths) else 'same'} "
        f"{counted(len(packed), 'segment')} ({brief(float(packed.sum()))} tokens) in rows of "
        f"{count(capacity)}."
    )
    return section(
        "Utilization by strategy",
        lead,
        bar_list(bars),
        legend([("work", "tokens, measured"), ("good", "tokens, planned"), ("padding", "padding")]),
        wide=False,
    )


def _note(plan: PackPlan) -> str:
    cut = plan.split_documents
    cuts = f", {counted(cut, 'segment')} cut" if cut else ""
    return f"{counted(plan.num_bins, 'row')}{cuts}"
