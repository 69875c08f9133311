"""A progress bar over one epoch of a loader, and a line about it at the end."""

from __future__ import annotations

from collections.abc import Iterator

from brimful.batch import Batch
from brimful.loader import DataLoader

_REFRESH_SECONDS = 0.1  # of the figures; stats() lists every source, which is too much a batch


def progress(loader: DataLoader, *, description: str | None = None) -> Iterator[Batch]:
    """Iterate over one epoch of `loader` under a live progress bar (tokens/s, utilization, stall).

    Prints `Stats.summary()` of the epoch when it ends, also after a `break`. Needs `rich`, which
    the extra `prepare` brings.
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
    before = loader.stats()
    epoch = loader.state_dict()["cursor"]["epoch"]
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    try:
        with bar:
            task = bar.add_task(description or "epoch", total=len(loader), figures="")
            shown = 0.0
            for batch in loader:
                yield batch
                bar.advance(task)
                if (bar.tasks[0].elapsed or 0) - shown < _REFRESH_SECONDS:
                    continue
                shown = bar.tasks[0].elapsed or 0
                so_far = loader.stats().since(before)
                seconds = bar.tasks[0].elapsed or 1e-9
                bar.update(
                    task,
                    figures=f"{so_far.tokens / seconds / 1e6:.2f} M tokens/s, "
                    f"{100 * (so_far.utilization or 0):.1f} % full, "
                    f"stall {100 * so_far.stall_seconds / seconds:.0f} %",
                )
    finally:
        console.print(
            f"{description or f'epoch {epoch}'}: {loader.stats().since(before).summary()}",
            highlight=False,
        )
