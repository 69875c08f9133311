"""What pytest-benchmark does not print of the packers: ratios of time, bins and memory, by set."""

from collections import defaultdict
from typing import Any


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    sets: dict[str, list[Any]] = defaultdict(list)
    for benchmark in config._benchmarksession.benchmarks:
        if "bins_over_lower_bound" in benchmark.extra_info:
            sets[benchmark.group].append(benchmark)
    for name, benchmarks in sets.items():
        terminalreporter.write_line("")
        for line in table(name, sorted(benchmarks, key=lambda b: b.stats.median)):
            terminalreporter.write_line(line)


def table(name: str, benchmarks: list[Any]) -> list[str]:
    """Markdown: one row a packer, the quickest first."""
    yardstick = next((b.stats.median for b in benchmarks if is_yardstick(b)), None)
    lines = [
        f"| {name} | time | ratio | utilization | bins / lower bound | memory |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for b in benchmarks:
        info = b.extra_info
        ratio = "" if yardstick is None else f"{b.stats.median / yardstick:.2f}"
        lines.append(
            f"| {packer(b)} | {1e3 * b.stats.median:,.2f} ms | {ratio} "
            f"| {100 * info['utilization']:.3f} % | {info['bins_over_lower_bound']:.5f} "
            f"| {info['peak_bytes'] / 2**20:,.1f} MiB |"
        )
    return lines


def is_yardstick(benchmark: Any) -> bool:
    return bool(benchmark.params.get("strategy") == "best_fit_decreasing")


def packer(benchmark: Any) -> str:
    strategy = benchmark.params.get("strategy")
    return f"brimful {strategy}" if strategy else benchmark.params["rival"].name
