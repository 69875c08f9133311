"""What each thread of a native loader spent the time of a profile on."""

from __future__ import annotations

from brimful.profiling.figures import ProfileStats
from brimful.profiling.report.elements import Bar, Html, bar_list, legend, section
from brimful.wording import duration, percent

_KINDS = (
    ("plan", "collate", "planning"),
    ("read", "blocked", "reading files"),
    ("fill", "run", "filling columns"),
    ("backpressure", "first", "backpressure: waiting for a slot, batches being ready"),
)


def by_thread(stats: ProfileStats) -> Html:
    """Nothing for loaders whose threads are not brimful's."""
    if not stats.threads or stats.wall_seconds <= 0:
        return Html("")
    bars = []
    for number, times in enumerate(stats.threads):
        spent = {name: getattr(times, name) for name, _, _ in _KINDS}
        scale = max(stats.wall_seconds, sum(spent.values()))
        parts = [
            (spent[name] / scale, colour, f"{words}: {duration(spent[name])}")
            for name, colour, words in _KINDS
        ]
        working = sum(spent.values()) - spent["backpressure"]
        note = ", ".join(
            f"{name} {duration(seconds)}" for name, seconds in spent.items() if seconds
        )
        rest = 1 - sum(share for share, _, _ in parts)
        bars.append(
            Bar(
                f"thread {number}",
                f"{percent(working / scale)} at work",
                [*parts, (rest, "track", "neither")],
                note,
            )
        )
    lead = "Of the wall time. Threads that mostly wait for a slot have time to spare."
    keys = [(colour, words) for _, colour, words in _KINDS]
    return section(
        "Threads", lead, bar_list(bars), legend([*keys, ("track", "neither")]), wide=False
    )
