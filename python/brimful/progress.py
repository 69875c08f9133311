"""A progress bar over one epoch of a loader, and a line about it at the end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brimful.loader import DataLoader
from brimful.telemetry import Stats

if TYPE_CHECKING:
    from brimful.drop_in.torch_loader import TorchLoader
    from brimful.drop_in.torch_stats import TorchStats

_REFRESH_SECONDS = 0.1  # of the figures; stats() lists every source, which is too much a batch


def progress(loader: DataLoader | TorchLoader, *, description: str | None = None) -> Iterator[Any]:
    """Iterate over one epoch of `loader` under a live progress bar (tokens/s, utilization, stall;
    batches/s where torch's DataLoader serves the dataset).

    Prints `Stats.summary()` of the epoch when it ends, also after a `break`: one line, which a
    terminal breaks between figures only. Where stderr is no terminal that line is all. Needs
    `rich`, which the extra `prepare` brings.
    """
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"brimful.progress needs {error.name}: pip install 'brimful[prepare]'"
        ) from error
    console = Console(stderr=True)
    before: Any = loader.stats()
    name = description or _name(loader)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    try:
        with bar:
            task = bar.add_task(description or "epoch", total=_length(loader), figures="")
            shown = 0.0
            for batch in loader:
                yield batch
                bar.advance(task)
                if (bar.tasks[0].elapsed or 0) - shown < _REFRESH_SECONDS:
                    continue
                shown = bar.tasks[0].elapsed or 0
                seconds = bar.tasks[0].elapsed or 1e-9
                bar.update(task, figures=_figures(loader.stats().since(before), seconds))
    finally:
        line = f"{name}: {loader.stats().since(before).summary()}"
        if console.is_terminal:
            line = _broken_between_figures(line, console.width)
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _name(loader: DataLoader | TorchLoader) -> str:
    if loader.explain().path == "torch":  # which does not number them
        return "epoch"
    return f"epoch {loader.state_dict()['cursor']['epoch']}"


def _length(loader: DataLoader | TorchLoader) -> int | None:
    """Batches of the epoch; None where an iterable dataset does not tell."""
    try:
        return len(loader)
    except TypeError:
        return None


def _figures(so_far: Stats | TorchStats, seconds: float) -> str:
    stall = f"stall {100 * so_far.stall_seconds / seconds:.0f} %"
    if not isinstance(so_far, Stats):
        return f"{so_far.batches / seconds:.1f} batches/s, {stall}"
    full = 100 * (so_far.utilization or 0)
    return f"{so_far.tokens / seconds / 1e6:.2f} M tokens/s, {full:.1f} % full, {stall}"


def _broken_between_figures(line: str, width: int) -> str:
    """Lines of `width` characters, broken behind ", " alone."""
    kept = line.replace(" ", "\u00a0").replace(",\u00a0", ", ")
    lines = textwrap.wrap(kept, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\u00a0", " ")
