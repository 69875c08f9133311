"""The timeline of a native loader: its records, by the numbers that its steps had then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brimful import _core
from brimful._core import PlanError
from brimful.profiling.notes import Notes
from brimful.profiling.timeline import Timeline
from brimful.profiling.timeline_rows import rows_of_records
from brimful.records import BatchRecord

if TYPE_CHECKING:
    from brimful.loader import DataLoader


class Numberings:
    """What numbered the steps of a loader's batches: a state that is loaded may bring another."""

    def __init__(self) -> None:
        self._earlier: list[tuple[int, _core.Steps]] = []  # and the first batch that is not of it

    def change(self, delivered: int, steps: _core.Steps) -> None:
        """From now on another one numbers steps; `steps` did so up to that many batches."""
        if delivered > (self._earlier[-1][0] if self._earlier else 0):
            self._earlier.append((delivered, steps))

    def number(self, record: BatchRecord, newest: _core.Steps) -> int | None:
        """Of the record's step in the run; None where the numbering does not reach back so far."""
        steps = next((s for until, s in self._earlier if record.number < until), newest)
        try:
            return steps.before(record.epoch) + record.step
        except PlanError:
            return None


def timeline_of(loader: DataLoader, notes: Notes) -> Timeline:
    """The timeline as it stands."""
    found = loader.records()
    number = loader._numberings.number
    rows = rows_of_records(found, lambda record: number(record, loader._steps), notes.read())
    return Timeline(rows, records=found, documents=loader.documents)
