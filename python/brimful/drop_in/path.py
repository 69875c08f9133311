"""Which loader serves a dataset, brimful's own or torch's: one rule, on types and names alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brimful.corpus import Corpus
from brimful.drop_in.torch_arguments import TORCH_NAMES


@dataclass(frozen=True)
class Path:
    """The loader that was chosen, and why.

    Attributes:
        native: brimful's own loader, which packs documents; else torch's, underneath.
        reason: a clause for people.
    """

    native: bool
    reason: str


def choose_path(dataset: Any, given: Mapping[str, Any]) -> Path:
    """The loader that serves `dataset`. Reads no data: what items hold never decides.

    1. A `Corpus`, a path and a pyarrow Table are token corpora: the native path.
    2. Anything else (a Hugging Face Dataset, lists, arrays, map-style and iterable datasets) takes
       the native path where a setting of brimful's own is given, which asks for packed tokens:
       any keyword that torch's DataLoader lacks, such as `seq_len`, and `shuffle="block"`.
    3. Else torch's own DataLoader runs it, as it always did.

    Args:
        dataset: the first argument of `brimful.DataLoader`.
        given: the other arguments that were given, by name.
    """
    if isinstance(dataset, Corpus | str | os.PathLike) or _is_table(dataset):
        return Path(True, f"{described(dataset)} is a token corpus")
    own = [name for name in given if name not in TORCH_NAMES]
    own += ['shuffle="block"'] if _is_block(given.get("shuffle")) else []
    if own:
        return Path(
            True,
            f"settings of brimful's own ({', '.join(own)}) ask for the tokens of "
            f"{described(dataset)}",
        )
    return Path(False, torch_reason(dataset))


def torch_reason(dataset: Any) -> str:
    """Why torch's path serves a dataset."""
    return (
        f"{described(dataset)} is no token corpus by its type, and no setting of brimful's own "
        f"(such as seq_len) asks for packed tokens"
    )


def described(dataset: Any) -> str:
    """What a dataset is, for messages: its type alone, for items may be many, or secret."""
    return f"the {type(dataset).__name__}"


def _is_table(dataset: Any) -> bool:
    """Told by names, so that nothing is imported to answer."""
    kind = type(dataset)
    return kind.__module__.split(".")[0] == "pyarrow" and kind.__name__ == "Table"


def _is_block(shuffle: Any) -> bool:
    return isinstance(shuffle, str) and shuffle == "block"
