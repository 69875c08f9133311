"""How the command line writes numbers and tables: one place, so that all commands read alike."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def make_console(*, stderr: bool = False) -> Console:
    """A console that colours nothing by itself: numbers and paths stay as they are written."""
    return Console(highlight=False, stderr=stderr)


def count(value: int) -> str:
    """1234567 -> "1,234,567"."""
    return f"{value:,}"


def brief(value: float) -> str:
    """1234567 -> "1.23 M": three digits and a unit, for rates and sizes."""
    for limit, divisor, unit in ((1e12, 1e12, " T"), (1e9, 1e9, " G"), (1e6, 1e6, " M")):
        if value >= limit:
            return f"{value / divisor:.3g}{unit}"
    return f"{value / 1e3:.3g} k" if value >= 10_000 else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """0.98765 -> "98.76 %", rounded down: only the whole says 100; None -> "-"."""
    return "-" if share is None else f"{math.floor(share * 1e4) / 1e2:.2f} %"


def duration(seconds: float) -> str:
    """Seconds with a unit that keeps three digits: "153 us", "4.12 ms", "12.3 s"."""
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"


def print_table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table: the first column and those without a name are text, the others numbers, set right.

    Columns stand two apart, or one where the terminal has no room for two. Where it has not even
    room for that, lines are longer than it is wide: no figure is cut.
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i and name else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    unlimited = console.options.update(width=10_000)
    if console.measure(table, options=unlimited).maximum > console.width:
        table.padding = 0
    for line in console.render_lines(table, unlimited, pad=False):
        text = Text.assemble(*((part.text, part.style or "") for part in line))
        text.rstrip()  # no blanks behind the last word
        console.print(text, soft_wrap=True)


def print_filled(console: Console, text: str) -> None:
    """Paragraphs filled to the width of the terminal, or to 79 characters of a wider one."""
    for line in text.split("\n"):
        filled = textwrap.fill(line, min(console.width, 79), break_on_hyphens=False)
        console.print(filled, markup=False, soft_wrap=True)


def print_path(console: Console, before: str, path: object, after: str = "") -> None:
    """A line with a path or another text of the user's in it: as it is, and never broken."""
    console.print(f"{before}{path}{after}", markup=False, soft_wrap=True)


def block(console: Console) -> str:
    """The character that bars are drawn with; "#" where the terminal cannot show a block."""
    return "█" if console.encoding.lower().startswith("utf") else "#"
