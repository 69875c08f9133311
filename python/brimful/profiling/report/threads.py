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
    *workers, consumer = stats.threads
    makers = {f"thread {number}": times for number, times in enumerate(workers)}
    if not workers or consumer.fill:  # beside workers it makes batches at times
        makers["consumer"] = consumer
    for name, times in makers.items():
        spent = {kind: getattr(times, kind) for kind, _, _ in _KINDS}
        scale = max(stats.wall_seconds, sum(spent.values()))
        parts = [
            (spent[kind] / scale, colour, f"{words}: {duration(spent[kind])}")
            for kind, colour, words in _KINDS
        ]
        working = sum(spent.values()) - spent["backpressure"]
        note = ", ".join(
            f"{what} {duration(seconds)}" for what, seconds in spent.items() if seconds
        )
        rest = 1 - sum(share for share, _, _ in parts)
        bars.append(
            Bar(
                name,
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
