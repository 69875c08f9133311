"""`brimful.flatten`: documents in memory, end to end in one varlen batch. What a collator does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brimful import _core
from brimful.batch import Batch
from brimful.config import LoaderConfig, checked_fields
from brimful.flat_parts import FlatParts
from brimful.masks.arguments import as_whole
from brimful.torch_module import torch_if_installed


def flatten(
    documents: Sequence[Any],
    loss_masks: Sequence[Any] | None = None,
    fields: Sequence[str] | None = None,
    *,
    document_labels: Sequence[Any] | None = None,
    lengths: str | None = None,
    pad_to_multiple_of: int = 1,
    pad_token_id: int = 0,
    align: int = 1,
    max_segments: int | None = None,
) -> Batch:
    """Documents end to end as one batch of layout "varlen", as loaders deliver them: for torch's
    DataLoader (`collate_fn=bf.flatten`), or wherever documents come one by one.

    Args:
        documents: token ids as arrays, tensors or lists of integers; or dicts of `input_ids` and,
            if wanted, one of `loss_mask` (0 or False: no loss) and `labels` (-100: no loss), a
            value a token and not shifted, and `label`, one number a document. A single number in
            `labels` is taken as `label`; an `attention_mask` must be all ones; what is None is
            as good as absent. Documents without a token are passed over and counted.
        loss_masks: a mask for each document, where documents are no dicts.
        fields: columns of the batch; None: `input_ids`, `labels` and `position_ids`.
        document_labels: one number a document, where documents are no dicts.
        lengths: documents are dicts of rows that were packed elsewhere, and under this key each has
            the lengths of the documents in its row. Without it a dict is one document.
        pad_to_multiple_of: slots of the batch are a multiple of it. What is added is a tail, a
            segment of its own: pad tokens, labels -100, document_ids -1, positions from 0 up.
        pad_token_id: what tails and alignment gaps hold.
        align: each document takes a multiple of so many slots; its gap ends its segment.
        max_segments: pads cu_seqlens to max_segments + 1 entries by repeating its last one, for
            kernels compiled for one shape. A tail counts as a segment.

    Returns:
        A Batch of shape [1, total]. `documents` are places in what was given; `document_labels` has
        a number for each document with tokens, in their order; `empty_documents` counts those
        without. num_items_step and num_items_step_global are of this batch alone: see
        `accumulate`.

    Raises:
        FormatError: what is no document of non-negative token ids, masks and labels that do not fit
            theirs, a key that nobody knows, a row without its lengths, no token at all.
        PlanError: more segments than max_segments, settings out of their range.
    """
    names = checked_fields(LoaderConfig.fields if fields is None else fields)
    parts = FlatParts(documents, loss_masks, document_labels, lengths)
    columns, cu_seqlens, real, numbers, starts, *counts = _core.flatten(
        parts.tokens,
        masks=parts.masks if any(mask is not None for mask in parts.masks) else [],
        labels=parts.labels if any(labels is not None for labels in parts.labels) else [],
        fields=names,
        pad_token_id=as_whole("pad_token_id", pad_token_id),
        multiple=as_whole("pad_to_multiple_of", pad_to_multiple_of),
        align=as_whole("align", align),
        max_segments=None if max_segments is None else as_whole("max_segments", max_segments),
    )
    given = numbers[numbers >= 0]
    labels = parts.labels_of(given)
    host = cu_seqlens
    torch = torch_if_installed()
    if torch is not None:
        columns = map(torch.from_numpy, columns)
        cu_seqlens = torch.from_numpy(cu_seqlens)
        labels = None if labels is None else torch.from_numpy(labels)
    max_seqlen, num_tokens, num_items, attention_work = counts
    return Batch(
        dict(zip(names, columns, strict=True)),
        cu_seqlens=cu_seqlens,
        cu_seqlens_host=host,
        lengths=real,
        documents=numbers,
        starts=starts,
        max_seqlen=max_seqlen,
        num_tokens=num_tokens,
        num_items=num_items,
        num_items_step=num_items,
        num_items_step_global=num_items,
        epoch=0,
        step=0,
        micro_batch=0,
        steps=0,
        attention_work=attention_work,
        document_labels=labels,
        empty_documents=len(parts.tokens) - len(given),
    )
