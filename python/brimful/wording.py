"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """counted(1, "document") -> "1 document"; counted(2_000, "document") -> "2,000 documents"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
