"""What `brimful profile` shows while it measures: one line of figures, and a bar of the stall."""

from __future__ import annotations

from collections.abc import Sequence

from brimful.cli.text import brief
from brimful.profiling.figures import ProfileStats

STALL_WIDTH = 10


def live_figures(stats: ProfileStats, mark: str = "█") -> str:
    """ "1.23 M tokens/s, 63.1 % full, stall ███....... 31 %"; `mark` draws the bar."""
    parts = []
    seconds = stats.stall_seconds + stats.step_seconds + stats.first_batch_seconds
    if stats.tokens is not None and seconds:
        parts.append(f"{brief(stats.tokens / seconds)} tokens/s")
    elif seconds:
        parts.append(f"{stats.batches / seconds:.1f} batches/s")
    if stats.utilization is not None:
        parts.append(f"{100 * stats.utilization:.1f} % full")
    share = stats.stall_fraction or 0.0
    full = round(STALL_WIDTH * share)
    parts.append(f"stall {mark * full}{'.' * (STALL_WIDTH - full)} {100 * share:.0f} %")
    return ", ".join(parts)


def live_line(processes: Sequence[ProfileStats], mark: str = "█") -> str:
    """The same for processes that run side by side, by the one that has drawn most."""
    longest = max(processes, key=lambda stats: stats.batches)
    several = f" in {len(processes)} loops" if len(processes) > 1 else ""
    return f"brimful: batch {longest.batches:,}{several}, {live_figures(longest, mark)}"
