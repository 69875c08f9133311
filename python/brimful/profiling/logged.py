"""What loaders on both paths have in common to look back with: `log()`, `timeline` and
`diagnose()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from brimful._core import PlanError
from brimful.profiling.notes import Notes
from brimful.profiling.timeline import Timeline

if TYPE_CHECKING:
    from brimful.profiling.diagnosis import Diagnosis
    from brimful.profiling.figures import Profile
    from brimful.profiling.ranks import RankReport


class Logged(ABC):
    """A loader that keeps its last steps, and what the user logs beside them."""

    _kept_notes: Notes

    @property
    def _notes(self) -> Notes:
        if "_kept_notes" not in self.__dict__:
            self._kept_notes = Notes()
        return self._kept_notes

    @abstractmethod
    def _delivered(self) -> int:
        """Batches so far."""

    @abstractmethod
    def _make_timeline(self, notes: Notes) -> Timeline:
        """The last steps, with these notes."""

    def log(self, *, step: int | None = None, **numbers: Any) -> None:
        """Notes numbers beside a step, for `timeline`: `loader.log(loss=loss, lr=lr)`.

        Nothing waits for a device: a tensor there is copied, and fetched when the timeline is.

        Args:
            step: `batch.step`, where what draws batches is ahead of the loop; by default the step
                of the batch that was delivered last.
            numbers: numbers, or tensors of one number, by name.

        Raises:
            PlanError: for what is no number, and before the first batch.
        """
        delivered = self._delivered()
        if delivered == 0:
            raise PlanError("log: no batch was delivered yet, so there is no step to log it at")
        self._notes.add(delivered - 1, step, numbers)

    @property
    def timeline(self) -> Timeline:
        """The last steps, up to now: what each held, what it waited for and what was logged.

        It is put together anew each time, from up to 10,000 batches, which takes some tenths of a
        second: look at it after a run, or now and then.
        """
        return self._make_timeline(self._notes)

    def diagnose(
        self,
        *,
        documents: int = 10_000,
        profile: Profile | None = None,
        ranks: RankReport | None = None,
    ) -> Diagnosis:
        """Questions about data, order, speed and state, with answers: see
        `brimful.profiling.diagnose.diagnose`. Takes no batch of this loader.
        """
        from brimful.profiling.diagnose import diagnose  # which needs loaders

        return diagnose(self, documents=documents, profile=profile, ranks=ranks)
