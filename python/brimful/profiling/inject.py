"""Watches the loaders of a program that knows nothing of it, for `brimful profile -- PROGRAM`.

`inject_site/sitecustomize.py` calls what `watcher` returns in the place of a loader's `__iter__`.
What is measured goes to a file of this process: sums about twice a second, and everything when the
process ends. Whatever goes wrong here, the program goes on, and the command is told.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import util
from pathlib import Path
from typing import Any

from brimful.profiling.figures import Profile
from brimful.profiling.joined import joined
from brimful.profiling.place import Place, place_of
from brimful.profiling.profiler import Profiler
from brimful.profiling.saved import SavedProfile, save

_SAVE_SECONDS = 0.5

Iterate = Callable[[Any], Any]  # a loader's own `__iter__`


def watcher(folder: Path) -> Callable[[Any, Iterate], Any]:
    """What watches the loaders of this process and of its forks; `folder` is the command's."""

    def watch(loader: Any, original: Iterate) -> Any:
        """A pass that does what `original(loader)` does, with a clock around `next()`."""
        if _is_worker():
            return original(loader)
        return _registry(folder).watch(loader, original, place_of(sys._getframe(2)))

    return watch


def _registry(folder: Path) -> _Registry:
    """That of this process: a forked child begins anew."""
    process = os.getpid()
    found = _registries.get(process)
    return _registries.setdefault(process, _Registry(folder)) if found is None else found


_registries: dict[int, _Registry] = {}


class _WatchedPass:
    """Stands for the iterator that the program would have got: has its class and all it has."""

    def __init__(self, registry: _Registry, drawn: Iterator[Any], stands_for: Any) -> None:
        self._brimful_registry = registry
        self._brimful_drawn = drawn
        self._brimful_stands_for = stands_for
        self._brimful_ended = False

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._brimful_stands_for.__class__

    def __iter__(self) -> _WatchedPass:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._brimful_drawn)
        except StopIteration:
            self._brimful_ended = True
            raise
        self._brimful_registry.tick()
        return batch

    def __len__(self) -> int:
        return len(self._brimful_stands_for)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._brimful_stands_for, name)


class _Loop:
    """One place in the program that iterates loaders, one after the other."""

    def __init__(self, place: Place, loader: Any, original: Iterate, *, name: str) -> None:
        self.place = place
        self.name = name
        self.before: Profile | None = None
        self.newest_pass: Callable[[], _WatchedPass | None] = lambda: None
        self._newest_iterator = threading.local()
        self.profiler = self._profiler(loader, original)

    @property
    def runs(self) -> bool:
        """Whether its newest pass may go on."""
        newest = self.newest_pass()
        return newest is not None and not newest._brimful_ended

    def follow_with(self, loader: Any, original: Iterate) -> None:
        """Another loader takes over; the one before is let go."""
        self.profiler.__exit__()
        self.before = self.snapshot(batches=True)
        self.profiler = self._profiler(loader, original)

    def begin(self, registry: _Registry) -> _WatchedPass:
        """A pass of the loader."""
        drawn = iter(self.profiler)
        begun = _WatchedPass(registry, drawn, self._newest_iterator.value)
        del self._newest_iterator.value  # it lives as long as the pass
        self.newest_pass = weakref.ref(begun)
        return begun

    def snapshot(self, *, batches: bool) -> Profile:
        """What was measured so far, by the loaders before as well."""
        profile = (
            self.profiler.profile()
            if batches
            else Profile(facts=self.profiler.facts, stats=self.profiler.stats())
        )
        return profile if self.before is None else joined(self.before, profile)

    def _profiler(self, loader: Any, original: Iterate) -> Profiler:
        def iterate() -> Any:
            self._newest_iterator.value = original(loader)
            return self._newest_iterator.value

        return Profiler(loader, iterate=iterate).__enter__()


class _Registry:
    """All loops of this process. Holds on to the newest loader of each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._loops: list[_Loop] = []
        self._saved = time.monotonic()
        util.Finalize(None, self._finish, exitpriority=100)  # children of multiprocessing too

    def watch(self, loader: Any, original: Iterate, place: Place) -> Any:
        """Begins a pass of the loader."""
        try:
            with self._lock:
                loop = self._loop(loader, original, place)
        except Exception as error:
            self._tell(error)
            return original(loader)
        return loop.begin(self)

    def _loop(self, loader: Any, original: Iterate, place: Place) -> _Loop:
        here = [loop for loop in self._loops if loop.place == place]
        for loop in here:
            if loop.profiler.loader is loader:
                return loop
        for loop in here:
            if not loop.runs:
                loop.follow_with(loader, original)
                return loop
        # Beside those that run, as in zip(one, other).
        alike = sum(loop.place.name == place.name for loop in self._loops)
        name = f"{place.name} ({alike + 1})" if alike else place.name
        loop = _Loop(place, loader, original, name=name)
        self._loops.append(loop)
        return loop

    def tick(self) -> None:
        """Saves the sums when it is time to."""
        now = time.monotonic()
        if now - self._saved < _SAVE_SECONDS:
            return
        self._saved = now
        try:
            self._save(finished=False)
        except Exception as error:  # a full disk, say
            self._saved = float("inf")  # not again
            self._tell(error)

    def _save(self, *, finished: bool) -> None:
        with self._lock:
            saved = [
                SavedProfile(
                    place=loop.name,
                    rank=_rank(),
                    process=os.getpid(),
                    finished=finished,
                    profile=loop.snapshot(batches=finished),
                )
                for loop in self._loops
                if loop.before is not None or loop.profiler.stats().batches
            ]
        if saved and self._folder.is_dir():  # else nobody waits for it any more
            save(self._folder, saved)

    def _finish(self) -> None:
        try:
            for loop in self._loops:
                loop.profiler.__exit__()
            self._save(finished=True)
        except Exception as error:
            self._tell(error)
        self._loops.clear()

    def _tell(self, error: Exception) -> None:
        """Leaves a note for the command."""
        with contextlib.suppress(OSError):
            note = self._folder / f"{os.getpid()}.failed"
            note.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")


def _is_worker() -> bool:
    """Whether this process makes batches for a loader of torch's."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _rank() -> int | None:
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() else None
