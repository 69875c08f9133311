"""`brimful prepare`: texts to shards, with a progress bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from brimful import prepare as core
from brimful.cli.text import brief, count, duration, make_console, print_filled, print_path
from brimful.wording import counted


def run(inputs: list[str], *, out: Path, **settings: Any) -> None:
    """Tokenizes the inputs into shards in `out`; for the settings see `brimful.prepare.prepare`."""
    for token in ("bos", "eos"):
        settings[token] = _token(settings[token])
    with _progress_bar(make_console(stderr=True)) as bar:
        task = bar.add_task("", total=None, tokens="")

        def show(progress: core.Progress) -> None:
            bar.update(
                task,
                completed=progress.bytes,
                total=progress.total_bytes,
                tokens=f"{brief(progress.tokens)} tokens",
            )

        done = core.prepare(inputs, out, progress=show, **settings)
    console = make_console()
    print_filled(
        console,
        f"{counted(done.documents, 'document')}, {counted(done.tokens, 'token')} ({done.dtype}) "
        f"from {done.bytes / 1e6:.1f} MB in {duration(done.seconds)}",
    )
    if done.skipped:
        print_path(console, f"{count(done.skipped)} skipped; the first: ", done.first_skipped)
    print_path(console, "shards in ", done.folder)


def _progress_bar(console: Console) -> Progress:
    """Gone when it is done; on stderr, so that what is printed can be piped."""
    return Progress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[tokens]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _token(given: str | None) -> int | str | None:
    """An id where it is a number, else the text of a token."""
    return int(given) if given is not None and given.isdecimal() else given
