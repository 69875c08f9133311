"""A plan in words, for a terminal of 80 columns: how good it is, and what it does to whom."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from brimful.distribution import Distribution, DocumentGroup
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful.pack_plan import PackPlan

_WIDTH = 80
_TITLE = 16
_MOST_SOURCES = 20
_NAME_WIDTH = 20
_HEAD = ("tokens\ngiven", "tokens\nplaced", "whole", "cut", "dropped", "after\na cut")
_LEGEND = """\
tokens given, placed: share of all tokens before packing, and in the bins.
whole, cut, dropped: documents. after a cut: share of the placed tokens that do
not see the beginning of their document."""


def write(plan: PackPlan, distribution: Distribution) -> str:
    """The report of a plan: text without a newline at its end."""
    total = distribution.total
    lines = [
        f"{plan.strategy}: {counted(total.documents, 'document')} into bins of "
        f"{counted(plan.capacity, 'token')}",
        *_line("utilization", _filled(plan)),
        *_line("bins", f"{plan.num_bins:,}, {_distance(plan)}"),
        *_line("tokens", f"{plan.num_tokens:,} placed, {_lost_tokens(plan)}{_start_tokens(plan)}"),
        *_line("documents", _fates(total)),
    ]
    in_force = constraints(plan)
    if in_force:
        lines += _line("constraints", ", ".join(in_force))
    if len(plan.documents):
        lines += [
            *_line("documents/bin", _spread(distribution.bins_by_pieces)),
            *_line("pieces/document", _spread(distribution.documents_by_pieces)),
            *_line("labels", _labels(plan, total)),
            *_line("left context", _context(total)),
        ]
    if distribution.by_length:
        lines += ["", *_by_length(distribution)]
    if distribution.by_source:
        lines += ["", *_by_source(distribution)]
    if distribution.by_length:
        lines += ["", _LEGEND]
    return "\n".join(lines)


def headline(plan: PackPlan) -> str:
    """One line without the fates of the documents."""
    parts = [
        plan.strategy,
        f"{counted(len(plan.document_lengths), 'document')} in {counted(plan.num_bins, 'bin')} of "
        f"{counted(plan.capacity, 'token')}",
        *([f"{_filled(plan)} full"] if plan.num_bins else []),
        *constraints(plan),
    ]
    return ", ".join(parts)


def constraints(plan: PackPlan) -> list[str]:
    """Those that `pack` was given, by the names of its arguments."""
    told = {
        f"max_segments {plan.max_segments}": plan.max_segments is not None,
        f"align {plan.align}": plan.align > 1,
        "start_token": plan.start_tokens > 0,
        f"min_piece {plan.min_piece}": plan.min_piece > 1,
        "groups": plan.has_groups,
        f"resource_capacity {plan.resource_capacity}": plan.resource_capacity is not None,
    }
    return [text for text, is_set in told.items() if is_set]


def _filled(plan: PackPlan) -> str:
    if not plan.num_bins:
        return "none: no bin"
    # Rounded down: only a plan without a gap says 100 %.
    thousandths = plan.num_tokens * 100_000 // (plan.num_bins * plan.capacity)
    return f"{thousandths / 1000:.3f} %"


def _distance(plan: PackPlan) -> str:
    if plan.num_bins == plan.lower_bound:
        return "optimal: no packing of these pieces has fewer"
    if not plan.lower_bound:
        return "empty: there are no pieces"
    # Rounded up: the distance is never larger than it says.
    over = -((plan.lower_bound - plan.num_bins) * 10_000 // plan.lower_bound)
    if over > 1000:  # "within 75 %" reads as three quarters of the best
        return (
            f"{over / 100:,.2f} % more bins than the bound of {plan.lower_bound:,} "
            "(no packing of these pieces has fewer)"
        )
    return (
        f"within {over / 100:.2f} % of optimal "
        f"(no packing of these pieces has fewer than {plan.lower_bound:,})"
    )


def _lost_tokens(plan: PackPlan) -> str:
    if not plan.dropped_tokens:
        return "none lost"
    share = plan.dropped_tokens / (plan.num_tokens + plan.dropped_tokens)
    return f"{plan.dropped_tokens:,} lost ({100 * share:.1f} %, overlong={plan.overlong!r})"


def _start_tokens(plan: PackPlan) -> str:
    return f"; {counted(plan.start_tokens, 'start token')} beside them" if plan.start_tokens else ""


def _fates(total: DocumentGroup) -> str:
    fates = {
        "whole": total.whole_documents,
        "split": total.split_documents,
        "truncated": total.truncated_documents,
        "dropped": total.dropped_documents,
        "empty": total.empty_documents,
    }
    return ", ".join(f"{n:,} {fate}" for fate, n in fates.items() if n or fate == "whole")


def _spread(counts: npt.NDArray[np.int64]) -> str:
    """counts[k]: how often k occurs."""
    values = np.flatnonzero(counts)
    mean = float(values @ counts[values]) / float(counts.sum())
    if len(values) == 1:
        return f"{values[0]:,}"
    return f"{values[0]:,} to {values[-1]:,}, {mean:,.1f} on average"


def _labels(plan: PackPlan, total: DocumentGroup) -> str:
    if plan.start_tokens:
        return (
            f"every placed token has one: {counted(plan.start_tokens, 'start token')}, one in "
            "front of each piece, for the first ones"
        )
    cuts = total.labels_lost_to_cuts
    lost = total.labels - total.placed_labels - cuts
    reasons = [(cuts, "lost at cuts"), (lost, "lost with their tokens")]
    told = [f"{n:,} {reason}" for n, reason in reasons if n]
    return f"{total.placed_labels:,} placed, {', '.join(told) or 'none lost'}"


def _context(total: DocumentGroup) -> str:
    if not total.tokens_after_cut:
        return "every placed token sees all earlier ones of its document"
    share = total.tokens_after_cut / total.placed_tokens
    return (
        f"{counted(total.tokens_after_cut, 'token')} ({_percent(share)} of those placed) "
        f"come{'s' if total.tokens_after_cut == 1 else ''} after a cut; "
        f"on average a token sees {total.placed_context:,.1f} earlier ones of its document, "
        f"{total.given_context:,.1f} before packing"
    )


def _by_length(distribution: Distribution) -> list[str]:
    total = distribution.total
    rows = [
        [f"{group.shortest:,} - {group.longest:,}", *_shares(group, total), *_fate_cells(group)]
        for group in distribution.by_length
    ]
    title = "Tenths of the documents, by length" if len(rows) == 10 else "Documents by length"
    return [f"{title}:", *_table(["length", *_HEAD], rows)]


def _by_source(distribution: Distribution) -> list[str]:
    total = distribution.total
    groups = sorted(distribution.by_source, key=lambda group: -group.tokens)[:_MOST_SOURCES]
    rows = [
        [
            _shortened(str(group.source)),
            *_shares(group, total),
            *_fate_cells(group),
        ]
        for group in groups
    ]
    lines = ["Documents by source, most tokens first:", *_table(["source", *_HEAD], rows)]
    left = len(distribution.by_source) - len(groups)
    return [*lines, f"  and {left:,} more, in distribution().by_source"] if left else lines


def _shortened(name: str) -> str:
    """The end of a long name, which tells paths apart."""
    return name if len(name) <= _NAME_WIDTH else "..." + name[3 - _NAME_WIDTH :]


def _shares(group: DocumentGroup, total: DocumentGroup) -> list[str]:
    """Of all tokens before packing, and of all tokens that are delivered."""
    given = group.tokens / total.tokens if total.tokens else None
    placed = group.placed_tokens / total.placed_tokens if total.placed_tokens else None
    return [_percent(given), _percent(placed)]


def _fate_cells(group: DocumentGroup) -> list[str]:
    after_cut = group.tokens_after_cut / group.placed_tokens if group.placed_tokens else None
    documents = (group.whole_documents, group.cut_documents, group.dropped_documents)
    return [*(f"{n:,}" for n in documents), _percent(after_cut)]


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    return f"{100 * share:.2f} %" if share else "0"


def _line(name: str, text: str) -> list[str]:
    indent = " " * (_TITLE + 2)
    lines = textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [f"  {name:<{_TITLE}}" + lines[0][len(indent) :], *lines[1:]]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The first column is set left, the others right; headings may have several lines."""
    rows = list(rows)
    titles = [title.split("\n") for title in head]
    deep = max(map(len, titles))
    top = [[([""] * (deep - len(title)) + title)[i] for title in titles] for i in range(deep)]
    widths = [max(map(len, column)) for column in zip(*top, *rows, strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths) <= _WIDTH else " "
    lines = []
    for row in [*top, *rows]:
        cells = zip(row, widths, strict=True)
        text = [
            cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(cells)
        ]
        lines.append("  " + gap.join(text).rstrip())
    return lines
