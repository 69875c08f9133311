"""Writes shards: folders of Megatron `.bin`/`.idx` pairs with a `manifest.json`.

Nothing has its final name before everything is on the disk, and the manifest gets its name last.
So a folder with a manifest is complete, one with temporaries and no manifest is not, and no other
state is left behind by an exception or a killed process.
"""

from __future__ import annotations

import dataclasses
import json
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError
from brimful.corpus import Corpus
from brimful.extras import require
from brimful.memory import document_of
from brimful.merge import common_tokenizer, runs_of, tokenizers_of
from brimful.runs import Items, Run, copy_run, join_runs, run_of_documents
from brimful.shard_file import ShardFile
from brimful.shard_folder import ShardFolder
from brimful.shard_layout import Manifest, Shard, disk_dtype
from brimful.tokens import first_outside, integer_array, loss_mask_array

MAX_SHARD_BYTES = 4 << 30
# Small runs are gathered up to so many tokens or documents: a write costs more than a copy.
_GATHER = 1 << 16


class ShardWriter:
    """Writes a folder of shards. Use it in a `with` block, or call `close`.

        with bf.ShardWriter("shards", dtype="uint16") as writer:
            for tokens in documents:
                writer.add(tokens)

    Leaving the block puts all files in place at once; an exception in it removes what was written.
    Memory stays at a few MiB whatever is written. One thread at a time.

    Args:
        path: a folder. It is made where it is not there; one with shards in it is refused.
        dtype: of the tokens on disk: uint8, int8, uint16, int16, int32 or int64. Tokens that do not
            fit are refused. (Megatron's format knows no uint32.)
        max_shard_bytes: a new shard begins where a document would make the `.bin` longer than this.
            A document is never divided among shards: one that is longer has a shard of its own.
        tokenizer: what made the tokens, for the manifest: a dict that JSON can hold.
        provenance: where they come from, likewise. May be set on the writer until it is closed.

    Raises:
        FileExistsError: the folder holds shards already, or another writer is at work in it.
        FormatError: the dtype is none that tokens have on disk.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: npt.DTypeLike = "uint16",
        max_shard_bytes: int = MAX_SHARD_BYTES,
        tokenizer: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.dtype = disk_dtype(dtype)
        self.tokenizer = tokenizer
        self.provenance = provenance
        self.num_documents = 0
        self.num_tokens = 0
        info = np.iinfo(self.dtype)
        self._low, self._high = int(info.min), int(info.max)
        self._max_tokens = max_shard_bytes // np.dtype(self.dtype).itemsize
        if self._max_tokens < 1:
            raise FormatError(f"max_shard_bytes={max_shard_bytes}: a shard must hold a token")
        # What would fail at the end should fail now.
        json.dumps([tokenizer, provenance])
        require("xxhash", "prepare", "writing shards")
        self._gathered: list[Run] = []
        self._gathered_size = 0
        self._tokenizers: list[Mapping[str, Any] | None] = []  # of what was merged
        self._sources: list[Mapping[str, Any]] = []
        self._shard: ShardFile | None = None  # the one being filled
        self._finished: list[Shard] = []
        self._folder = ShardFolder(self.path)
        # Also when nobody closes the writer: as it is collected, or as the interpreter ends.
        self._abandon = weakref.finalize(self, self._folder.discard)

    def add(self, tokens: Any, loss_mask: Any = None) -> None:
        """Append a document.

        Args:
            tokens: integers [n], n >= 0: a list, an array of any integer dtype or a torch tensor.
                Or a dict of `input_ids` and, if wanted, `labels` or `loss_mask`, as `open` takes
                them in lists.
            loss_mask: bool or 0 and 1 [n]; 0 is a token that gets no loss. None is 1 everywhere.
                Not with a dict, which holds its own.

        Raises:
            FormatError: a token does not fit the dtype, or the mask does not fit the tokens. The
                document is not added then, and the writer may go on.
        """
        self._check_open()
        where = f"document {self.num_documents}"
        if isinstance(tokens, Mapping):
            if loss_mask is not None:
                raise FormatError(f"{where}: a dict holds its own loss_mask; leave the other out")
            document = document_of(tokens, None, where)
            array, mask = document.tokens, document.mask
        else:
            array = integer_array(tokens, where)
            mask = None if loss_mask is None else loss_mask_array(loss_mask, array.size, where)
        self._add(run_of_documents(array, np.array([array.size]), mask))

    def add_batch(self, tokens: Any, lengths: Any, loss_mask: Any = None) -> None:
        """Append documents that lie end to end: faster than `add` where they are short.

        Args:
            tokens: integers [sum of lengths].
            lengths: integers [documents].
            loss_mask: bool or 0 and 1 [sum of lengths], or None.

        Raises:
            FormatError: as `add`; none of the documents is added then.
        """
        self._check_open()
        where = f"documents from {self.num_documents}"
        array = integer_array(tokens, where)
        sizes = integer_array(lengths, f"{where}: lengths")
        if first_outside(sizes, 0, array.size) is not None or sizes.sum() != array.size:
            raise FormatError(
                f"{where}: lengths sum to {sizes.sum()}, smallest {sizes.min(initial=0)}; expected "
                f"{array.size}, the number of tokens, and none below 0"
            )
        sizes = sizes.astype(np.int64)
        mask = None if loss_mask is None else loss_mask_array(loss_mask, array.size, where)
        self._add(run_of_documents(array, sizes, mask))

    def extend(self, corpus: Corpus) -> None:
        """Append all documents of a corpus, in its order, with their loss masks.

        Documents of several sequences keep them. Tokens are copied as they lie where the dtypes
        agree, else converted. The manifest lists the sources of the corpus, and keeps the tokenizer
        that the manifests of all that is merged name.

        Raises:
            FormatError: a token does not fit the dtype; the writer gives up then. Or the corpus
                comes from another tokenizer than what is there; nothing is added then.
            ReadError: a file of the corpus was cut short. The writer gives up then.
        """
        self._check_open()
        if not isinstance(corpus, Corpus):
            raise TypeError(
                f"extend takes a Corpus, which brimful.open makes, not {type(corpus).__name__}"
            )
        tokenizers = [*self._tokenizers, *tokenizers_of(corpus)]
        if self.tokenizer is None:
            common_tokenizer(tokenizers)
        self._tokenizers = tokenizers
        first = self.num_documents
        try:
            for run in runs_of(corpus):
                self._take(run)
        except BaseException as error:
            self._abandon()
            if isinstance(error, FormatError):
                text = f"{error} (the corpus begins at document {first})"
                raise FormatError(text) from None
            raise
        self._sources += [dataclasses.asdict(info) for info in corpus.info]

    def close(self) -> None:
        """Finish: everything reaches the disk, then gets its final name. Twice does no harm."""
        if self._folder.published:
            return
        self._check_open()
        try:
            self._flush()
            self._finish_shard()
            self._folder.publish(
                Manifest(
                    folder=self.path,
                    dtype=self.dtype,
                    shards=tuple(self._finished),
                    brimful=_version(),
                    tokenizer=self.tokenizer or common_tokenizer(self._tokenizers),
                    provenance=self.provenance,
                    sources=tuple(self._sources),
                )
            )
        finally:
            self._abandon()

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._abandon()

    def _check_open(self) -> None:
        if not self._abandon.alive:
            state = "closed" if self._folder.published else "given up after an error"
            raise ValueError(f"{self.path}: this writer is {state}; make another one")

    def _add(self, run: Run) -> None:
        self._take(run)
        if None not in self._tokenizers:
            self._tokenizers.append(None)  # nothing tells what made these

    def _take(self, run: Run) -> None:
        """Check a run, then write it, or gather it if it is small."""
        self._check_range(run.tokens, run.token_ends)
        if self._gathered and (self._gathered[0].loss_mask is None) != (run.loss_mask is None):
            self._flush()
        if max(run.tokens.size, run.num_documents) >= _GATHER:
            self._flush()
            self._write(run)
        else:
            # A copy, because the caller may use its arrays again.
            self._gathered.append(copy_run(run, self.dtype))
            self._gathered_size += max(run.tokens.size, run.num_documents)
        self.num_documents += run.num_documents
        self.num_tokens += run.tokens.size
        if self._gathered_size >= _GATHER:
            self._flush()

    def _check_range(self, tokens: Items, ends: npt.NDArray[np.int64]) -> None:
        """`ends`, in tokens, are those of documents; the first is the next of this writer."""
        if np.can_cast(tokens.dtype, self.dtype, "safe"):
            return
        position = first_outside(tokens, self._low, self._high)
        if position is not None:
            local = int(np.searchsorted(ends, position, "right"))
            first = int(ends[local - 1]) if local else 0
            raise FormatError(
                f"document {self.num_documents + local}: token {position - first} is "
                f"{tokens[position : position + 1][0]}, which {self.dtype} cannot hold "
                f"({self._low} to {self._high}); choose a wider dtype"
            )

    def _flush(self) -> None:
        """Write what was gathered; either all of it has masks or nothing has."""
        if self._gathered:
            run = join_runs(self._gathered)
            self._gathered.clear()
            self._gathered_size = 0
            self._write(run)

    def _write(self, run: Run) -> None:
        """Divide a run among shards. Whatever fails here ends the writer."""
        try:
            start = 0
            while start < run.num_documents:
                start = self._fill_shard(run, start)
        except BaseException:
            self._abandon()
            raise

    def _fill_shard(self, run: Run, start: int) -> int:
        """Write the documents from `start` that have room in the shard; returns the next."""
        if self._shard is None:
            self._shard = self._folder.new_shard(self.dtype)
        written = int(run.token_ends[start - 1]) if start else 0
        room = self._max_tokens - self._shard.tokens
        stop = int(np.searchsorted(run.token_ends, written + room, "right"))
        if self._shard.documents == 0:
            stop = max(stop, start + 1)  # longer than a shard may be: it has one of its own
        stop = max(start, stop)
        self._shard.append(run, start, stop)
        if stop < run.num_documents:
            self._finish_shard()
        return stop

    def _finish_shard(self) -> None:
        if self._shard is not None:
            self._finished.append(self._shard.finish())
            self._shard = None


def _version() -> str:
    from brimful import __version__

    return __version__
