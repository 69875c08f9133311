"""Files that a profile is written to, by the ending of their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brimful._core import PlanError
from brimful.profiling.figures import Profile
from brimful.profiling.jsonl import write_jsonl
from brimful.profiling.logged import Logged
from brimful.profiling.trace import write_trace
from brimful.profiling.verdict import verdict

Writer = Callable[[Profile, Any], None]  # the second is the loader


def writer_of(path: str | os.PathLike[str]) -> Writer:
    """What writes a profile there.

    Raises:
        PlanError: an ending that stands for nothing.
        FileNotFoundError: its folder is not there.
    """
    target = Path(path)
    writers: dict[str, Writer] = {
        ".html": lambda profile, loader: _write_page(profile, loader, target),
        ".json": lambda profile, loader: write_trace(profile, target),
        ".jsonl": lambda profile, loader: write_jsonl(profile, target),
    }
    if target.suffix not in writers:
        raise PlanError(
            f"{target}: a profile is written as a page (.html), a trace (.json) or lines (.jsonl)"
        )
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {target.absolute().parent}")
    return writers[target.suffix]


def _write_page(profile: Profile, loader: Any, target: Path) -> None:
    from brimful.profiling.report.page import write_html  # its drawings are wanted here alone
    from brimful.profiling.report.sources import sources_of

    timeline = loader.timeline if isinstance(loader, Logged) else None
    found = sources_of(loader)
    write_html(target, profile, verdict(profile), sources=found, timeline=timeline)
