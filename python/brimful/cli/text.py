"""How the command line writes numbers and tables: one place, so that all commands read alike.

Numbers are written as everywhere in brimful (`wording.py`); commands take them from here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from brimful.wording import brief, count, duration, percent

__all__ = [
    "block",
    "brief",
    "count",
    "duration",
    "make_console",
    "percent",
    "print_filled",
    "print_path",
    "print_table",
]


def make_console(*, stderr: bool = False) -> Console:
    """A console that prints what it is given: nothing in a name is a colour or a picture."""
    return Console(highlight=False, markup=False, emoji=False, stderr=stderr)


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
        console.print(filled, soft_wrap=True)


def print_path(console: Console, before: str, path: object, after: str = "") -> None:
    """A line with a path or another text of the user's in it: as it is, and never broken."""
    console.print(f"{before}{path}{after}", soft_wrap=True)


def block(console: Console) -> str:
    """The character that bars are drawn with; "#" where the terminal cannot show a block."""
    return "█" if console.encoding.lower().startswith("utf") else "#"
