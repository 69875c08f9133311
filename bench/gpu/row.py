"""Rows of the table that `gpu_check.py` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Row(NamedTuple):
    what: str
    result: str
    note: str = ""


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| what | result | |", "| --- | ---: | --- |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def span(seconds: float) -> str:
    """Seconds, in the unit that leaves a number of few digits."""
    for size, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.2f} us"
