"""What pytest-benchmark does not print of plans: bins, utilization, memory, by set, in markdown."""

from collections import defaultdict
from typing import Any

YARDSTICK = "best_fit_decreasing"

# What benches may record in extra_info: how it is printed.
COLUMNS: dict[str, tuple[str, Any]] = {
    "utilization": ("utilization", "{:.3%}".format),
    "bins": ("bins", "{:,}".format),
    "lower_bound": ("lower bound", "{:,}".format),
    "bins_over_lower_bound": ("bins / bound", "{:.5f}".format),
    "best_fit_over_lower_bound": (f"{YARDSTICK} / bound", "{:.5f}".format),
    "peak_bytes": ("memory", lambda size: f"{size / 2**20:,.1f} MiB"),
    "random": ("imbalance, at random", "{:.3f}".format),
    "imbalance": ("imbalance", "{:.3f}".format),
}


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    groups: dict[str, list[Any]] = defaultdict(list)
    for benchmark in config._benchmarksession.benchmarks:
        if benchmark.extra_info.keys() & COLUMNS.keys():
            groups[benchmark.group].append(benchmark)
    for name, benchmarks in groups.items():
        terminalreporter.write_line("")
        for line in table(name, sorted(benchmarks, key=lambda b: b.stats.median)):
            terminalreporter.write_line(line)


def table(group: str, benchmarks: list[Any]) -> list[str]:
    """A row each, the quickest first; the ratio is that of its time to the yardstick's."""
    yardsticks = [b.stats.median for b in benchmarks if b.params.get("strategy") == YARDSTICK]
    yardstick = yardsticks[0] if len(yardsticks) == 1 else None
    columns = [key for key in COLUMNS if key in benchmarks[0].extra_info]
    heads = ["time", *(["ratio"] if yardstick else []), *(COLUMNS[key][0] for key in columns)]
    lines = [f"| {group} | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    for b in benchmarks:
        cells = [f"{1e3 * b.stats.median:,.2f} ms"]
        cells += [f"{b.stats.median / yardstick:.2f}"] if yardstick else []
        cells += [COLUMNS[key][1](b.extra_info[key]) for key in columns]
        lines.append(f"| {label(b)} | " + " | ".join(cells) + " |")
    return lines


def label(benchmark: Any) -> str:
    """What tells a row from the others of its group."""
    told_by_group = {"n", "time_limit"}
    values = [
        getattr(value, "name", value)
        for key, value in benchmark.params.items()
        if key not in told_by_group
    ]
    return ", ".join(str(value) for value in values if str(value) not in benchmark.group)
