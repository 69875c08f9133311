"""The DATA argument of the commands: shards, with what their names do not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import brimful as bf


@dataclass(frozen=True)
class Source:
    """Where the tokens are and how to read them, as given on the command line."""

    data: str
    format: str | None = None
    dtype: str | None = None
    eos: int | None = None

    def open(self) -> bf.Corpus:
        """Maps and checks the files; errors as in `brimful.open`."""
        format = cast(Any, self.format)  # `brimful.open` says which names there are
        return bf.open(self.data, format=format, dtype=self.dtype, eos=self.eos)
