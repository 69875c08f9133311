"""Documents in batches: read in order, encoded on threads, handed on in the order of reading."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError
from brimful.prepare.encoders import Encoder, Ids
from brimful.prepare.inputs import Input
from brimful.prepare.readers import Item, Reader

_CHARACTERS = 1 << 20
_DOCUMENTS = 1 << 12


@dataclass
class Batch:
    """Documents that are encoded in one go, and how far their reader was after them."""

    items: list[Item] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)  # the input of each document
    bytes_read: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Encoded:
    batch: Batch
    tokens: npt.NDArray[Any]  # of all documents, end to end
    lengths: npt.NDArray[np.int64]


@dataclass
class Tally:
    """What was found in one input. `xxh3` is of its bytes on disk."""

    input: Input
    bytes: int = 0
    xxh3: str = ""
    documents: int = 0
    tokens: int = 0
    skipped: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.input.path),
            "format": self.input.format,
            "bytes": self.bytes,
            "xxh3": self.xxh3,
            "documents": self.documents,
            "tokens": self.tokens,
            "skipped": self.skipped,
        }


class Reading:
    """Reads all inputs, and counts what each of them held."""

    def __init__(self, inputs: list[Input], text_field: str, *, skip: bool) -> None:
        self.tallies = [Tally(input) for input in inputs]
        self.skipped = 0
        self.first_skipped: str | None = None
        self._field = text_field
        self._skip = skip

    def batches(self) -> Iterator[Batch]:
        """Raises FormatError for the first bad document, unless these are skipped."""
        batch, characters, finished = Batch(), 0, 0
        for number, tally in enumerate(self.tallies):
            reader = Reader(tally.input, self._field)
            for item in reader.items():
                if item.problem is not None:
                    self._refuse(item, tally)
                    continue
                batch.items.append(item)
                batch.sources.append(number)
                characters += len(item.text)
                if characters >= _CHARACTERS or len(batch.items) >= _DOCUMENTS:
                    batch.bytes_read = finished + reader.bytes_read
                    batch.skipped = self.skipped
                    yield batch
                    batch, characters = Batch(), 0
            tally.bytes, tally.xxh3 = reader.bytes_read, reader.xxh3
            finished += reader.bytes_read
        batch.bytes_read, batch.skipped = finished, self.skipped
        if batch.items:
            yield batch

    def _refuse(self, item: Item, tally: Tally) -> None:
        problem = f"{item.place}: {item.problem}"
        if not self._skip:
            raise FormatError(f'{problem}; mend it, or pass errors="skip" to leave such out')
        tally.skipped += 1
        self.skipped += 1
        self.first_skipped = self.first_skipped or problem

    def count(self, encoded: Encoded) -> None:
        """Add documents that were written to the tallies of their inputs."""
        for source, length in zip(encoded.batch.sources, encoded.lengths.tolist(), strict=True):
            self.tallies[source].documents += 1
            self.tallies[source].tokens += length


def encode_batches(
    batches: Iterator[Batch], encoder: Encoder, bos: int | None, eos: int | None, threads: int
) -> Generator[Encoded, None, None]:
    """Encode ahead on threads, a few batches more than there are threads."""
    workers = 1 if encoder.threads_itself else threads
    pending: deque[Future[Encoded]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="brimful-encode") as pool:
        try:
            for batch in batches:
                pending.append(pool.submit(_encode, batch, encoder, bos, eos))
                if len(pending) > workers + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _encode(batch: Batch, encoder: Encoder, bos: int | None, eos: int | None) -> Encoded:
    try:
        documents = encoder.encode([item.text for item in batch.items])
    except BaseException as error:  # a panic of a tokenizer in Rust is no Exception
        _blame(batch, encoder)
        raise FormatError(f"the tokenizer failed: {error!r}") from error
    before, after = (np.array([] if id is None else [id], np.int64) for id in (bos, eos))
    lengths = np.array([ids.size for ids in documents]) + before.size + after.size
    parts: list[Ids] = documents
    if before.size or after.size:
        parts = [part for ids in documents for part in (before, ids, after)]
    return Encoded(batch, np.concatenate(parts), lengths)


def _blame(batch: Batch, encoder: Encoder) -> None:
    """Raise for the document of a batch that the tokenizer cannot encode."""
    for item in batch.items:
        try:
            encoder.encode([item.text])
        except BaseException as error:
            raise FormatError(f"{item.place}: the tokenizer failed: {error!r}") from error
