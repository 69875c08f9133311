"""The demo's corpus: the standard library of this machine's Python, tokenized; no download."""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import brimful as bf
from brimful.extras import require
from brimful.prepare import Prepared, prepare

ENCODING = "o200k_base"


@dataclass(frozen=True)
class Shards:
    """Shards of the standard library; counts[i] = occurrences of token i, int64 [vocabulary]."""

    root: Path
    corpus: bf.Corpus
    prepared: Prepared
    tokenizer: str
    counts: NDArray[np.int64]

    @property
    def num_bytes(self) -> int:
        """Of all files in the folder."""
        return sum(file.stat().st_size for file in self.prepared.folder.iterdir())


def standard_library() -> Path:
    """Where the source files of the standard library are."""
    return Path(sysconfig.get_paths()["stdlib"])


def source_files(root: Path) -> list[Path]:
    """The .py files under a folder, by path, without those of installed packages."""
    files = sorted(
        file
        for file in root.rglob("*.py")
        if not {"site-packages", "dist-packages"} & set(file.relative_to(root).parts)
        and file.is_file()
    )
    if not files:
        raise FileNotFoundError(f"no .py files under {root}: is the standard library zipped?")
    return files


def write_shards(root: Path, folder: Path, *, limit: int | None = None) -> Shards:
    """A document for each of the first `limit` files; what is not UTF-8 is skipped and counted."""
    bpe: Any = require("bpe_openai", "demo", "the demo's tokenizer")
    encoding = bpe.get_encoding(ENCODING)
    prepared = prepare(
        source_files(root)[:limit], folder, tokenizer=encoding, format="text", errors="skip"
    )
    corpus = bf.open(folder)
    counts = np.zeros(encoding.n_vocab, np.int64)
    for document in corpus:
        np.add.at(counts, document, 1)
    return Shards(root, corpus, prepared, f"{ENCODING} of bpe-openai {bpe.__version__}", counts)
