"""Packing: document lengths in, bins of pieces out. Pure functions over numpy arrays.

The planning itself is native; this module holds the public names and checks what numpy made of the
caller's lengths.
"""

from __future__ import annotations

import operator
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful.pack_plan import PackPlan

Strategy: TypeAlias = Literal[
    "concat", "first_fit_decreasing", "best_fit_decreasing", "best_fit", "streaming", "pad"
]
Overlong: TypeAlias = Literal["split", "truncate", "drop", "error"]


def pack(
    lengths: npt.ArrayLike,
    capacity: int,
    *,
    strategy: Strategy = "best_fit_decreasing",
    overlong: Overlong = "split",
    buffer: int = 256,
) -> PackPlan:
    """Packs documents into as few bins of ``capacity`` tokens as the strategy finds.

    Args:
        lengths: tokens of each document, shape [documents], any integer dtype. Documents of length
            0 are in no bin; ``empty_documents`` counts them.
        capacity: tokens a bin can hold, 1 to 2**31 - 1.
        strategy: how a bin is found for the next document.

            - ``"best_fit_decreasing"``: longest document first, into the fullest bin with room
            - ``"first_fit_decreasing"``: longest document first, into the first bin with room
            - ``"best_fit"``: in the order given, into the fullest bin with room
            - ``"streaming"``: the first document that waits, and those of the ``buffer`` first ones
              that fill the bin exactly, or as nearly as any of them do
            - ``"concat"``: end to end in the order given, cut wherever a bin is full
            - ``"pad"``: each document (or piece of an overlong one) in a bin of its own

            Equally long documents go by number, and so do equally full bins.
        overlong: what becomes of a document longer than the capacity; ``"concat"`` cuts anywhere
            and needs no rule.

            - ``"split"``: pieces of the capacity and a remainder, each packed like a document
            - ``"truncate"``: cut to the capacity, the end lost
            - ``"drop"``: left out
            - ``"error"``: PlanError
        buffer: documents that ``"streaming"`` chooses from, 1 to 2**16; the other strategies have
            no use for it. Order is kept: what is placed before a document was given less than
            3 * buffer after it, and fewer than ``buffer`` documents given before it are placed
            after it.

    Returns:
        A PackPlan, the same for the same arguments. Every token is in it once or counted in
        ``dropped_tokens``. It costs O(n log n) time at worst and O(n) memory, however large the
        capacity; ``"streaming"`` costs O(n * buffer * min(capacity, 2**16) / 64) time at worst, and
        looks at few of the buffer's documents where lengths are many.

    Raises:
        PlanError: negative lengths, more than one dimension of lengths, an unknown strategy or
            rule, a capacity or buffer outside its range, an overlong document under
            ``overlong="error"``, or more pieces than memory holds.
        TypeError: lengths, capacity or buffer that are not integers.

    Sources: best fit and first fit decreasing after Johnson et al., "Worst-case performance bounds
    for simple one-dimensional packing algorithms", SIAM J. Comput. 3 (1974); the lower bound is the
    larger of tokens / capacity and Martello and Toth's L2, "Knapsack Problems" (1990), section 8.3.
    """
    _check_choice("strategy", strategy, get_args(Strategy))
    _check_choice("overlong", overlong, get_args(Overlong))
    given = _as_lengths(lengths)
    packing = _core.pack(
        given,
        _as_count("capacity", capacity, "tokens", 2**31 - 1),
        strategy=strategy,
        overlong=overlong,
        buffer=_as_count("buffer", buffer, "documents", 2**16),
    )
    return PackPlan(
        strategy=strategy,
        overlong=overlong,
        capacity=packing.capacity,
        document_lengths=given,
        bin_offsets=packing.bin_offsets,
        documents=packing.documents,
        starts=packing.starts,
        lengths=packing.lengths,
        num_tokens=packing.tokens,
        lower_bound=_core.lower_bound_bins(packing.lengths, packing.capacity),
        dropped_documents=packing.dropped_documents,
        dropped_tokens=packing.dropped_tokens,
        truncated_documents=packing.truncated_documents,
        split_documents=packing.split_documents,
        empty_documents=packing.empty_documents,
    )


def _check_choice(name: str, given: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(given, str) or given not in choices:
        found = f'"{given}"' if isinstance(given, str) else repr(given)
        known = [f'"{choice}"' for choice in choices]
        raise _core.PlanError(
            f"{name}={found} is unknown: choose {', '.join(known[:-1])} or {known[-1]}"
        )


def _as_lengths(lengths: npt.ArrayLike) -> npt.NDArray[np.int64]:
    try:
        given = np.asarray(lengths)
    except ValueError as error:
        raise _core.PlanError(f"lengths is no array of one number a document: {error}") from error
    if given.ndim != 1:
        raise _core.PlanError(
            f"lengths has the shape {given.shape}; one number a document is expected, "
            f"so one dimension"
        )
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(
            f"lengths has the dtype {given.dtype}; integers are expected, as they count tokens"
        )
    if given.size and given.dtype == np.uint64 and given.max() > np.iinfo(np.int64).max:
        i = int(given.argmax())
        raise _core.PlanError(
            f"document {i} has a length of {given[i]} tokens; at most 2**63 - 1 can be counted"
        )
    # The plan keeps it: a view, so that the caller's own array can still be written to.
    kept = np.ascontiguousarray(given, np.int64).view()
    kept.flags.writeable = False
    return kept


def _as_count(name: str, value: int, unit: str, most: int) -> int:
    try:
        count = _index(value)
    except TypeError:
        raise TypeError(
            f"{name} is {value!r}; a whole number of {unit} is expected, 1 to {most}"
        ) from None
    # What fits the core's argument is judged there.
    if count.bit_length() > 63:
        raise _core.PlanError(f"{name} is {count} {unit}; it must be from 1 to {most}")
    return count


def _index(number: Any) -> int:
    """True is a whole number for Python, but no count."""
    if isinstance(number, bool):
        raise TypeError("a bool")
    return operator.index(number)
