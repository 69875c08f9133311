"""Pieces of an HTML page: text is escaped unless it is a piece already.

Charts are drawn with widths in percent and heights in pixels, so that they fill any page and their
letters keep their size. Colours are classes; the style sheet has their values, light and dark.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class Html(str):
    """Markup: goes into a page as it is."""

    __slots__ = ()


def element(name: str, /, *inside: str, **attributes: object) -> Html:
    """element("p", "a < b", class_="note") -> <p class="note">a &lt; b</p>.

    Underscores in attributes become hyphens, one at the end falls away; those of None are left out.
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{told}>")
    return Html(f"<{name}{told}>{joined(*inside)}</{name}>")


def joined(*parts: str) -> Html:
    """Pieces and texts one after the other."""
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in parts))


def unbroken(words: str) -> str:
    """A sentence whose figures stay on one line with their units."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", words)


_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[um]?s|[kMGT]i?B?)(?!\w))")
_VOID = frozenset({"meta", "link", "br"})


def box(x: float, width: float, y: float, height: float, colour: str, tip: str = "") -> Html:
    """A rectangle: `x` and `width` are shares of the chart's width, `y` and `height` pixels."""
    return element(
        "rect",
        *([element("title", tip)] if tip else []),
        class_=colour,
        x=f"{100 * x:.3f}%",
        width=f"{100 * max(width, 0.0):.3f}%",
        y=f"{y:.2f}",
        height=f"{max(height, 0.0):.2f}",
    )


def line(x1: float, x2: float, y1: float, y2: float, colour: str) -> Html:
    """A line: shares of the chart's width, and pixels."""
    ends = {
        "x1": f"{100 * x1:.3f}%",
        "x2": f"{100 * x2:.3f}%",
        "y1": f"{y1:.2f}",
        "y2": f"{y2:.2f}",
    }
    return element("line", class_=colour, **ends)


def text(x: float, y: float, words: str, *, anchor: str = "start", colour: str = "label") -> Html:
    """Letters at a share of the chart's width, and pixels."""
    return element(
        "text", words, class_=colour, x=f"{100 * x:.3f}%", y=f"{y:.2f}", text_anchor=anchor
    )


def chart(name: str, title: str, description: str, height: float, marks: Iterable[str]) -> Html:
    """A drawing that a screen reader reads out by its title and description.

    `name` is its own on the page.
    """
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *marks,
        class_="chart",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        width="100%",
        height=f"{height:g}",
    )


def strip(parts: Sequence[tuple[float, str, str]], height: float = 18) -> Html:
    """Shares of a whole side by side, each with a colour and a tip; the text beside it says all."""
    marks, x = [], 0.0
    for share, colour, tip in parts:
        if share > 0:
            marks.append(box(x, share, 0, height, colour, tip))
        x += share
    return element(
        "svg", *marks, class_="strip", aria_hidden="true", width="100%", height=f"{height:g}"
    )


@dataclass(frozen=True)
class Bar:
    """One line of a bar list: its share of the longest possible, in parts, and words around it.

    Attributes:
        label: what it is; value: how much, in words.
        parts: share of the whole width, colour and tip of each part.
        note: smaller, below.
        strong: the line that the others are compared with.
    """

    label: str
    value: str
    parts: Sequence[tuple[float, str, str]]
    note: str = ""
    strong: bool = False


def bar_list(bars: Iterable[Bar]) -> Html:
    """Lines of label, bar and value; on a narrow page the bar goes below the other two."""
    lines = [
        element(
            "li",
            element("span", bar.label, class_="name"),
            strip(bar.parts),
            element("span", bar.value, class_="value"),
            *([element("p", unbroken(bar.note), class_="note")] if bar.note else []),
            class_="strong" if bar.strong else None,
        )
        for bar in bars
    ]
    return element("ul", *lines, class_="bars")


def legend(entries: Iterable[tuple[str, str]]) -> Html:
    """Colours and what they stand for."""
    return element(
        "ul",
        *(
            element("li", strip([(1.0, colour, "")], height=12), element("span", words))
            for colour, words in entries
        ),
        class_="legend",
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> Html:
    """Numbers are set right, the first `text_columns` columns and those without a name left."""

    def cells(kind: str, row: Sequence[str]) -> list[Html]:
        return [
            element(
                kind,
                cell,
                class_="number" if i >= text_columns and head[i] else None,
                scope="col" if kind == "th" else None,
            )
            for i, cell in enumerate(row)
        ]

    body = [element("tr", *cells("td", row)) for row in rows]
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *cells("th", head))),
            element("tbody", *body),
        ),
        class_="scroll",
    )


def section(title: str, lead: str, *parts: str, wide: bool = True) -> Html:
    """A part of the page with a heading and a sentence that says what is to be seen."""
    return element(
        "section",
        element("h2", title),
        *([element("p", unbroken(lead), class_="lead")] if lead else []),
        *parts,
        class_="wide" if wide else None,
    )
