"""A profile of any loader, taken from outside: it is iterated through the profiler, unchanged."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from brimful._core import PlanError
from brimful.config import whole_number
from brimful.process_memory import process_memory
from brimful.profiling.clocks import Making
from brimful.profiling.counting import figures_of
from brimful.profiling.facts import facts_of
from brimful.profiling.figures import Profile, ProfileStats, Verdict
from brimful.profiling.gaps import Gaps, gaps_of_torch
from brimful.profiling.makers import clock_of
from brimful.profiling.ranks import RankReport, gather
from brimful.profiling.rows import Rows
from brimful.profiling.verdict import describe, verdict
from brimful.profiling.writers import writer_of
from brimful.wording import filled

_SETTLED_EVERY = 256  # batches; a native loader keeps the records of 10,000


def profile(
    loader: Iterable[Any], *, steps: int | None = None, step_seconds: float | None = None
) -> Profiler:
    """Measures what `loader` delivers and how long it is waited for.

    `with bf.profile(loader) as p:` and then `for batch in p:` in place of `for batch in loader:`;
    `p.stats()` and `p.profile()` at any moment. Without a loop of your own,
    `bf.profile(loader, steps=200).report()`. Order and randomness of the loader stay as they are.
    Worker processes of torch's that are spawned import brimful before their first batch, which
    takes them some tenths of a second.

    Args:
        loader: any iterable: `bf.DataLoader`, torch's DataLoader and those made of it, datasets,
            generators.
        steps: batches that `run()` draws, over as many passes as it takes; None: one pass.
        step_seconds: how long `run()` sleeps with each batch in place of a training step.

    Raises:
        PlanError: for steps below 1 and for negative seconds, a ValueError.
    """
    return Profiler(loader, steps=steps, step_seconds=step_seconds)


class Profiler:
    """Iterates a loader and keeps time. Made by `brimful.profile`.

    Every `iter()` of it is a pass of the loader. What it changes at the loader is put back when the
    `with` block is left; figures can be read at any moment, also behind it. It keeps no batch.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        *,
        steps: int | None = None,
        step_seconds: float | None = None,
        iterate: Callable[[], Iterable[Any]] | None = None,
    ) -> None:
        """`iterate` gives what a pass goes over, where that is not the loader itself."""
        if steps is not None and whole_number("steps", steps) < 1:
            raise PlanError(f"steps is {steps}; a profile draws one batch or more")
        if step_seconds is not None and not 0 <= step_seconds < float("inf"):
            raise PlanError(f"step_seconds is {step_seconds}; expected seconds, 0 or more")
        self.loader = loader
        self.steps = steps
        self.step_seconds = step_seconds
        self.facts = facts_of(loader, simulated_step=step_seconds)
        self._iterate = iterate or (lambda: loader)
        self._clock = clock_of(loader)
        self._rows = Rows()
        self._gaps: Gaps | None = None
        self._makings: deque[tuple[int, Making]] = deque()  # not in the rows yet
        self._settling = threading.RLock()  # a live display asks from a thread of its own
        self._installed: ExitStack | None = None

    def __enter__(self) -> Profiler:
        if self._installed is None:
            with ExitStack() as stack:
                stack.enter_context(self._clock.watching())
                self._installed = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        installed, self._installed = self._installed, None
        if installed is not None:
            installed.close()

    def __iter__(self) -> Pass:
        if self._installed is None:
            raise RuntimeError("iterate a profile inside of its block: with bf.profile(...) as p")
        return Pass(self, self._iterate)

    def __len__(self) -> int:
        """Batches of a pass, where the loader tells."""
        return len(self.loader)  # type: ignore[arg-type]

    def run(self) -> Profiler:
        """Draws batches as `steps` and `step_seconds` say; returns the profiler itself."""
        left = self.steps
        with self:
            while True:
                drawn = 0
                batches = iter(self)
                for _ in batches:
                    drawn += 1
                    if self.step_seconds:
                        time.sleep(self.step_seconds)
                    if drawn == left:
                        batches.end_step()
                        return self
                if left is None or drawn == 0:
                    return self
                left -= drawn

    def stats(self) -> ProfileStats:
        """Sums so far; cheap enough to ask some times a second."""
        self._settle()
        memory, makers = process_memory(), self._clock.stats()
        return ProfileStats(
            **self._rows.sums.fields(),
            wall_seconds=self._rows.wall_seconds,
            anonymous_bytes=memory.anonymous,
            file_backed_bytes=memory.file_backed,
            worker_bytes=makers.worker_bytes,
            read_bytes=makers.read_bytes,
            major_faults=makers.major_faults,
            starvation=self._gaps.starvation() if self._gaps else makers.starvation,
            threads=makers.threads,
        )

    def profile(self) -> Profile:
        """Everything so far, with each of the last 10,000 batches."""
        return Profile(
            facts=self.facts,
            stats=self.stats(),
            batches=self._rows.batches(),
            records=self._clock.records(),
            began=self._rows.began,
        )

    def verdict(self) -> Verdict:
        """Seconds lost by cause so far, most first, and the step that would be left without."""
        return verdict(self.profile())

    def gather(self, group: Any = None) -> RankReport:
        """The figures of all ranks of a process group; all of them call it. None: of all there are.

        Without a process group it is this process's alone.
        """
        return gather(self.profile(), group)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The verdict as text for the terminal, after `run()` where nothing was drawn yet.

        Args:
            path: a file to write as well: a page for a browser (.html), the last batches as a trace
                for Perfetto or Chrome (.json), or one JSON object a batch (.jsonl).

        Raises:
            PlanError: a path of another kind, before anything is drawn.
        """
        write = None if path is None else writer_of(path)
        if not self._rows.sums.batches:
            self.run()
        measured = self.profile()
        if write is not None:
            write(measured, self.loader)
        lines = describe(verdict(measured), measured).split("\n")
        return "\n".join(map(filled, lines))

    def _watch_device(self) -> None:
        """Measures a device's time where the loader does not, once the program has torch."""
        if self._gaps is None and self._clock.starved() is None:
            self._gaps = gaps_of_torch()
        if self._gaps is not None:
            self._gaps.begin_pass()

    def _settle(self) -> None:
        with self._settling:
            self._makings.extend(self._clock.settle())
            while self._makings:  # an interrupt leaves the rest for the next time
                self._rows.add_making(*self._makings.popleft())
            starved = self._gaps.settle() if self._gaps else self._clock.starved()
            self._rows.add_starved(starved or ())


class Pass(Iterator[Any]):
    """One pass of a loader under a profile."""

    def __init__(self, profiler: Profiler, iterate: Callable[[], Iterable[Any]]) -> None:
        self._profiler = profiler
        self._rows, self._clock = profiler._rows, profiler._clock
        profiler._watch_device()
        self._gaps = profiler._gaps
        self._began: float | None = self._rows.begin_pass()  # None behind the first batch
        self._iterator: Iterator[Any] | None = self._clock.begin(iterate)  # None at the end

    def __next__(self) -> Any:
        if self._iterator is None:
            raise StopIteration
        self._clock.enter()  # before the wait begins: what it costs is none
        entered = self._rows.enter(self)
        if self._gaps is not None:
            self._gaps.enter()
        try:
            batch = next(self._iterator)
        except BaseException as error:
            self._rows.take_nothing(entered)
            if isinstance(error, StopIteration):
                self._iterator = None
            raise
        number = self._rows.take(self, entered=entered, began=self._began)
        if self._gaps is not None:
            self._gaps.taken(number)
        self._began = None
        counted = self._clock.taken(number, batch)
        self._rows.add_figures(counted or figures_of(batch))
        if number % _SETTLED_EVERY == 0:
            self._profiler._settle()
        return batch

    def end_step(self) -> None:
        """Says that the consumer is done with a batch behind which it asks for no other one."""
        self._rows.enter(self)
