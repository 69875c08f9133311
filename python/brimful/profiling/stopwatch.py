"""A stopwatch for work of one thread, which tells waiting for something from waiting for a core."""

from __future__ import annotations

import os
import time

_CLOSE = 1e-4  # seconds: readings nearer than this are of one moment
_ATTEMPTS = 4


class Stopwatch:
    """Runs from when it is made until it is read, once, by the thread that made it."""

    __slots__ = ("_began", "_file")

    def __init__(self) -> None:
        try:  # Linux's account of the calling thread: nanoseconds run, and stood in line for a core
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = -1
        self._began = self._now()

    def read(self) -> tuple[float, float]:
        """Seconds since, and those of them in which the thread had nothing to do: it neither ran
        nor stood in line for a core, as it does where others keep all of them busy. Where the
        system does not tell, standing in line counts as nothing to do.
        """
        wall, ran, queued = (now - then for now, then in zip(self._now(), self._began, strict=True))
        self._close()
        return wall, max(0.0, wall - ran - queued)

    def _now(self) -> tuple[float, float, float]:
        """Three clocks at one moment: once more where the thread lost its core in between."""
        queued = self._queued()
        for _ in range(_ATTEMPTS):
            before, wall, ran = queued, time.perf_counter(), time.thread_time()
            queued = self._queued()
            if queued - before < _CLOSE:
                break
        return wall, ran, queued

    def _queued(self) -> float:
        return int(os.pread(self._file, 128, 0).split()[1]) * 1e-9 if self._file >= 0 else 0.0

    def _close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self._close()
