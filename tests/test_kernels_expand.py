"""Kernel K1: a parcel expands into the columns that the loader writes, bit for bit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful import _core
from parcels import DTYPES, IGNORE, Parcel, check, expand, expected
from places import PLACES, Host

WIDTHS = (np.uint16, np.uint32, np.int64)
on_every_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)


@st.composite
def parcels(draw: st.DrawFn, multiple: int = 1, rows: int = 1) -> Parcel:
    """Equal rows of documents with and without gaps, empty segments, tails and bad pieces."""
    row = multiple * draw(st.sampled_from([1, 2, 5, 31, 40, 300]))
    cu, lengths, ids = [0], [], []
    for _ in range(rows):
        left, number = row, 0
        while left:
            slots = min(left, multiple * draw(st.sampled_from([200, 20, 3, 2, 1, 1, 0])))
            bad = draw(st.integers(0, 5)) == 0
            cu.append(cu[-1] + slots)
            lengths.append(slots - draw(st.integers(0, min(slots, multiple) // 2)))
            ids.append(-1 if bad else number)
            left, number = left - slots, number + 1
    padding = draw(st.sampled_from([0, 0, 3, 600]))  # to a fixed capacity
    cu += [cu[-1]] * padding
    lengths, ids = lengths + [0] * padding, ids + [-1] * padding
    random = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from(WIDTHS))
    many = min(np.iinfo(dtype).max, 2**40)
    starts = random.integers(0, 2**40, len(lengths)) if draw(st.booleans()) else None
    carried = random.integers(0, many, len(lengths), np.int64)
    carried[random.random(len(lengths)) < 0.5] = IGNORE
    return Parcel(
        cu_seqlens=np.array(cu),
        lengths=np.array(lengths),
        document_ids=np.array(ids),
        tokens=random.integers(0, many, cu[-1], dtype, endpoint=True),
        row=row,
        first_positions=starts,
        next_tokens=carried if draw(st.booleans()) else None,
        labelled=random.random(cu[-1]) < 0.7 if draw(st.booleans()) else None,
    )


@given(parcels(), st.booleans())
@pytest.mark.parametrize("place", PLACES)
def test_any_parcel(place: type[Host], parcel: Parcel, weigh_shifted: bool) -> None:
    found = expand(parcel, place(), weigh_shifted=weigh_shifted)
    check(found, expected(parcel, weigh_shifted=weigh_shifted))


@given(parcels(rows=3), st.sets(st.sampled_from(sorted(DTYPES)), min_size=1))
@pytest.mark.parametrize("place", PLACES)
def test_rows_and_any_choice_of_columns(
    place: type[Host], parcel: Parcel, columns: set[str]
) -> None:
    check(expand(parcel, place(), columns=sorted(columns)), expected(parcel))


def zigzag(begin: int, end: int, size: int, rank: int) -> np.ndarray:
    """Slots of a rank: of 2 * size parts the rank-th from either end."""
    parts = np.split(np.arange(begin, end), 2 * size)
    return np.concatenate([parts[rank], parts[2 * size - 1 - rank]])


@given(st.data(), st.sampled_from([2, 3, 4, 8]))
@pytest.mark.parametrize("place", PLACES)
def test_each_rank_of_a_group_gets_its_parts_of_every_document(
    place: type[Host], data: st.DataObject, size: int
) -> None:
    parcel = data.draw(parcels(multiple=2 * size, rows=data.draw(st.integers(1, 2))))
    full, cu = expected(parcel), parcel.cu_seqlens
    for rank in range(size):
        slots = np.concatenate([zigzag(a, b, size, rank) for a, b in itertools.pairwise(cu)])
        found = expand(parcel, place(), cp_size=size, cp_rank=rank, per_document=True)
        check(found, {name: column[slots] for name, column in full.items()})


@given(st.data(), st.sampled_from([2, 3, 4, 8]))
@pytest.mark.parametrize("place", PLACES)
def test_each_rank_of_a_group_gets_its_parts_of_every_row(
    place: type[Host], data: st.DataObject, size: int
) -> None:
    row = 2 * size * data.draw(st.sampled_from([1, 7, 90]))
    rows = data.draw(st.integers(1, 3))
    lengths = []
    for _ in range(rows):
        cuts = sorted(data.draw(st.lists(st.integers(0, row), max_size=6)))
        lengths += np.diff([0, *cuts, row]).tolist()
    cu = np.concatenate([[0], np.cumsum(lengths)])
    parcel = Parcel(
        cu_seqlens=cu,
        lengths=lengths,
        document_ids=np.arange(len(lengths)),
        tokens=np.arange(cu[-1], dtype=np.uint16),
        row=row,
    )
    full = expected(parcel)
    for rank in range(size):
        slots = np.concatenate([zigzag(r * row, (r + 1) * row, size, rank) for r in range(rows)])
        found = expand(parcel, place(), cp_size=size, cp_rank=rank)
        check(found, {name: column[slots] for name, column in full.items()})


@pytest.mark.parametrize("segments", [1, 2, 255, 256, 257, 65_536, 65_537, 70_000])
@on_every_place
def test_finds_segments_among_any_number(place: type[Host], segments: int) -> None:
    parcel = Parcel(
        cu_seqlens=np.arange(segments + 1),
        lengths=np.ones(segments),
        document_ids=np.arange(segments),
        tokens=np.arange(segments, dtype=np.uint32),
        row=segments,
    )
    check(expand(parcel, place()), expected(parcel))


def test_a_parcel_is_one_block_of_aligned_arrays_as_long_as_it_needs() -> None:
    at = _core.ParcelShape(
        segments=5, total=70, token_bytes=2, first_positions=True, label_bits=True
    ).offsets
    assert (at.cu_seqlens, at.lengths, at.document_ids) == (0, 32, 64)
    assert (at.first_positions, at.next_tokens, at.label_bits) == (96, 144, 144)
    assert (at.tokens, at.bytes) == (160, 304)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total": 2**31}, "2147483648 slots"),
        ({"segments": 0}, "0 segments"),
        ({"token_bytes": 1}, "1 bytes"),
        ({"row": 5}, "row of 5 slots"),
        ({"row": 0}, "row of 0 slots"),
        ({"cp_size": 0}, "rank 0 of 0"),
        ({"cp_size": 2, "cp_rank": 2}, "rank 2 of 2"),
        ({"cp_size": 2, "cp_rank": -1}, "rank -1 of 2"),
        ({"cp_size": 4, "row": 4}, "a row of 4 slots is no multiple of 8"),
        ({"cp_size": 16, "per_document": True}, "the total of 24 slots is no multiple of 32"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"segments": 1, "total": 24, "token_bytes": 2, "row": 24, **change}
    shape = _core.ParcelShape(**{name: given.pop(name) for name in list(given)[:3]})
    with pytest.raises(bf.PlanError, match=message):
        _core.make_expand(shape, 0, {}, **given)


def test_the_grid_covers_the_longest_batch() -> None:
    shape = _core.ParcelShape(segments=1, total=2**31 - 1, token_bytes=2)
    kernel = _core.make_expand(shape, 0, {}, row=2**31 - 1)
    assert (kernel.blocks, kernel.threads) == (2**22, 256)


def test_without_a_device_a_launch_says_why() -> None:
    shape = _core.ParcelShape(segments=1, total=1, token_bytes=2)
    kernel = _core.make_expand(shape, 0, {}, row=1)
    if not bf.device.available():
        with pytest.raises(bf.DeviceError):
            kernel.launch(0, 0)
