"""`brimful profile -- PROGRAM`: runs a program of the user's as it is, and tells how its loops over
loaders were fed.

Its Python processes are watched from inside (`profiling/inject_site`), and write what they see
into a folder of ours. All of our own text goes to stderr: stdout is the program's.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

import brimful
from brimful import FormatError
from brimful.cli.bottom_line import BottomLine
from brimful.cli.child import run_child
from brimful.cli.profile_live import live_line
from brimful.cli.profile_output import (
    Told,
    check_outputs,
    print_json_line,
    print_told,
    write_outputs,
)
from brimful.cli.text import (
    block,
    count,
    duration,
    make_console,
    percent,
    print_filled,
    print_table,
)
from brimful.profiling.figures import ProfileStats
from brimful.profiling.ranks import RankReport, rank_figures
from brimful.profiling.saved import SavedProfile, read_saved

TICK_SECONDS = 0.25
_NOTHING_SEEN = (
    "brimful: no loop over a DataLoader of torch, torchdata or brimful was seen in the program, so "
    "there is nothing to tell. Loops over other iterables are profiled by brimful.profile(...) in "
    "the program; a Python that is told to ignore PYTHONPATH (-I, -E) is not watched."
)


def run_program(command: Sequence[str], *, outputs: Mapping[str, Path | None], json: bool) -> int:
    """Runs it, tells what was seen on stderr (JSON as one line of stdout, behind the program's own
    output), and returns the program's exit code.
    """
    check_outputs(outputs)
    with tempfile.TemporaryDirectory(prefix="brimful-profile-") as name:
        code = watched_run(command, Path(name))
        try:
            _tell(command, Path(name), code, outputs=outputs, json=json)
        except (FormatError, OSError) as error:  # the exit code stays the program's
            print_filled(make_console(stderr=True), f"brimful: {error}")
    return code


def _tell(
    command: Sequence[str],
    folder: Path,
    code: int,
    *,
    outputs: Mapping[str, Path | None],
    json: bool,
) -> None:
    """What was seen in the program, which has ended with this code."""
    console = make_console(stderr=True)
    for note in folder.glob("*.failed"):
        why = note.read_text(encoding="utf-8").strip()
        print_filled(console, f"brimful: a process was not watched to its end: {why}")
    loops = read_saved(folder)
    for process in sorted({loop.process for loop in loops if not loop.finished}):
        print_filled(
            console,
            f"brimful: process {process} ended without a word, by a signal or os._exit: its sums "
            "may be half a second old, and its batches one by one are not known",
        )
    told = [
        Told(_title(loop, loops), loop.profile, ranks=_ranks(loop.place, loops)) for loop in loops
    ]
    if json:
        print_json_line(told, command=list(command), exit_code=code)
    if not told:
        if not json:
            print_filled(console, _NOTHING_SEEN)
        return
    chosen = told[_most_lost(loops)]
    several = len(told) > 1
    if not json:
        console.print()
        if several:
            _print_loops(console, told)
            console.print()
        print_told(console, chosen)
        if any(outputs.values()):
            console.print()
    write_outputs(console, chosen, outputs, of=f"  (of {chosen.title})" if several else "")


def _most_lost(loops: Sequence[SavedProfile]) -> int:
    """Which loop to tell about: where most was waited for, in the place that took longest."""
    seconds: dict[str, float] = {}
    for loop in loops:
        seconds[loop.place] = seconds.get(loop.place, 0.0) + loop.profile.stats.wall_seconds
    place = max(seconds, key=lambda name: seconds[name])
    of_place = [number for number, loop in enumerate(loops) if loop.place == place]
    return max(of_place, key=lambda number: loops[number].profile.stats.stall_seconds)


def _ranks(place: str, all_loops: Sequence[SavedProfile]) -> RankReport | None:
    """The ranks of one loop side by side, where all of a job have run here."""
    loops = [loop for loop in all_loops if loop.place == place]
    if len(loops) < 2 or [loop.rank for loop in loops] != list(range(len(loops))):
        return None
    return RankReport(ranks=tuple(rank_figures(loop.profile, loop.rank or 0) for loop in loops))


def _title(loop: SavedProfile, loops: Sequence[SavedProfile]) -> str:
    if loop.rank is not None:
        return f"{loop.place}, rank {loop.rank}"
    if len({other.process for other in loops}) > 1:
        return f"{loop.place}, process {loop.process}"
    return loop.place


def _print_loops(console: Console, told: Sequence[Told]) -> None:
    rows = []
    for one in told:
        stats = one.profile.stats
        rows.append(
            [
                one.title,
                count(stats.batches),
                duration(stats.wall_seconds),
                percent(stats.stall_fraction),
                percent(stats.utilization),
            ]
        )
    print_table(console, ["loop", "batches", "time", "stall", "utilization"], rows)


def watched_run(command: Sequence[str], folder: Path) -> int:
    """Runs the command, whose processes write into the folder, with a live display where there is a
    terminal; its exit code.
    """
    console = make_console(stderr=True)
    live = sys.stderr.isatty() and not console.is_dumb_terminal
    line = BottomLine(sys.stderr)
    mark = block(console)

    def show() -> None:
        stats = _stats_so_far(folder)
        with contextlib.suppress(OSError):  # the terminal has gone; the program may go on
            if stats:
                line.show(live_line(stats, mark))

    try:
        return run_child(
            command,
            environment(os.environ, folder),
            tick=show if live else lambda: None,
            seconds=TICK_SECONDS,
        )
    finally:
        with contextlib.suppress(OSError):
            line.close()


def _stats_so_far(folder: Path) -> list[ProfileStats]:
    try:
        return [saved.profile.stats for saved in read_saved(folder)]
    except FormatError:  # told at the end: the program goes on now
        return []


def environment(own: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The program's environment: ours, with the folder and a first entry of PYTHONPATH."""
    site = Path(brimful.__file__).parent / "profiling" / "inject_site"
    paths = [str(site), *filter(None, [own.get("PYTHONPATH")])]
    return {**own, "PYTHONPATH": os.pathsep.join(paths), "BRIMFUL_PROFILE_FOLDER": str(folder)}
