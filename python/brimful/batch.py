"""A batch: a mapping of per-token columns, with what kernels and losses need beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful.mask_views import MaskViews
from brimful.varlen_views import VarlenViews


class Batch(VarlenViews, MaskViews):
    """One micro-batch of one rank.

    A mapping whose keys are the columns asked for by `fields=`: torch tensors (numpy arrays where
    torch is not installed) of shape `[batch_size, seq_len]` ("rows") or `[1, total]` ("varlen"),
    int64, document_ids int32, loss_weights float32. They are views of the loader's memory, which
    is used again once the last of them is gone; keep them as long as you like.

    Attributes:
        cu_seqlens: int32 `[segments + 1]`, where each segment begins in the flattened batch; the
            last is the number of slots. A row's start is always one, and a row's unused end (its
            tail) is a segment of its own. Under `align=` a segment takes in the gap behind its
            tokens; under `max_segments=` the last entry is repeated up to a fixed number.
        cu_seqlens_host: the same as a numpy array in host memory, wherever the batch is.
        epoch: the epoch it belongs to.
        step: number of its optimizer step in the run, from 0 through all epochs. Asking for it
            counts the epochs before where a loop left one early.
        micro_batch: its number in the step.
        num_segments: segments, tails included.
        max_seqlen: slots of the longest segment.
        num_tokens: tokens without gaps, tails and bad documents; 0 marks a batch that teaches
            nothing: a dummy row, or nothing but bad documents.
        num_items: labels other than -100 in this batch.
        num_items_step: the same for all micro-batches of the step on this rank, as planned: labels
            of documents that turn out to be bad count.
        num_items_step_global: and over all ranks, without communication.
        attention_work: sum of squared `lengths` without tails and bad documents: what exact
            attention costs, where `num_tokens` stands for everything else.
        lengths: int64 numpy `[segments]`, real tokens of each segment; of a tail, its slots.
        documents: int64 numpy `[segments]`, document numbers in the corpus, -1 for a tail or a bad
            document.
        starts: int64 numpy `[segments]`, place of the segment's first token in its document.
        document_labels: of `brimful.flatten`: a label for each of its documents, or None.
        empty_documents: documents without a token that `brimful.flatten` passed over.
        cp_size, cp_rank: into how many shares of a context-parallel group the columns are cut, and
            which of them this is. Everything else speaks of the whole batch.
        cp_split: what they are cut by, every "document" or every "sequence"; None: uncut.
    """

    __slots__ = (
        "_columns",
        "_step",
        "_steps",
        "attention_work",
        "cp_rank",
        "cp_size",
        "cp_split",
        "cu_seqlens",
        "cu_seqlens_host",
        "document_labels",
        "documents",
        "empty_documents",
        "epoch",
        "lengths",
        "max_seqlen",
        "micro_batch",
        "num_items",
        "num_items_step",
        "num_items_step_global",
        "num_tokens",
        "starts",
    )

    def __init__(
        self,
        columns: dict[str, Any],
        *,
        cu_seqlens: Any,
        cu_seqlens_host: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        max_seqlen: int,
        num_tokens: int,
        num_items: int,
        num_items_step: int,
        num_items_step_global: int,
        epoch: int,
        step: int,
        micro_batch: int,
        steps: _core.Steps | int,
        attention_work: int,
        cp_size: int = 1,
        cp_rank: int = 0,
        cp_split: str | None = None,
        document_labels: Any = None,
        empty_documents: int = 0,
    ) -> None:
        self._columns = columns
        self.cu_seqlens = cu_seqlens
        self.cu_seqlens_host = cu_seqlens_host
        self.lengths = lengths
        self.documents = documents
        self.starts = starts
        self.max_seqlen = max_seqlen
        self.num_tokens = num_tokens
        self.num_items = num_items
        self.num_items_step = num_items_step
        self.num_items_step_global = num_items_step_global
        self.attention_work = attention_work
        self.cp_size = cp_size
        self.cp_rank = cp_rank
        self.cp_split = cp_split
        self.document_labels = document_labels
        self.empty_documents = empty_documents
        self.epoch = epoch
        self.micro_batch = micro_batch
        self._step = step  # in its epoch
        self._steps = steps  # what counts the steps before the epoch, or their number

    @property
    def step(self) -> int:
        """Number of its optimizer step in the run."""
        return self._steps_before() + self._step

    def _steps_before(self) -> int:
        return self._steps if isinstance(self._steps, int) else self._steps.before(self.epoch)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """For a copy or another process: the number of its step goes along, not what counts it."""
        slots = {name: getattr(self, name) for name in self.__slots__}
        return None, slots | {"_steps": self._steps_before()}

    @property
    def num_segments(self) -> int:
        """Segments of the flattened batch, tails included."""
        return len(self.documents)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(
                f"{name!r} is not in this batch, which has {', '.join(self._columns)}; "
                f"ask for it with fields="
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(column.shape)}" for name, column in self.items())
        return (
            f"Batch({shapes}; {self.num_segments} segments, {self.num_tokens} tokens, "
            f"{self.num_items} with a label)"
        )

    def _with_tensors(self, convert: Any) -> Batch:
        if isinstance(self.cu_seqlens, np.ndarray):
            raise TypeError("this batch holds numpy arrays; install brimful[torch] to move it")
        return Batch(
            {name: convert(column) for name, column in self._columns.items()},
            cu_seqlens=convert(self.cu_seqlens),
            cu_seqlens_host=self.cu_seqlens_host,
            lengths=self.lengths,
            documents=self.documents,
            starts=self.starts,
            max_seqlen=self.max_seqlen,
            num_tokens=self.num_tokens,
            num_items=self.num_items,
            num_items_step=self.num_items_step,
            num_items_step_global=self.num_items_step_global,
            epoch=self.epoch,
            step=self._step,
            micro_batch=self.micro_batch,
            steps=self._steps,
            attention_work=self.attention_work,
            cp_size=self.cp_size,
            cp_rank=self.cp_rank,
            cp_split=self.cp_split,
            document_labels=(
                None if self.document_labels is None else convert(self.document_labels)
            ),
            empty_documents=self.empty_documents,
        )

    def to(self, device: Any, non_blocking: bool = False) -> Batch:
        """The same batch with its tensors on `device`. Needs torch."""
        return self._with_tensors(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """The same batch copied to page-locked memory of torch's own. Needs an accelerator."""
        return self._with_tensors(lambda tensor: tensor.pin_memory())
