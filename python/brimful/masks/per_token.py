"""What each slot of a batch says: places, document numbers, labels, weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from brimful import _core
from brimful.masks.arguments import (
    as_cu_seqlens,
    as_loss_mask,
    as_num_documents,
    as_segment_values,
    as_tokens,
    result_like,
    total_of,
)


class SegmentBounds(NamedTuple):
    """Of each slot's segment: where it is.

    Attributes:
        begin: int32 `[total]`: its first slot.
        end: int32 `[total]`: the slot behind its last one.
    """

    begin: Any
    end: Any


def position_ids(cu_seqlens: Any, *, starts: Any = None) -> Any:
    """Places of tokens in their segments, int64 `[total]`: 0, 1, ... in each.

    Gaps and tails count on as well. Restarted positions alone keep no documents apart: only a mask,
    or attention over variable lengths, does.

    Args:
        cu_seqlens: `[segments + 1]`.
        starts: `[segments]`, what each segment counts from, such as the place of its first token in
            its document (`batch.starts`). None: 0.
    """
    offsets = as_cu_seqlens(cu_seqlens)
    out = np.empty(total_of(offsets), np.int64)
    _core.write_position_ids(offsets, as_segment_values("starts", starts, offsets), out)
    return result_like(out, cu_seqlens, starts)


def document_ids(cu_seqlens: Any, *, num_documents: int | None = None, lengths: Any = None) -> Any:
    """The number of each slot's segment, int32 `[total]`, and -1 on gaps and tails.

    Args:
        cu_seqlens: `[segments + 1]`.
        num_documents: segments from this one on are tails. None: none is.
        lengths: `[segments]`, real tokens of each segment; slots behind them are gaps. 0 for a
            tail. None: all slots are real.

    Raises:
        PlanError: more documents than segments, lengths that their segments have no room for.
    """
    offsets = as_cu_seqlens(cu_seqlens)
    out = np.empty(total_of(offsets), np.int32)
    _core.write_document_ids(
        offsets,
        as_num_documents(num_documents, offsets),
        as_segment_values("lengths", lengths, offsets),
        out,
    )
    return result_like(out, cu_seqlens, lengths)


def seq_idx(cu_seqlens: Any) -> Any:
    """The number of each slot's segment, int32 `[1, total]`, a tail's too: what mamba,
    causal-conv1d and flash-linear-attention call seq_idx. Each call makes a new array, as caches
    that go by the identity of a tensor need it.
    """
    return document_ids(cu_seqlens)[None]


def segment_bounds(cu_seqlens: Any) -> SegmentBounds:
    """First slot of each slot's segment, and the slot behind its last: what a mask_mod of your own
    needs. Their shape goes by the slots alone, so that nothing is compiled anew when documents
    change: `(k <= q) & (k >= begin[q])` keeps documents apart with a single look-up.
    """
    offsets = as_cu_seqlens(cu_seqlens)
    begin, end = np.empty((2, total_of(offsets)), np.int32)
    _core.write_bounds(offsets, 1, None, begin, end, None)
    return SegmentBounds(result_like(begin, cu_seqlens), result_like(end, cu_seqlens))


def labels(
    ids: Any,
    cu_seqlens: Any,
    *,
    loss_mask: Any = None,
    num_documents: int | None = None,
    lengths: Any = None,
) -> Any:
    """Labels for models that shift them: the token itself, int64, and -100 on the first token of
    each segment, on gaps and tails, and where the loss mask is 0.

    Args:
        ids: tokens, `[total]` or any other shape with as many, such as `[1, total]`; any integers.
        cu_seqlens: `[segments + 1]`.
        loss_mask: as many of 0 and 1, or False and True; 1 where a token is trained. None: all are.
        num_documents, lengths: as for `document_ids`.

    Returns:
        int64 of the shape of `ids`.

    Raises:
        PlanError: ids or a loss mask of another size than cu_seqlens says, a loss mask with other
            values, and as for `document_ids`.
    """
    offsets = as_cu_seqlens(cu_seqlens)
    out = np.empty(total_of(offsets), np.int64)
    _core.write_labels(
        as_tokens("ids", ids, len(out)),
        offsets,
        as_loss_mask(loss_mask, offsets),
        as_num_documents(num_documents, offsets),
        as_segment_values("lengths", lengths, offsets),
        out,
    )
    return result_like(out.reshape(np.shape(ids)), ids, cu_seqlens)


def shift_labels(
    ids: Any,
    cu_seqlens: Any,
    *,
    loss_mask: Any = None,
    num_documents: int | None = None,
    lengths: Any = None,
    next_tokens: Any = None,
) -> Any:
    """Labels for losses that do not shift: the next token, int64, and -100 on the last token of
    each segment, on gaps and tails, and where the next token's loss mask is 0. Never give them to a
    model as `labels`: it would shift them once more.

    Args:
        ids, cu_seqlens, loss_mask, num_documents, lengths: as for `labels`.
        next_tokens: `[segments]`, what the last token of each segment predicts: the next token of a
            document that was cut there, else -100. None: nothing.
    """
    offsets = as_cu_seqlens(cu_seqlens)
    out = np.empty(total_of(offsets), np.int64)
    _core.write_shift_labels(
        as_tokens("ids", ids, len(out)),
        offsets,
        as_loss_mask(loss_mask, offsets),
        as_num_documents(num_documents, offsets),
        as_segment_values("lengths", lengths, offsets),
        as_segment_values("next_tokens", next_tokens, offsets),
        out,
    )
    return result_like(out.reshape(np.shape(ids)), ids, cu_seqlens)


def loss_weights(labels: Any, cu_seqlens: Any) -> Any:
    """Weights for a mean over sequences of means over their tokens, float32 of the shape of
    `labels`.

    Each of the n labelled slots of a segment weighs 1/n, every other slot 0: a segment without a
    label is no sequence. So the loss is `(weights * token_losses).sum() / weights.sum()`. Token
    losses must stand where their labels do: give `labels` and losses of a model that shifts, or
    `shift_labels` and losses that do not.

    Args:
        labels: of either kind, `[total]` or any other shape with as many; -100: no label.
        cu_seqlens: `[segments + 1]`.
    """
    offsets = as_cu_seqlens(cu_seqlens)
    given = as_tokens("labels", labels, total_of(offsets)).astype(np.int64, copy=False)
    out = np.empty(total_of(offsets), np.float32)
    _core.write_loss_weights(given, offsets, out)
    return result_like(out.reshape(np.shape(labels)), labels, cu_seqlens)
