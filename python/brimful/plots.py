"""Plans as one figure: who is delivered, who loses context, how full bins are and what is in them.

Needs matplotlib (the extra `plot`), which is imported when something is drawn. Its global state is
left alone: figures are made and saved without pyplot.
"""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from brimful._core import FormatError
from brimful.distribution import Distribution
from brimful.extras import require
from brimful.pack_plan import PackPlan
from brimful.wording import counted

_FORMATS = (".png", ".svg", ".pdf", ".html")
# Okabe and Ito's colours, which people who see few colours can tell apart; shapes differ as well.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999900")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_GIVEN = "#C8C8C8"


def check_target(path: Path) -> None:
    """Raises what `draw` would raise for this path, before anything is worked out for it.

    Raises:
        FormatError: its name ends in nothing that can be drawn.
        FileNotFoundError: its folder is not there.
        ModuleNotFoundError: matplotlib is not installed.
    """
    if path.suffix.lower() not in _FORMATS:
        raise FormatError(
            f"{path}: a plot is written as {', '.join(_FORMATS)}; give a name that ends in one"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder, so no plot can be written there")
    require("matplotlib", "plot", "a plot")


def draw(plans: Sequence[PackPlan], path: Path) -> None:
    """Draws plans of the same documents, one a strategy, into a .png, .svg, .pdf or .html.

    The figure has four panels: share of tokens by document length before and after, tokens that
    lost left context by document length, utilization, and pieces in a bin. Plans that look the same
    in a panel share a line.
    """
    check_target(path)
    figure = require("matplotlib.figure", "plot", "a plot").Figure(
        figsize=(12, 8.4), layout="constrained", facecolor="white"
    )
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.08)
    panels = figure.subplots(2, 2)
    described = [plan.distribution() for plan in plans]
    names = [plan.strategy for plan in plans]
    total = described[0].total
    figure.suptitle(
        f"{counted(total.documents, 'document')}, {counted(total.tokens, 'token')}, in bins of "
        f"{plans[0].capacity:,} (overlong: {plans[0].overlong})",
        fontsize=13,
    )
    _tokens_by_length(panels[0, 0], names, described)
    _context_by_length(panels[0, 1], names, described)
    _utilization(panels[1, 0], plans)
    _pieces_in_a_bin(panels[1, 1], names, described)
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.title.set_fontweight("bold")
    _save(figure, path)


def _tokens_by_length(panel: Any, names: list[str], described: list[Distribution]) -> None:
    groups = described[0].by_length
    given = [_percent(group.tokens, described[0].total.tokens) for group in groups]
    panel.bar(range(len(given)), given, color=_GIVEN, width=0.8, label="before packing")
    placed = {
        i: [_percent(group.placed_tokens, one.total.placed_tokens) for group in one.by_length]
        for i, one in enumerate(described)
    }
    _lines(panel, names, placed, "after packing: ")
    _label_lengths(panel, described[0])
    panel.set(title="Who is trained on", ylabel="share of all tokens [%]")


def _context_by_length(panel: Any, names: list[str], described: list[Distribution]) -> None:
    shares = {
        i: [_percent(group.tokens_after_cut, group.placed_tokens) for group in one.by_length]
        for i, one in enumerate(described)
    }
    _lines(panel, names, shares, "")
    _label_lengths(panel, described[0])
    panel.set(title="Who loses left context", ylabel="tokens after a cut, of those placed [%]")
    panel.set_ylim(
        bottom=-2, top=max(10.0, *(1.15 * max(row, default=0) for row in shares.values()))
    )


def _utilization(panel: Any, plans: Sequence[PackPlan]) -> None:
    rows = range(len(plans))
    # Rounded down, as everywhere: only bins without a gap are 100 % full.
    used = [math.floor(10_000 * (plan.utilization or 0)) / 100 for plan in plans]
    panel.barh(rows, used, color=[_colour(i) for i in rows], height=0.65, alpha=0.35)
    for row, (share, plan) in enumerate(zip(used, plans, strict=True)):
        panel.text(
            1.5, row, f"{share:.2f} % in {plan.num_bins:,} bins", va="center", fontsize=9,
        )  # fmt: skip
    panel.set_yticks(rows, [plan.strategy for plan in plans])
    panel.invert_yaxis()
    panel.set(title="How full bins are", xlabel="utilization: tokens / slots [%]", xlim=(0, 100))


def _pieces_in_a_bin(panel: Any, names: list[str], described: list[Distribution]) -> None:
    # All bins of "pad" hold one piece: so high a point would press the other lines flat.
    shown = {i: one.bins_by_pieces for i, one in enumerate(described) if names[i] != "pad"}
    shares = np.zeros((len(names), max((len(bins) for bins in shown.values()), default=0) + 2))
    for i, bins in shown.items():
        shares[i, : len(bins)] = 100 * bins / max(bins.sum(), 1)
    # To where the last line comes down to the axis; a few bins may hold many more pieces.
    end = int(np.flatnonzero((shares >= 0.01 * shares.max()).any(axis=0))[-1]) + 1
    end = max(end, 3) if shares.any() else 3
    ended = {i: shares[i, :end].tolist() for i in shown}
    _lines(panel, names, ended, "", first=1)
    panel.set(
        title="What is in a bin", xlabel="documents, or pieces of them, in a bin (pad: one)",
        ylabel="share of bins [%]",
    )  # fmt: skip
    panel.set_ylim(bottom=0)
    panel.xaxis.get_major_locator().set_params(integer=True)


def _lines(
    panel: Any, names: list[str], values: dict[int, list[float]], prefix: str, *, first: int = 0
) -> None:
    """A line a plan, by its number; those that would hide each other are one, named after all."""
    highest = max((value for row in values.values() for value in row), default=0.0)
    thickness = 0.006 * highest
    alike: dict[int, list[int]] = {}
    for i, row in values.items():
        for j, members in alike.items():
            if all(abs(a - b) <= thickness for a, b in zip(row, values[j], strict=True)):
                members.append(i)
                break
        else:
            alike[i] = [i]
    drawn = [names[i] for i in values]
    for i, members in alike.items():
        row = values[i][first:]
        panel.plot(
            range(first, first + len(row)), row, color=_colour(i), linewidth=1.6, markersize=5,
            marker=_MARKERS[i % len(_MARKERS)] if len(row) <= 40 else None,
            label=prefix + _joined([names[m] for m in members], drawn),
        )  # fmt: skip
    panel.legend(frameon=False, fontsize=9)


def _joined(members: list[str], names: list[str]) -> str:
    others = [name for name in names if name not in members]
    if not others:
        return "all strategies"
    if len(members) > 2 and len(others) <= 2:
        return f"all but {' and '.join(others)}"
    return ",\n".join(members)


def _label_lengths(panel: Any, distribution: Distribution) -> None:
    groups = distribution.by_length
    panel.set_xticks(range(len(groups)), [f"{group.longest:,}" for group in groups], rotation=30)
    panel.set_xlabel("tenths of the documents, up to this length [tokens]")


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _colour(i: int) -> str:
    return _COLOURS[i % len(_COLOURS)]


def _save(figure: Any, path: Path) -> None:
    if path.suffix.lower() != ".html":
        figure.savefig(path, dpi=130)
        return
    image = io.BytesIO()
    figure.savefig(image, format="svg")
    title = html.escape(figure.get_suptitle())
    path.write_text(
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<img alt="{title}" style="max-width: 100%" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(image.getvalue()).decode()}">\n</html>\n'
    )
