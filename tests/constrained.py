"""The constraints of packing written out plainly: the units that rules leave, a textbook that looks
at every bin for each of them, and the laws that any plan keeps."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import brimful as bf
from brimful.packing import Overlong, PackPlan, Strategy
from test_packing import Piece, bins_of


@dataclass(frozen=True)
class Case:
    lengths: Sequence[int]
    capacity: int
    overlong: Overlong = "split"
    max_segments: int | None = None
    align: int = 1
    min_piece: int = 1
    start_token: bool = False
    groups: Sequence[int] | None = None
    resource: Sequence[int] | None = None
    resource_capacity: int | None = None

    def pack(self, strategy: Strategy, **others: Any) -> PackPlan:
        return bf.pack(strategy=strategy, **vars(self), **others)

    @property
    def payload(self) -> int:
        return self.capacity - self.start_token

    @property
    def most_pieces(self) -> int:
        return self.max_segments or sum(self.lengths)

    @property
    def most_resource(self) -> int:
        return self.resource_capacity or 0

    def size(self, length: int) -> int:
        return -(-(length + self.start_token) // self.align) * self.align

    def resource_of(self, document: int) -> int:
        return self.resource[document] if self.resource is not None else 0


@dataclass(frozen=True)
class Room:
    slots: int
    pieces: int
    resource: int

    def holds(self, need: "Room") -> bool:
        return (
            self.slots >= need.slots
            and self.pieces >= need.pieces
            and self.resource >= need.resource
        )

    def less(self, need: "Room") -> "Room":
        return Room(
            self.slots - need.slots, self.pieces - need.pieces, self.resource - need.resource
        )


def empty_bin(case: Case) -> Room:
    return Room(case.capacity, case.most_pieces, case.most_resource)


def room_of(unit: Sequence[Piece], case: Case) -> Room:
    return Room(
        sum(case.size(length) for _, _, length in unit),
        len(unit),
        sum(case.resource_of(document) for document, _, _ in unit),
    )


def cut(length: int, payload: int, min_piece: int) -> list[tuple[int, int]]:
    """Starts and lengths: full pieces, and a remainder that is not too short."""
    lengths = [payload] * (length // payload) + [length % payload] * (length % payload > 0)
    missing = min_piece - lengths[-1] if len(lengths) > 1 else 0
    if missing > 0:
        lengths[-2:] = [lengths[-2] - missing, lengths[-1] + missing]
    return list(zip(itertools.accumulate([0, *lengths[:-1]]), lengths, strict=True))


def units_of(case: Case) -> list[list[Piece]]:
    """What is placed as a whole, in the order given; without what is dropped."""
    documents = range(len(case.lengths))
    key = case.groups.__getitem__ if case.groups is not None else lambda document: document
    units: list[list[Piece]] = []
    for _, members in itertools.groupby(documents, key):
        group = [document for document in members if case.lengths[document]]
        if not group:
            continue
        if case.groups is not None:
            units.append([(document, 0, case.lengths[document]) for document in group])
            continue
        (document,) = group
        length = case.lengths[document]
        if length <= case.payload:
            units.append([(document, 0, length)])
        elif case.overlong == "split":
            units += [
                [(document, start, part)]
                for start, part in cut(length, case.payload, case.min_piece)
            ]
        elif case.overlong == "truncate":
            units.append([(document, 0, case.payload)])
    room = empty_bin(case)
    return [unit for unit in units if room.holds(room_of(unit, case))]


def textbook(case: Case, strategy: Strategy) -> list[list[Piece]]:
    """Looks at every bin for each unit: O(n^2), plain to see."""
    units = units_of(case)
    if strategy == "pad":
        return units
    if strategy != "best_fit":
        units.sort(key=lambda unit: -room_of(unit, case).slots)
    bins: list[list[Piece]] = []
    left: list[Room] = []
    for unit in units:
        need = room_of(unit, case)
        fitting = [b for b in range(len(bins)) if left[b].holds(need)]
        if not fitting:
            fitting = [len(bins)]
            bins.append([])
            left.append(empty_bin(case))
        b = (
            fitting[0]
            if strategy == "first_fit_decreasing"
            else min(fitting, key=lambda b: left[b].slots)
        )
        bins[b] += unit
        left[b] = left[b].less(need)
    return bins


def concatenated(case: Case) -> list[list[Piece]]:
    """End to end; each piece as long as the bin, the rest of the document and min_piece allow."""
    bins: list[list[Piece]] = [[]]
    left = empty_bin(case)
    for document, length in enumerate(case.lengths):
        resource = case.resource_of(document)
        start = 0
        while start < length and resource <= case.most_resource:
            rest = length - start
            most = min(case.payload, left.slots, rest - case.min_piece)
            parts = [rest] * (rest <= case.payload) + list(range(most, most - case.align - 2, -1))
            fitting = [
                part
                for part in parts
                if part == rest or part >= case.min_piece
                if left.holds(Room(case.size(part), 1, resource))
            ]
            if fitting:
                bins[-1].append((document, start, max(fitting)))
                left = left.less(Room(case.size(max(fitting)), 1, resource))
                start += max(fitting)
            if start < length or not fitting:
                bins.append([])
                left = empty_bin(case)
    return [pieces for pieces in bins if pieces]


def minimum_bins(units: list[list[Piece]], case: Case) -> int:
    """The least number of bins, by trying every way to put each unit."""

    def best(i: int, bins: tuple[Room, ...], limit: int) -> int:
        if len(bins) >= limit or i == len(units):
            return min(len(bins), limit)
        need = room_of(units[i], case)
        for b, left in enumerate(bins):
            if left.holds(need):
                limit = best(i + 1, (*bins[:b], left.less(need), *bins[b + 1 :]), limit)
        return best(i + 1, (*bins, empty_bin(case).less(need)), limit)

    return best(0, (), len(units))


def check_constraints(plan: PackPlan, case: Case) -> None:
    """Everything that holds for any plan, whatever the strategy."""
    bins = bins_of(plan)
    for pieces in bins:
        assert pieces or plan.strategy == "balanced"
        assert empty_bin(case).holds(room_of(pieces, case))
    by_document = sorted(piece for pieces in bins for piece in pieces)
    placed: dict[int, list[tuple[int, int]]] = {}
    for document, start, length in by_document:
        placed.setdefault(document, []).append((start, length))
    for document, pieces in placed.items():
        ends = [start + length for start, length in pieces]
        assert [start for start, _ in pieces] == [0, *ends[:-1]]
        if len(pieces) > 1 or ends[-1] < case.lengths[document]:
            assert all(length >= case.min_piece for _, length in pieces)
    kept = {document: sum(length for _, length in pieces) for document, pieces in placed.items()}
    full = {document: length for document, length in enumerate(case.lengths) if length}
    cuts_end = plan.strategy != "concat" and case.overlong == "truncate"
    for document, length in full.items():
        if kept.get(document) == length:
            continue
        if document not in kept:
            assert case.overlong == "drop"
        else:
            assert cuts_end
            assert length > case.payload == kept[document]

    if case.groups is not None:
        for _, members in itertools.groupby(range(len(case.lengths)), case.groups.__getitem__):
            group = [(d, 0, case.lengths[d]) for d in members if case.lengths[d]]
            if not group or group[0][0] not in kept:
                assert not any(document in kept for document, _, _ in group)
                continue
            (home,) = [pieces for pieces in bins if group[0] in pieces]
            first = home.index(group[0])
            assert home[first : first + len(group)] == group

    assert plan.num_tokens == sum(kept.values())
    assert plan.dropped_tokens == sum(full.values()) - plan.num_tokens
    assert plan.dropped_documents == len(full) - len(kept)
    assert plan.empty_documents == len(case.lengths) - len(full)
    assert plan.split_documents == sum(len(pieces) > 1 for pieces in placed.values())
    assert plan.truncated_documents == sum(kept[d] < full[d] for d in kept)
    assert plan.start_tokens == case.start_token * len(plan.documents)
    assert plan.lengths.dtype == np.int32
    assert plan.documents.dtype == plan.starts.dtype == plan.bin_offsets.dtype == np.int64
    assert plan.lower_bound <= plan.num_bins
    slots = sum(case.size(length) for _, _, length in by_document)
    assert plan.lower_bound >= -(-slots // case.capacity)
    if case.max_segments:
        assert plan.lower_bound >= -(-len(plan.documents) // case.max_segments)
    if case.resource_capacity:
        resource = sum(case.resource_of(document) for document, _, _ in by_document)
        assert plan.lower_bound >= -(-resource // case.resource_capacity)


@st.composite
def constrained(
    draw: st.DrawFn, *, groups: bool = True, resource: bool = True, most: int = 40
) -> Case:
    """Few distinct lengths, so that many units are alike, and any constraints together."""
    align = draw(st.sampled_from([1, 1, 2, 3, 8]))
    start_token = draw(st.booleans())
    capacity = align * draw(st.sampled_from([1, 2, 3, 5, 9, 30, 100_000]))
    if capacity <= start_token:
        capacity += align
    payload = capacity - start_token
    longest = draw(st.sampled_from([capacity // 4 + 1, capacity // 2 + 1, capacity, 3 * capacity]))
    distinct = draw(st.lists(st.integers(0, longest), min_size=1, max_size=8))
    lengths = draw(st.lists(st.sampled_from(distinct), max_size=most))
    n = len(lengths)
    overlong: Overlong = draw(st.sampled_from(["split", "truncate", "drop"]))
    ids = amounts = resource_capacity = None
    if groups and draw(st.booleans()):
        overlong = "drop"
        sizes = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
        names = draw(st.permutations(range(-n, n)))
        ids = [name for name, size in zip(names, sizes, strict=False) for _ in range(size)][:n]
    if resource and draw(st.booleans()):
        overlong = "drop"
        resource_capacity = draw(st.sampled_from([0, 1, 4, 10, 2**63 - 1]))
        few = draw(st.lists(st.integers(0, resource_capacity), min_size=1, max_size=4))
        over = min(resource_capacity + 1, 2**63 - 1)
        amounts = draw(st.lists(st.sampled_from([*few, 0, over]), min_size=n, max_size=n))
    return Case(
        lengths,
        capacity,
        overlong,
        max_segments=draw(st.sampled_from([None, 1, 2, 3, 7, 1000])),
        align=align,
        min_piece=draw(st.integers(1, (payload + 1) // 2)),
        start_token=start_token,
        groups=ids,
        resource=amounts,
        resource_capacity=resource_capacity,
    )
