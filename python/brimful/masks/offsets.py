"""cu_seqlens from document lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from brimful import _core
from brimful.masks.arguments import as_flag, as_numbers, as_whole, is_nested, result_like


def cu_seqlens(
    lengths: Any,
    *,
    total: int | None = None,
    max_segments: int | None = None,
    align: int = 1,
    keep_empty: bool = False,
) -> Any:
    """Where documents begin that stand end to end.

    Args:
        lengths: tokens of each document; or a list of such lists, one a row: rows stand end to end,
            and a row's start is always a boundary.
        total: slots, of each row where there are rows. What the documents leave over is a segment
            of its own, the tail; where nothing is left over there is none. None: no tail.
        max_segments: the last offset is repeated up to this many segments, tails counted, for
            graphs that want a fixed size. How many there are otherwise is `len(lengths)` without
            empty documents, and the tails. Without `total`, slots behind the last offset belong to
            no segment, and kernels leave their results unwritten: do not read them.
        align: each document takes a multiple of this many slots. Offsets are then physical: the
            gap belongs to its document's segment; hand the lengths to `labels` and `document_ids`.
        keep_empty: documents of no tokens become segments of no slots; else they are passed over.

    Returns:
        int32 `[segments + 1]`, or `[max_segments + 1]`.

    Raises:
        PlanError: negative lengths, documents longer together than `total`, more segments than
            `max_segments`, more slots than int32 counts.
    """
    rows = lengths if is_nested(lengths) else [lengths]
    each = [as_numbers("lengths", row) for row in rows]
    made = _core.make_cu_seqlens(
        np.concatenate([np.empty(0, np.int64), *each]),
        np.array([len(row) for row in each], np.int64),
        None if total is None else as_whole("total", total),
        None if max_segments is None else as_whole("max_segments", max_segments),
        as_whole("align", align),
        as_flag("keep_empty", keep_empty),
    )
    return result_like(made, lengths)
