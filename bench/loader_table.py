"""The figures of bench_loader.py as markdown, a table each task, the quickest loader first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rivals.loader.job import TASKS
from rivals.loader.limit import LIMIT

HEADS = (
    "workers",
    "M tokens/s",
    "of the limit",
    "CPU ns/token",
    "first batch",
    "memory",
)


def table(task: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    own = [row for row in rows if row["task"] == task]
    done = [row for row in own if row["failure"] is None]
    done.sort(key=lambda row: (row["name"] != LIMIT, -row["tokens_per_second"]))
    heads = [*HEADS, "utilization" if task == "packing" else "tokens a batch"]
    lines = [
        f"## {TASKS[task].title}",
        "",
        "| loader | " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * len(heads),
    ]
    remarks: list[str] = []
    for row in done:
        lines.append("| " + " | ".join([label(row, remarks), *cells(row)]) + " |")
    lines.append("")
    lines += [f"{i}. {remark}." for i, remark in enumerate(remarks, 1)]
    if remarks:
        lines.append("")
    failed = [row for row in own if row["failure"] is not None]
    for row in failed:
        lines += [f"No figures of {row['name']}, {row['workers']} workers: `{row['failure']}`", ""]
    return lines


def label(row: dict[str, Any], remarks: list[str]) -> str:
    if not row["remark"]:
        return str(row["name"])
    if row["remark"] not in remarks:
        remarks.append(row["remark"])
    return f"{row['name']} <sup>{remarks.index(row['remark']) + 1}</sup>"


def cells(row: dict[str, Any]) -> list[str]:
    limit = row["name"] == LIMIT
    share = row.get("of_limit")
    return [
        "-" if limit else str(row["workers"]),
        f"{row['tokens_per_second'] / 1e6:,.1f}",
        "-" if share is None else f"{100 * share:.1f} %",
        f"{row['cpu_ns_per_token']:.2f}",
        "-" if limit else f"{1e3 * row['first_batch_seconds']:,.0f} ms",
        "-" if limit else f"{row['anonymous_bytes'] / 2**20:,.0f} MiB",
        "-" if limit else fullness(row),
    ]


def fullness(row: dict[str, Any]) -> str:
    if row["task"] == "packing":
        return f"{100 * row['utilization']:.2f} %"
    return f"{row['tokens_a_batch']:,.0f}"
