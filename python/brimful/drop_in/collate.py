"""A collate function of the user's on the native path: it gets the documents of a batch as a list.

What it gets are items of the kind that the dataset has (`items.py`), without padding; what it
returns is delivered. It runs in the thread that asks for batches, after brimful's threads have
read and packed.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError
from brimful.batch import Batch
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.drop_in.items import ItemForm
from brimful.torch_module import torch_if_installed


class Collator:
    """Makes of each batch what `function` makes of its documents.

    Args:
        function: the user's.
        form: of the items that it gets.
        corpus: whose loss masks are read, where items tell of them.
        pad_token_id: a rank without a row in the last batch gets one document of this one token,
            as its dummy row holds it: no label is lost or invented by it.
        pin: put what it returns into page-locked memory, as torch's loader does.
    """

    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        form: ItemForm,
        corpus: Corpus,
        *,
        pad_token_id: int,
        pin: bool,
    ) -> None:
        self._function = function
        self._form = form
        self._masks = LossMasks(corpus) if form.masked else None
        self._dummy = np.array([pad_token_id], np.int64)
        self._pin = pin

    def __call__(self, batch: Batch) -> Any:
        tokens = np.asarray(batch["input_ids"]).reshape(-1)
        begins = batch.cu_seqlens_host.tolist()
        items = []
        for begin, length, document, start in zip(
            begins,
            batch.lengths.tolist(),
            batch.documents.tolist(),
            batch.starts.tolist(),
            strict=False,  # cu_seqlens has one entry more, or some
        ):
            if document >= 0:  # else it is an unused end, or a bad document
                mask = None if self._masks is None else self._masks.read(document, start, length)
                items.append(self._form.make(tokens[begin : begin + length], mask))
        if not items:
            items.append(self._form.make(self._dummy.copy(), np.zeros(1, np.uint8)))
        try:
            made = self._function(items)
        except StopIteration as error:  # which would end the epoch, and nobody would see it
            raise RuntimeError("collate_fn raised StopIteration") from error
        if not self._pin:
            return made
        return torch_if_installed().utils.data._utils.pin_memory.pin_memory(made)


class LossMasks:
    """The loss masks of a corpus by document, read from where its tokens are."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus  # whose files stay as long as this does
        native = corpus._native
        counts = [native.source_documents(s) for s in range(native.num_sources)]
        self._source_begins = _begins(counts)
        self._sources = [
            (part.stores, _begins(map(len, part.stores)), part.rows) for part in corpus._parts
        ]

    def read(self, document: int, start: int, length: int) -> npt.NDArray[np.uint8] | None:
        """The mask of `length` tokens of a document from `start`; None where it has none."""
        # Lists and bisect: numpy takes several times as long for one number.
        source = bisect_right(self._source_begins, document) - 1
        stores, begins, rows = self._sources[source]
        number = document - self._source_begins[source]
        if rows is not None:
            number = int(rows[number])
        place = bisect_right(begins, number) - 1
        store = stores[place]
        if not store.has_loss_mask:
            return None
        begin, *_ = _core.read_structure(store, number - begins[place], 1)
        return _core.read_loss_mask(store, begin + start, length)


def _begins(counts: Iterable[int]) -> list[int]:
    """Where each of several stretches of these sizes begins, and where the last one ends."""
    return list(itertools.accumulate(counts, initial=0))


def check_collating(config: LoaderConfig) -> None:
    """Throws PlanError for settings under which there are no documents to give to a function."""
    if "input_ids" not in config.fields:
        raise PlanError(
            f"collate_fn gets documents, and fields is {config.fields!r}; leave fields out, for "
            "what collate_fn returns is delivered"
        )
    if config.device is not None or config.cp_size > 1:
        raise PlanError(
            f"collate_fn gets whole documents on the host: with device={config.device!r} and "
            f"cp_size={config.cp_size} there are none. Leave it out, or those"
        )


def has_loss_masks(corpus: Corpus) -> bool:
    """Whether any tokens of a corpus have loss masks."""
    return any(store.has_loss_mask for part in corpus._parts for store in part.stores)
