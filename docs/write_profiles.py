"""Writes docs/profiles_measured.md with its reports and pictures: `brimful profile` of torch's
DataLoader, which pads, and of brimful, over the same documents.

    python docs/write_profiles.py

The documents are the demo's: the standard library of this Python, tokenized. Pictures need
chromium. Give the machine to it alone, for figures of a quiet one.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from brimful.cli.bench import machine
from brimful.cli.stdlib import standard_library, write_shards
from brimful.wording import brief, count, duration, percent

DOCS = Path(__file__).parent
PAGE = DOCS / "profiles_measured.md"
STEP_MS = 20
NAMES = {"padded": "torch", "packed": "brimful"}  # functions of loaders.py, and of what

LOADERS = """\
import brimful as bf
from brimful.cli.padding import padded_loader


def padded():
    corpus = bf.open("shards/")
    return padded_loader(corpus, batch_size=8, seq_len=4096, num_workers=2, shuffle=True, seed=17)


def packed():
    return bf.DataLoader(
        "shards/",
        batch_size=8,
        seq_len=4096,
        packing="best_fit_decreasing",
        shuffle=True,
        seed=17,
        fields=("input_ids", "labels"),
    )
"""

TEXT = """\
# Profiles, measured

The question that [profiling](profiling.md) answers, asked of two loaders over the same documents:
torch's DataLoader, which pads, and brimful. What one run of `python docs/write_profiles.py` found
on {about}.

The documents are the demo's: {documents} files of Python's standard library, {tokens} tokens, in
`shards/` (`brimful demo --out shards/`). The loaders are functions of `loaders.py`:

```python
{loaders}```

`padded_loader` is what the demo races against: a document a row, long ones cut into several rows,
each batch as wide as its longest row, made by two worker processes. brimful fills rows of the same
length with two threads. A step only sleeps, {step_ms} ms for any batch: no model was run.

```sh
brimful profile loaders:padded --step-ms {step_ms} --html profile_torch.html
brimful profile loaders:packed --step-ms {step_ms} --html profile_brimful.html
```

| 200 batches of 8 rows | torch, padding | brimful |
| --- | ---: | ---: |
{rows}

A batch of torch's is as wide as its longest row, and so has fewer slots than 8 x 4,096.

## torch's DataLoader, padding

[![Each batch has a part of padding, and the loop waits between batches][torch]][torch report]

The [whole report][torch report] is one file that loads nothing. The terminal says at the end:

```text
{torch}
```

## brimful

[![Batches are full, and nearly nothing is waited for][brimful]][brimful report]

The [whole report][brimful report]. The terminal says at the end:

```text
{brimful}
```

[torch]: pictures/profile_torch.png
[torch report]: profile_torch.html
[brimful]: pictures/profile_brimful.png
[brimful report]: profile_brimful.html
"""


def profiled(folder: Path, function: str) -> tuple[str, list[dict[str, Any]]]:
    """Runs the command, its report goes to docs/: what it says at the end, and all batches."""
    lines = folder / "batches.jsonl"
    command = [sys.executable, "-m", "brimful.cli", "profile", f"loaders:{function}"]
    report = DOCS / f"profile_{NAMES[function]}.html"
    options = ["--step-ms", str(STEP_MS), "--html", str(report), "--jsonl", str(lines)]
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    verdict = done.stdout[done.stdout.index("verdict: ") : done.stdout.index("\nhtml ")]
    return verdict.strip(), [json.loads(line) for line in lines.read_text().splitlines()]


def photographed(name: str) -> None:
    """The first screen of a report."""
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    picture = f"--screenshot={DOCS / 'pictures' / f'profile_{name}.png'}"
    page = (DOCS / f"profile_{name}.html").as_uri()
    subprocess.run(
        [*chromium, "--window-size=1200,1340", picture, page], check=True, capture_output=True
    )


def figures(batches: list[dict[str, Any]]) -> dict[str, str]:
    """Rows of the table."""

    def total(key: str) -> float:
        return float(sum(batch[key] for batch in batches))

    seconds = total("wait") + total("step")
    stall = total("stall") / (total("stall") + total("step"))
    return {
        "tokens / slots": f"{brief(total('tokens'))} / {brief(total('slots'))}",
        "utilization": percent(total("tokens") / total("slots")),
        "stall": f"{duration(total('stall'))}, {percent(stall)}",
        "first batch": duration(total("wait") - total("stall")),
        "tokens a second": brief(total("tokens") / seconds),
    }


def surroundings() -> str:
    """What the figures depend on."""
    about = machine()
    linux = ".".join(platform.release().split(".")[:2])
    return (
        f"{about['cores']} cores ({about['machine']}), Linux {linux}, Python "
        f"{about['python']}, torch {about['torch']}, numpy {about['numpy']}, brimful "
        f"{about['brimful']}; load of the machine as the run began: {os.getloadavg()[0]:.1f}"
    )


def main() -> None:
    """Two runs, one after the other, then the page."""
    about = surroundings()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = write_shards(standard_library(), folder / "shards")
        (folder / "loaders.py").write_text(LOADERS, encoding="utf-8")
        verdicts, tables = {}, []
        for function, told in NAMES.items():
            verdicts[told], batches = profiled(folder, function)
            tables.append(figures(batches))
            photographed(told)
    padded, packed = tables
    PAGE.write_text(
        TEXT.format(
            about=about,
            documents=count(shards.prepared.documents),
            tokens=count(shards.prepared.tokens),
            loaders=LOADERS,
            step_ms=STEP_MS,
            rows="\n".join(f"| {key} | {padded[key]} | {packed[key]} |" for key in padded),
            **verdicts,
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
