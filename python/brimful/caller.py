"""Warnings that point at the user's line, however many calls of brimful's own lie between."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn_caller(message: str) -> None:
    """A UserWarning at the innermost line outside of brimful."""
    level, frame = 2, sys._getframe(1)  # as warnings.warn counts: 1 is this function
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, stacklevel=level)
