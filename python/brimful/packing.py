"""Packing: document lengths in, bins of pieces out. Pure functions over numpy arrays.

The planning itself is native; this module holds the public names.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy.typing as npt

from brimful import _core, optimal
from brimful.pack_checks import (
    as_count,
    as_flag,
    as_groups,
    as_lengths,
    as_resource,
    as_seconds,
    as_seed,
    check_choice,
)
from brimful.pack_plan import PackPlan

Strategy: TypeAlias = Literal[
    "concat",
    "first_fit_decreasing",
    "best_fit_decreasing",
    "best_fit",
    "streaming",
    "optimal",
    "balanced",
    "pad",
]
Overlong: TypeAlias = Literal["split", "truncate", "drop", "error"]


def pack(
    lengths: npt.ArrayLike,
    capacity: int,
    *,
    strategy: Strategy = "best_fit_decreasing",
    overlong: Overlong = "split",
    buffer: int = 256,
    time_limit: float = 1.0,
    seed: int | None = None,
    max_segments: int | None = None,
    align: int = 1,
    min_piece: int = 1,
    start_token: bool = False,
    groups: npt.ArrayLike | None = None,
    resource: npt.ArrayLike | None = None,
    resource_capacity: int | None = None,
    bins: int | None = None,
    world_size: int = 1,
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
            - ``"optimal"``: linear programs over the lengths, for as long as ``time_limit`` allows
              and no longer than it takes to prove the number of bins least; never more bins than
              ``"best_fit_decreasing"``. Needs the extra ``optimal``.
            - ``"concat"``: end to end in the order given, cut wherever a bin is full
            - ``"balanced"``: ``bins`` bins, or as few as are found, of about the same attention
              work (the sum of squared lengths): costliest document first, into the bin of the least
              work that has room
            - ``"pad"``: each document (or piece of an overlong one) in a bin of its own

            Equally long documents go by number, and so do equally full bins.
        overlong: what becomes of a document longer than a bin takes; ``"concat"`` cuts anywhere
            and needs no rule.

            - ``"split"``: pieces of the capacity and a remainder, each packed like a document
            - ``"truncate"``: cut to the capacity, the end lost
            - ``"drop"``: left out
            - ``"error"``: PlanError
        buffer: documents that ``"streaming"`` chooses from, 1 to 2**16; the other strategies have
            no use for it. Order is kept: what is placed before a document was given less than
            3 * buffer after it, and fewer than ``buffer`` documents given before it are placed
            after it.
        time_limit: seconds that ``"optimal"`` takes at most, about, beyond those of
            ``"best_fit_decreasing"``; 0 gives that one's bins. How far it comes depends on the
            machine: only a plan that was finished before the limit is the same everywhere.
        seed: any integer of 64 bits; of equally long documents, a random one goes where the first
            would. The bins hold the same lengths with any seed or none, and other documents. The
            strategies that go by the order given, all but the decreasing ones, have no use for it.
        max_segments: most pieces in a bin; None: any number.
        align: each piece takes a multiple of ``align`` slots of its bin, padding behind it
            included. It must divide the capacity.
        min_piece: fewest tokens in a piece of a document that is cut, at most half of what a bin
            takes of a document. ``"split"``: a shorter remainder takes tokens from the piece before
            it; ``"concat"`` cuts earlier, or leaves the end of the bin empty. Nothing is lost.
        start_token: each piece takes one slot more, for a token in front of it, so that a bin takes
            ``capacity - 1`` tokens of one document. ``plan.lengths`` and ``plan.num_tokens`` go
            without it; ``plan.start_tokens`` counts them.
        groups: an id for each document, integers, shape [documents]. Documents with the same id
            must be neighbours; they stay whole and together in one bin, in order. A group that fits
            no bin is dropped whole with ``overlong="drop"``, and else a PlanError. ``"concat"``
            takes no groups. Order and ``buffer`` of ``"streaming"`` are in groups then.
        resource: a second amount of each document, for example its images: integers, not negative,
            shape [documents]. All pieces of a bin together have at most ``resource_capacity`` of
            it. Each piece of a document that is cut counts with the whole amount. A document with
            more than ``resource_capacity`` is dropped with ``overlong="drop"``, and else a
            PlanError.
        resource_capacity: most of the resource in a bin, from 0; given if ``resource`` is.
        bins: how many bins ``"balanced"`` makes, a multiple of ``world_size``; None: the least
            multiple that best fit decreasing finds enough. Bins are empty only where there are more
            of them than documents. The other strategies take neither.
        world_size: ranks that ``"balanced"`` makes equally many bins for.

    Returns:
        A PackPlan, the same for the same arguments, but for what ``time_limit`` says. Every token
        is in it once or counted in ``dropped_tokens``. It costs O(n log n) time at worst and O(n)
        memory, however large the capacity; ``"streaming"`` costs
        O(n * buffer * min(capacity, 2**16) / 64) time at worst, and looks at few of the buffer's
        documents where lengths are many.

    Raises:
        PlanError: negative lengths, more than one dimension of lengths, an unknown strategy or
            rule, a number outside its range, a constraint that does not fit the others, arrays that
            are not one number a document, an overlong document under ``overlong="error"``, a group
            or a resource that fits no bin, ``bins`` that nothing was found to fit into, or more
            pieces than memory holds.
        TypeError: arrays or numbers that are not integers.
        ModuleNotFoundError: ``"optimal"`` without the extra ``optimal``.

    Sources: best fit and first fit decreasing after Johnson et al., "Worst-case performance bounds
    for simple one-dimensional packing algorithms", SIAM J. Comput. 3 (1974); the lower bound is the
    larger of tokens / capacity and Martello and Toth's L2, "Knapsack Problems" (1990), section 8.3.
    ``"optimal"`` generates columns after Gilmore and Gomory, "A linear programming approach to the
    cutting-stock problem", Oper. Res. 9 (1961), and its bound is that of Farley, "A note on
    bounding a class of linear programming problems", Oper. Res. 38 (1990).
    ``"balanced"`` after Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math.
    17 (1969), with a capacity, and a search that divides the documents of two bins anew.
    """
    check_choice("strategy", strategy, get_args(Strategy))
    check_choice("overlong", overlong, get_args(Overlong))
    if (resource is None) != (resource_capacity is None):
        alone, missing = "resource", "resource_capacity"
        if resource is None:
            alone, missing = missing, alone
        raise _core.PlanError(f"{alone} is given without {missing}: give both, or neither")
    most = 2**63 - 1
    options = _core.PackOptions(
        # What "optimal" begins with.
        strategy="best_fit_decreasing" if strategy == "optimal" else strategy,
        overlong=overlong,
        buffer=as_count("buffer", buffer, "documents", 2**16),
        max_segments=None
        if max_segments is None
        else as_count("max_segments", max_segments, "pieces", most),
        align=as_count("align", align, "tokens", 2**31 - 1),
        min_piece=as_count("min_piece", min_piece, "tokens", 2**31 - 1),
        start_token=as_flag("start_token", start_token),
        seed=None if seed is None else as_seed(seed),
        groups=None if groups is None else as_groups(groups),
        resource=None if resource is None else as_resource(resource),
        resource_capacity=0
        if resource_capacity is None
        else as_count("resource_capacity", resource_capacity, "units", most, least=0),
        bins=None if bins is None else as_count("bins", bins, "bins", 2**31),
        world_size=as_count("world_size", world_size, "ranks", 2**31),
    )
    given = as_lengths(lengths)
    capacity = as_count("capacity", capacity, "tokens", 2**31 - 1)
    seconds = as_seconds("time_limit", time_limit)
    if strategy == "optimal":
        packing, lower_bound = optimal.pack(given, capacity, options, seconds)
    else:
        packing = _core.pack(given, capacity, options)
        lower_bound = _core.lower_bound_bins(packing, options)
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
        lower_bound=lower_bound,
        dropped_documents=packing.dropped_documents,
        dropped_tokens=packing.dropped_tokens,
        truncated_documents=packing.truncated_documents,
        split_documents=packing.split_documents,
        empty_documents=packing.empty_documents,
        start_tokens=len(packing.documents) if start_token else 0,
        align=options.align,
        min_piece=options.min_piece,
        max_segments=options.max_segments,
        has_groups=groups is not None,
        resource_capacity=resource_capacity,
    )
