"""Where in a program a loop over a loader stands, in words for people."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_BETWEEN = {"torch", "torchdata", "accelerate", "brimful", "tqdm"}  # packages that hand batches on


@dataclass(frozen=True)
class Place:
    """A line that iterates.

    Attributes:
        file, line: of it.
        name: "train.py:42"; of a line in an installed package, as a trainer's, the line of the
            program that led there and the function that iterates: "train.py:42 in Trainer.fit".
    """

    file: str
    line: int
    name: str


def place_of(frame: FrameType) -> Place:
    """The place that a frame iterates at, or the frame which that was done for."""
    inner = frame
    while inner.f_back is not None and _package(inner) in _BETWEEN:
        inner = inner.f_back
    outer: FrameType | None = inner
    while outer is not None and _package(outer) is not None:
        outer = outer.f_back
    name = _line(outer or inner)
    if outer is not None and outer is not inner:
        name += f" in {inner.f_code.co_qualname.partition('.<locals>')[0]}"
    return Place(inner.f_code.co_filename, inner.f_lineno, name)


def _package(frame: FrameType) -> str | None:
    """The package of a frame, where it is an installed one or Python's own."""
    name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    path = frame.f_code.co_filename
    installed = "site-packages" in path or "dist-packages" in path or path.startswith("<frozen")
    return name if installed or name in sys.stdlib_module_names or name == "brimful" else None


def _line(frame: FrameType) -> str:
    """The file from the working folder, or from its package, and the line."""
    path = Path(frame.f_code.co_filename)
    package = _package(frame)
    if package is not None and package in path.parts:
        path = Path(*path.parts[path.parts.index(package) :])
    elif path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    else:
        path = Path(path.name)
    return f"{path}:{frame.f_lineno}"
