"""Documents that a loader put aside while filling batches: which they are and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from brimful import _core
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
    """

    document: int
    source: str
    file: str
    reason: str
    place: int | None
    token: int | None

    def __str__(self) -> str:
        what = (
            "its loss mask leaves no label"
            if self.reason == "masked"
            else f"token {self.token} at place {self.place}"
        )
        return f"document {self.document} of source {self.source!r} ({self.file}): {what}"


def bad_documents(ledger: _core.Ledger, corpus: Corpus) -> list[BadDocument]:
    """The bad documents in a loader's ledger, in order of delivery."""
    return [
        BadDocument(
            document=document,
            source=source,
            file=file,
            reason="masked" if masked else "token",
            place=None if masked else place,
            token=None if masked else token,
        )
        for document, source, file, masked, place, token in ledger.bad_documents(corpus._native)
    ]
