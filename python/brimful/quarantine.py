"""Documents that a loader put aside while filling batches: which they are and what is wrong."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from brimful import _core
from brimful._core import PlanError
from brimful.corpus import Corpus


@dataclass(frozen=True, kw_only=True)
class BadDocument:
    """A document that cannot be trained on. Its pieces with bad tokens hold pad tokens instead.

    Attributes:
        document: its number in the corpus.
        source: the name of its source.
        file: the file or array that holds it.
        reason: "token" for one that is negative or not below `vocab_size`, "masked" for a loss
            mask that leaves no label.
        place: where in the document its first bad token is; None for "masked".
        token: that token; None for "masked".
        epoch, step: where in the run its place is; step is None where the steps of that epoch
            cannot be numbered any more.
    """

    document: int
    source: str
    file: str
    reason: str
    place: int | None
    token: int | None
    epoch: int
    step: int | None

    def __str__(self) -> str:
        what = (
            "its loss mask leaves no label"
            if self.reason == "masked"
            else f"token {self.token} at place {self.place}"
        )
        return f"document {self.document} of source {self.source!r} ({self.file}): {what}"


class Quarantine:
    """The bad documents of one loader, which keep the step numbers that they were first listed by.

    A change of the global batch numbers steps anew, so list them before it.
    """

    def __init__(self, ledger: _core.Ledger, corpus: Corpus) -> None:
        self._ledger = ledger
        self._corpus = corpus
        self._listed: list[BadDocument] = []
        self._warned = False

    def listed(self, steps: _core.Steps) -> list[BadDocument]:
        """All in the ledger, in order of delivery; new ones by the numbers of `steps`."""
        new = self._ledger.bad_documents(self._corpus._native, len(self._listed))
        self._listed += [
            BadDocument(
                document=document,
                source=source,
                file=file,
                reason="masked" if masked else "token",
                place=None if masked else place,
                token=None if masked else token,
                epoch=epoch,
                step=_number(steps, epoch, step),
            )
            for document, source, file, masked, place, token, epoch, step in new
        ]
        return list(self._listed)

    def warn_once(self, steps: _core.Steps) -> None:
        """Names the first document that was put aside; for the iterator to call."""
        if self._warned:
            return
        self._warned = True
        found = self.listed(steps)
        first = f", {found[0]}" if found else ""
        warnings.warn(
            f"a bad document was put aside{first}. Pad tokens without labels take its place; "
            f"loader.bad_documents lists such documents and stats() counts them. "
            f'bad_documents="error" stops at the first',
            stacklevel=3,
        )


def _number(steps: _core.Steps, epoch: int, step: int) -> int | None:
    try:
        return steps.before(epoch) + step
    except PlanError:
        return None
