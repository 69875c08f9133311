"""What becomes of a profile: text or JSON, and the files that were asked for."""

from __future__ import annotations

import dataclasses
import json as jsonlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from brimful.cli.profile_text import print_profile
from brimful.cli.text import make_console, print_filled, print_path
from brimful.profiling.diagnosis import Diagnosis
from brimful.profiling.figures import Profile
from brimful.profiling.ranks import RankReport
from brimful.profiling.report.sources import Sources
from brimful.profiling.timeline import Timeline
from brimful.profiling.verdict import verdict


@dataclass(frozen=True)
class Told:
    """One loop over a loader, with what else is known: the loader's answers, its sources and its
    last steps, and the same loop in all ranks.
    """

    title: str
    profile: Profile
    diagnosis: Diagnosis | None = None
    sources: Sources | None = None
    timeline: Timeline | None = None
    ranks: RankReport | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "title": self.title,
            "loader": dataclasses.asdict(self.profile.facts),
            "stats": self.profile.stats.as_dict(),
            "verdict": dataclasses.asdict(verdict(self.profile)),
            **({} if self.diagnosis is None else {"diagnosis": self.diagnosis.as_dict()}),
            **({} if self.ranks is None else {"ranks": self.ranks.as_dict()}),
        }


def check_outputs(outputs: Mapping[str, Path | None]) -> None:
    """Before anything is drawn: a file that cannot be written later is an error now.

    Raises:
        FileNotFoundError: its folder is not there.
    """
    for path in outputs.values():
        if path is not None and not path.absolute().parent.is_dir():
            raise FileNotFoundError(f"{path}: there is no folder {path.absolute().parent}")


def write_outputs(
    console: Console, told: Told, outputs: Mapping[str, Path | None], *, of: str = ""
) -> None:
    """Writes the files and names them; `of` says which of several loops they are of."""
    for kind, path in outputs.items():
        if path is not None:
            _WRITERS[kind](told, path)
            print_path(console, f"{kind:<8}", path, of)


def print_told(console: Console, told: Told) -> None:
    """Figures, answers and the verdict; and how ranks compare."""
    print_profile(console, told.title, told.profile, verdict(told.profile), told.diagnosis)
    if told.ranks is not None:
        print_filled(console, f"\nranks: {told.ranks.summary()}. {told.ranks.advice}".rstrip())


def print_json(told: Sequence[Told], **more: Any) -> None:
    """One object on stdout: the loops, and what else there is to say."""
    print(jsonlib.dumps(_report(told, more), indent=2, default=str))


def print_json_line(told: Sequence[Told], **more: Any) -> None:
    """The same as the last line of a stdout that others wrote to, whether or not they ended theirs:
    `tail -n 1` takes it out.
    """
    print(f"\n{jsonlib.dumps(_report(told, more), default=str)}")


def _report(told: Sequence[Told], more: Mapping[str, Any]) -> dict[str, Any]:
    return {**more, "loops": [one.as_dict() for one in told]}


def tell(told: Told, *, outputs: Mapping[str, Path | None], json: bool) -> None:
    """The end of a profile of one loader."""
    console = make_console(stderr=json)  # stdout is the JSON's alone
    if json:
        print_json([told])
    else:
        print_told(console, told)
        if any(outputs.values()):
            console.print()
    write_outputs(console, told, outputs)


def _write_html(told: Told, path: Path) -> None:
    from brimful.profiling.report import write_html

    write_html(
        path,
        told.profile,
        verdict(told.profile),
        sources=told.sources,
        diagnosis=told.diagnosis,
        ranks=told.ranks,
        timeline=told.timeline,
        title=told.title,
    )


def _write_trace(told: Told, path: Path) -> None:
    from brimful.profiling.trace import write_trace

    write_trace(told.profile, path)


def _write_jsonl(told: Told, path: Path) -> None:
    from brimful.profiling.jsonl import write_jsonl

    write_jsonl(told.profile, path)


_WRITERS = {"html": _write_html, "trace": _write_trace, "jsonl": _write_jsonl}
