"""Figures as flat numbers, which is what most loggers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def scalars(figures: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers in nested figures by their paths, for loggers that take names and numbers.

    `scalars(loader.stats().as_dict(), "data/")` has `data/tokens`, `data/exposure/web/tokens`,
    `data/threads/0/fill` ...: of `Stats`, `TorchStats`, `ProfileStats` and steps of a timeline
    alike. What was not measured (None) and what is no number is left out.
    """
    flat: dict[str, float] = {}
    for name, value in figures.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            flat |= scalars(value, f"{path}/")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            flat |= scalars({str(i): entry for i, entry in enumerate(value)}, f"{path}/")
        elif isinstance(value, (int, float)):
            flat[path] = value
    return flat
