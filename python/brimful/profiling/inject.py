"""Watches the loaders of a program that knows nothing of it, for `brimful profile -- PROGRAM`.

`inject_site/sitecustomize.py` calls `watch` in the place of a loader's `__iter__`. What is measured
goes to a file of this process: sums about twice a second, and everything when the process ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import util
from pathlib import Path
from types import FrameType
from typing import Any

from brimful.profiling.figures import Profile
from brimful.profiling.joined import joined
from brimful.profiling.profiler import Profiler
from brimful.profiling.saved import SavedProfile, save

_SAVE_SECONDS = 0.5
_SKIPPED = {"torch", "torchdata", "accelerate", "brimful", "tqdm"}  # packages between loop and us


def watch(loader: Any, original: Callable[[Any], Any]) -> Any:
    """A pass of the loader that does what `original(loader)` does, with a clock around `next()`."""
    if _is_worker():
        return original(loader)
    return _registry().watch(loader, original, _place(sys._getframe(2)))


class _WatchedPass:
    """Stands for the iterator that the program would have got: has its class and all it has."""

    def __init__(self, registry: _Registry, drawn: Iterator[Any], stands_for: Any) -> None:
        self._brimful_registry = registry
        self._brimful_drawn = drawn
        self._brimful_stands_for = stands_for

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._brimful_stands_for.__class__

    def __iter__(self) -> _WatchedPass:
        return self

    def __next__(self) -> Any:
        batch = next(self._brimful_drawn)
        self._brimful_registry.tick()
        return batch

    def __len__(self) -> int:
        return len(self._brimful_stands_for)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._brimful_stands_for, name)


class _Loop:
    """One place in the program that iterates loaders, one after the other."""

    def __init__(self, loader: Any, original: Callable[[Any], Any]) -> None:
        self.before: Profile | None = None
        self.newest = threading.local()  # .iterator, on its way to a `_WatchedPass`
        self.profiler = self._profiler(loader, original)

    def follow_with(self, loader: Any, original: Callable[[Any], Any]) -> None:
        """Another loader takes over; the one before is let go."""
        self.profiler.__exit__()
        self.before = self.snapshot(batches=True)
        self.profiler = self._profiler(loader, original)

    def _profiler(self, loader: Any, original: Callable[[Any], Any]) -> Profiler:
        def iterate() -> Any:
            self.newest.iterator = original(loader)
            return self.newest.iterator

        return Profiler(loader, iterate=iterate).__enter__()

    def snapshot(self, *, batches: bool) -> Profile:
        profile = (
            self.profiler.profile()
            if batches
            else Profile(facts=self.profiler.facts, stats=self.profiler.stats())
        )
        return profile if self.before is None else joined(self.before, profile)


class _Registry:
    """All loops of this process. Holds on to the newest loader of each."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loops: dict[str, _Loop] = {}
        self._saved = time.monotonic()
        util.Finalize(None, self._finish, exitpriority=100)  # children of multiprocessing too

    def watch(self, loader: Any, original: Callable[[Any], Any], place: str) -> _WatchedPass:
        with self._lock:
            loop = self._loops.get(place)
            if loop is None:
                loop = self._loops[place] = _Loop(loader, original)
            elif loop.profiler.loader is not loader:
                loop.follow_with(loader, original)
        drawn = iter(loop.profiler)
        stands_for = loop.newest.iterator
        del loop.newest.iterator  # it lives as long as the pass
        return _WatchedPass(self, drawn, stands_for)

    def tick(self) -> None:
        """Saves the sums when it is time to."""
        now = time.monotonic()
        if now - self._saved < _SAVE_SECONDS:
            return
        self._saved = now
        with contextlib.suppress(OSError):  # of a full disk, say: the program goes on
            self._save(finished=False)

    def _save(self, *, finished: bool) -> None:
        with self._lock:
            saved = [
                SavedProfile(
                    place=place,
                    rank=_rank(),
                    process=os.getpid(),
                    finished=finished,
                    profile=loop.snapshot(batches=finished),
                )
                for place, loop in self._loops.items()
                if loop.before is not None or loop.profiler.stats().batches
            ]
        folder = Path(os.environ["BRIMFUL_PROFILE_FOLDER"])
        if folder.is_dir():  # else nobody waits for it any more
            save(folder, saved)

    def _finish(self) -> None:
        for loop in self._loops.values():
            loop.profiler.__exit__()
        self._save(finished=True)
        self._loops.clear()


_registries: dict[int, _Registry] = {}


def _registry() -> _Registry:
    """That of this process: a forked child begins anew."""
    process = os.getpid()
    if process not in _registries:
        _registries.clear()
        _registries[process] = _Registry()
    return _registries[process]


def _is_worker() -> bool:
    """Whether this process makes batches for a loader of torch's."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _rank() -> int | None:
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() else None


def _place(frame: FrameType | None) -> str:
    """The line that iterates, "train.py:42"; where that is an installed package's, both that and
    the line of the program which it was reached from.
    """
    inner = frame
    while inner is not None and inner.f_back is not None and _package(inner) in _SKIPPED:
        inner = inner.f_back
    outer = inner
    while outer is not None and _package(outer) is not None:
        outer = outer.f_back
    if inner is None:
        return "?"
    if outer is None or outer is inner:
        return _line(inner)
    return f"{_line(outer)} in {_line(inner)}"


def _package(frame: FrameType) -> str | None:
    """The package that a frame belongs to, of an installed one or of Python's own; else None."""
    name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    path = frame.f_code.co_filename
    installed = "site-packages" in path or "dist-packages" in path or path.startswith("<")
    return name if installed or name in sys.stdlib_module_names or name == "brimful" else None


def _line(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    package = _package(frame)
    if package is not None and package in path.parts:
        place = path.parts.index(package)
        return f"{'/'.join(path.parts[place:])}:{frame.f_lineno}"
    try:
        path = path.relative_to(Path.cwd())
    except ValueError:
        path = Path(path.name)
    return f"{path}:{frame.f_lineno}"
