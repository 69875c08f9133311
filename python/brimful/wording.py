"""Numbers in sentences and tables: one way to write them, wherever people read them."""

from __future__ import annotations

import math
import shutil
import textwrap

_WIDEST = 100  # columns; longer lines are hard to read


def counted(number: int, noun: str, plural: str = "") -> str:
    """counted(1, "document") -> "1 document"; counted(2_000, "document") -> "2,000 documents"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


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


def filled(line: str, indent: int | None = None) -> str:
    """The line within the width of the terminal, or 100 columns of a wider one; what is broken goes
    on so far in, or as far in as the line begins.
    """
    if indent is None:
        indent = len(line) - len(line.lstrip())
    return textwrap.fill(
        line,
        min(shutil.get_terminal_size().columns, _WIDEST),
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
