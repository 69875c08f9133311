"""docs/loaders_measured.md, made from the figures of measure_loaders.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bench_cold
import bench_startup
import loader_table
import machine
from rivals.loader.job import TASKS
from rivals.loader.limit import LIMIT

HEAD = """\
# Loaders, measured

What one run of

```sh
pip install -c constraints.txt '.[bench]'
pip install -r bench/rivals/loader/requirements.txt  # and what that file says
python bench/measure_loaders.py
```

found. {machine} Rivals: {rivals}.

The corpus has {millions} million tokens of uint16 in documents of lognormal lengths (median 449,
mean about 980, at most 100,000), made from a seed; all of it is in the page cache. The limit is a
plain C loop in one thread that does the same job, with rows or documents in random order, into as
many buffers as brimful's ring has slots: no planning, no packing, no checks, no hand-over. Loaders
of a table took turns: {rounds} rounds of {seconds} s each, medians; the share of the limit is taken
within each round. Nothing is done with a batch. Epochs end and begin while the clock runs.

- *workers*: threads of brimful and of torchdata.nodes, processes of the others; 0 works in the loop
  itself.
- *CPU*: of the process and all that it started.
- *memory*: anonymous memory of these beyond `import torch`; the loader's own package counts.
- *first batch*: from constructing the loader over the stored corpus. Imports are not timed, and
  indexes that a rival keeps in files are there.
- Each rival reads the tokens in its own format and comes as near to the task as it can; notes say
  what it does otherwise.
- Nothing here is about remote storage or accelerators.
"""

STARTUP = """\
## Beside the batches

Of brimful alone, on the same corpus; medians of {repeats} processes. Batches are 8 x 4,096 with the
three default columns where nothing else is said. Memory is anonymous memory beyond `import torch`
and beyond the ring. `next()` is timed in a consumer that computes for 300 us between two calls, so
that the batch is ready.
"""


COLD = """\
## From the device

brimful alone over {size:.0f} MB in documents of 1 to 8 KiB that are not in the page cache: each of
{rounds} rounds rids it of the file before each measurement, and the last column says how much of it
mincore finds cached all the same. The plain reads do nothing else: one thread with pieces of 1 MiB
for documents in their order, as many threads as the loader has with preads of as many documents for
shuffled ones. What is below this machine may cache too.
"""


def page(figures: dict[str, Any]) -> str:
    loader, startup, cold = figures["loader"], figures["startup"], figures["cold"]
    parts: list[str] = []
    if "failure" in loader:
        parts += [f"Not measured: {loader['failure']}", ""]
    else:
        options = loader["options"]
        parts += HEAD.format(
            machine=machine.sentence(loader["machine"]),
            rivals=rivals(loader["rows"]),
            millions=options["millions"],
            rounds=options["rounds"],
            seconds=options["seconds"],
        ).splitlines()
        parts += ["", *summary(loader["rows"]), ""]
        for task in TASKS:
            parts += loader_table.table(task, loader["rows"])
    if "failure" in startup:
        parts += [f"Not measured: {startup['failure']}", ""]
    else:
        parts += STARTUP.format(repeats=startup["options"]["repeats"]).splitlines()
        parts += ["", *bench_startup.table(startup["probes"]), ""]
    if "failure" in cold:
        parts += [f"Not measured: {cold['failure']}", ""]
    else:
        size = 2 * bench_cold.TOKENS / 1e6
        parts += COLD.format(size=size, rounds=cold["options"]["rounds"]).splitlines()
        parts += ["", *bench_cold.table(cold["rows"]), ""]
    return "\n".join(parts).rstrip() + "\n"


def rivals(rows: Sequence[dict[str, Any]]) -> str:
    versions = {row["package"]: row["version"] for row in rows if row["version"] is not None}
    return ", ".join(
        f"{package} {version}"
        for package, version in versions.items()
        if package not in ("numpy", "torch", "brimful")
    )


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line a task: brimful, in the background and at its quickest, beside the best of others."""
    lines = ["| task | brimful, 2 threads | best background rival | brimful, best | best rival |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for task, about in TASKS.items():
        own = [
            row
            for row in rows
            if row["task"] == task and row["failure"] is None and row["name"] != LIMIT
        ]
        ours = [row for row in own if row["name"] == "brimful"]
        others = [row for row in own if row["package"] != "brimful"]
        cells = [
            best([row for row in ours if row["workers"] == 2]),
            best([row for row in others if row["workers"]]),
            best(ours),
            best(others),
        ]
        lines.append(f"| {about.title} | " + " | ".join(cells) + " |")
    return lines


def best(rows: Sequence[dict[str, Any]]) -> str:
    """The quickest of these, as a share of the limit."""
    shares = [row for row in rows if "of_limit" in row]
    if not shares:
        return "-"
    row = max(shares, key=lambda row: row["of_limit"])
    name = "" if row["package"] == "brimful" else f" ({row['name']})"
    return f"{100 * row['of_limit']:.1f} %{name}"
