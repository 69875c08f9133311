"""The corpus: documents of tokens under one numbering, as the loader sees them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful.mix_rule import MixRule
from brimful.wording import counted


@dataclass(frozen=True)
class SourceInfo:
    """How a source is stored. Several entries are joined with " + " where its files differ."""

    name: str
    format: str  # "megatron", "llm.c", "raw", "npy", "memory" or "arrow"
    dtype: str
    unit: str  # what counts as a document: "documents" or "sequences" of the index
    boundaries: str  # where the ends of documents come from
    loss_masks: str  # "none", "all", or "some" of its files
    documents: int
    tokens: int

    def size(self) -> str:
        """As text: "1,786 documents, 3,004,001 tokens"."""
        units = counted(self.documents, self.unit.removesuffix("s"), self.unit)
        return f"{units}, {counted(self.tokens, 'token')}"

    def __str__(self) -> str:
        masks = "" if self.loss_masks == "none" else f", loss masks on {self.loss_masks}"
        return (
            f"{self.name}: {self.size()} "
            f"({self.format}, {self.dtype}, boundaries from {self.boundaries}{masks})"
        )


def join_info(name: str, parts: Sequence[SourceInfo]) -> SourceInfo:
    """What is true of several files or sources taken as one."""

    def joined(values: Iterable[str]) -> str:
        return " + ".join(dict.fromkeys(values)) or "none"

    masks = {part.loss_masks for part in parts}
    return SourceInfo(
        name=name,
        format=joined(part.format for part in parts),
        dtype=joined(part.dtype for part in parts),
        unit=joined(part.unit for part in parts),
        boundaries=joined(part.boundaries for part in parts),
        loss_masks=masks.pop() if len(masks) == 1 else "some" if masks else "none",
        documents=sum(part.documents for part in parts),
        tokens=sum(part.tokens for part in parts),
    )


class Corpus:
    """Documents of one or more named sources. Made by `brimful.open` and `brimful.mix`.

    `corpus[i]` is document i: a read-only, one-dimensional numpy array in the dtype it is stored
    in, a view that copies nothing and keeps its file mapped. Negative numbers count from the end.
    Reading it after something cut its file short ends the process (SIGBUS), as with any mapped
    file: copy the array if files may change. Loaders are guarded, and raise ReadError instead.
    Nothing changes after construction, so a corpus may be used from any thread.
    """

    def __init__(
        self,
        native: _core.Corpus,
        parts: tuple[_core.Source, ...],
        info: tuple[SourceInfo, ...],
        rule: MixRule | None = None,
    ) -> None:
        self._native = native
        self._parts = parts
        self.info = info
        self.rule = rule
        self._keep: list[object] = []  # what must not go before the corpus: its temporary files
        self._made_by: Callable[[], Corpus] | None = None  # opens the same files again

    def __len__(self) -> int:
        return self._native.num_documents

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        i = operator.index(index)
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"document {i} of a corpus of {n}")
        return self._native.document(i % n)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self._native.document(i) for i in range(len(self)))

    @property
    def num_tokens(self) -> int:
        """Tokens of all documents."""
        return self._native.num_tokens

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, in the order of their documents."""
        return tuple(info.name for info in self.info)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Length of every document in tokens: int64 [documents], read-only."""
        lengths = self._native.lengths()
        lengths.setflags(write=False)
        return lengths

    def describe(self) -> str:
        """One line a source: its size, format, dtype, unit and where document ends come from."""
        return "\n".join(map(str, self.info))

    def __copy__(self) -> Corpus:
        return self

    def __deepcopy__(self, _: object) -> Corpus:
        return self

    def __reduce__(self) -> tuple[Callable[[], Corpus], tuple[()]]:
        if self._made_by is None:
            raise TypeError(
                "this corpus holds tokens in memory and cannot be pickled: write them to shards "
                "with brimful.ShardWriter, or give the loader the list or dataset itself"
            )
        return self._made_by, ()

    def __repr__(self) -> str:
        n = len(self.info)
        what = str(self.info[0]) if n == 1 else f"{n} sources"
        size = f"{counted(len(self), 'document')}, {counted(self.num_tokens, 'token')}"
        return f"<brimful.Corpus: {size}; {what}>"
