"""`brimful profile TARGET`: draws from shards, or from a loader of the user's, and tells what a
training loop would wait for.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

import brimful as bf
from brimful import PlanError
from brimful.cli.profile_live import live_figures
from brimful.cli.profile_output import Told, check_outputs, tell
from brimful.cli.source import Source
from brimful.cli.text import block, make_console
from brimful.profiling.diagnose import diagnose
from brimful.profiling.logged import Logged
from brimful.profiling.profiler import Profiler
from brimful.profiling.report.sources import sources_of

REFRESH_SECONDS = 0.2
BAR_WIDTH = 40
INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended
SHARDS = {"batch_size": 8, "seq_len": 4096, "shuffle": True}


def is_function(target: str) -> bool:
    """Whether a target is module:function and no path."""
    return re.fullmatch(r"[^\W\d][\w.]*:[^\W\d][\w.]*", target) is not None and not (
        os.path.exists(target)
    )


def run_target(
    target: str,
    *,
    settings: Mapping[str, Any],
    steps: int,
    step_seconds: float | None,
    outputs: Mapping[str, Path | None],
    json: bool,
) -> int:
    """Draws, prints and writes; the exit code: 130 where Ctrl-C ended the drawing."""
    check_outputs(outputs)
    loader = _called(target) if is_function(target) else _opened(target, settings)
    profiler = Profiler(loader, steps=steps, step_seconds=step_seconds)
    try:
        whole = draw(profiler, steps, step_seconds)
        if not profiler.stats().batches:
            raise PlanError(f"{target} gave no batch: there is nothing to profile")
        profile = profiler.profile()
        diagnosis = diagnose(loader, profile=profile) if whole else None
        timeline = loader.timeline if isinstance(loader, Logged) else None
        told = Told(target, profile, diagnosis, sources_of(loader), timeline)
        tell(told, outputs=outputs, json=json)
    finally:
        close = getattr(loader, "close", None)
        if close is not None and not is_function(target):
            close()
    return 0 if whole else INTERRUPTED


def draw(profiler: Profiler, steps: int, step_seconds: float | None) -> bool:
    """Draws so many batches, over as many passes as that takes, with a live display on a terminal.

    False where Ctrl-C ended it; what was drawn before counts.
    """
    console = make_console(stderr=True)
    shown = console.is_terminal and not console.is_dumb_terminal
    mark = block(console)
    drawn = 0
    refreshed = time.perf_counter()
    with profiler, Live(console=console, auto_refresh=False, transient=True) as live:
        try:
            while drawn < steps:
                batches = iter(profiler)
                before = drawn
                for _ in itertools.islice(batches, steps - drawn):
                    drawn += 1
                    until = time.perf_counter() + (step_seconds or 0.0)
                    if shown and time.perf_counter() - refreshed >= REFRESH_SECONDS:
                        live.update(_display(profiler, drawn, steps, mark), refresh=True)
                        refreshed = time.perf_counter()
                    time.sleep(max(until - time.perf_counter(), 0.0))
                batches.end_step()
                if drawn == before:  # an iterator that is used up
                    break
        except KeyboardInterrupt:
            return False
    return True


def _display(profiler: Profiler, drawn: int, steps: int, mark: str) -> Table:
    """Two lines: how far it is, and the figures so far."""
    lines = Table.grid()
    lines.add_row(ProgressBar(total=steps, completed=drawn, width=BAR_WIDTH))
    figures = live_figures(profiler.stats(), mark)
    lines.add_row(Text(f"batch {drawn:,} of {steps:,}, {figures}", no_wrap=True))
    return lines


def _opened(target: str, settings: Mapping[str, Any]) -> bf.DataLoader:
    """A loader over shards."""
    if target.endswith(".py") or Path(target).name in ("python", "python3", "torchrun"):
        raise PlanError(
            f"{target} is a program, no token shards; to profile it, put -- before the command: "
            "brimful profile -- python train.py"
        )
    how = dict(settings)
    source = Source(target, *(how.pop(name, None) for name in ("format", "dtype", "eos")))
    try:
        corpus = source.open()
    except FileNotFoundError as error:
        if error.filename is None:  # the message says more than that the system knows no such name
            raise
        raise FileNotFoundError(
            f"{target}: there is no such file or folder, seen from {os.getcwd()}; TARGET is token "
            "shards (a file, a folder or a glob) or module:function, which returns a loader"
        ) from None
    return bf.DataLoader(corpus, **{**SHARDS, **how})


def _called(target: str) -> Iterable[Any]:
    """What module:function returns; modules of the working folder can be imported."""
    module_name, _, path = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # something that the module imports
        raise FileNotFoundError(
            f"{target}: there is no module {error.name} in {os.getcwd()} or on Python's path"
        ) from None
    for name in path.split("."):
        if not hasattr(found, name):
            raise PlanError(f"{target}: {module_name} has no {path}")
        found = getattr(found, name)
    loader: Iterable[Any] = found
    if callable(found):
        try:
            inspect.signature(found).bind()
        except ValueError:  # it does not tell
            pass
        except TypeError as error:
            raise PlanError(
                f"{target} cannot be called without arguments ({error}); name a function that can"
            ) from None
        loader = found()
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise PlanError(
            f"{target} returned {type(loader).__name__}, which cannot be iterated; expected a "
            "loader, or anything else that gives batches"
        )
    return loader
