"""Kernel K2: rows and columns of a block mask, each by itself, equal to the dense mask's blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful import _core
from places import PLACES, Host

on_every_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
BLOCKS = [(1, 1), (4, 4), (8, 8), (3, 5), (8, 4), (4, 8), (64, 16)]
DOCUMENTS = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 30, 63]


@dataclass(frozen=True)
class Problem:
    rows: Any  # lengths of the documents of each row
    blocks: tuple[int, int]
    window: int = 0
    prefixes: list[list[int]] | None = None

    @property
    def length(self) -> int:
        return sum(self.rows[0])

    @property
    def counts(self) -> tuple[int, int]:
        return -(-self.length // self.blocks[0]), -(-self.length // self.blocks[1])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    lengths = draw(st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=9))
    rows = [draw(st.permutations(lengths)) for _ in range(draw(st.integers(1, 3)))]
    prefixes = [[draw(st.integers(0, n + 1)) for n in row] for row in rows]
    return Problem(
        rows=rows,
        blocks=draw(st.sampled_from(BLOCKS)),
        window=draw(st.sampled_from([0, 3, 7, 11, 15]) | st.integers(0, 70)),
        prefixes=prefixes if draw(st.booleans()) else None,
    )


def allowed(problem: Problem, row: int) -> np.ndarray:
    """[length, length], true where query q may see key k; written out pair by pair."""
    mask = np.zeros((problem.length, problem.length), bool)
    begin = 0
    for i, length in enumerate(problem.rows[row]):
        q, k = np.arange(length)[:, None], np.arange(length)
        inside = k <= q
        if problem.window:
            inside &= q - k < problem.window
        if problem.prefixes is not None:
            inside |= k < problem.prefixes[row][i]
        mask[begin : begin + length, begin : begin + length] = inside
        begin += length
    return mask


def by_blocks(problem: Problem, row: int) -> tuple[np.ndarray, np.ndarray]:
    """[R, C] partial and full blocks of a row, which is padded with False to whole blocks."""
    (r, c), (q, kv) = problem.counts, problem.blocks
    padded = np.zeros((r * q, c * kv), bool)
    padded[: problem.length, : problem.length] = allowed(problem, row)
    blocks = padded.reshape(r, q, c, kv)
    full = blocks.all((1, 3))
    return blocks.any((1, 3)) & ~full, full


def lists(problem: Problem) -> dict[str, tuple[int, ...]]:
    """The eight arrays and their shapes."""
    b, (r, c) = len(problem.rows), problem.counts
    sides = {"kv": (r, c), "q": (c, r)}
    return {
        f"{full}{side}_{what}": (b, *shape[: 1 if what == "num_blocks" else 2])
        for side, shape in sides.items()
        for full in ("", "full_")
        for what in ("num_blocks", "indices")
    }


def build(problem: Problem, place: Any, cu_seqlens: Any = None) -> dict[str, np.ndarray]:
    """What the kernel writes, of the shapes that torch has."""
    b, flat = len(problem.rows), [n for row in problem.rows for n in row]
    cu = np.concatenate([[0], np.cumsum(flat)]) if cu_seqlens is None else cu_seqlens
    prefixes = problem.prefixes and np.array([p for row in problem.prefixes for p in row], np.int64)
    shapes = lists(problem) | dict.fromkeys(["begin", "prefix_end"], (b, problem.length))
    rooms = {name: place.room(int(np.prod(shape)), np.int32) for name, shape in shapes.items()}
    kernel = _core.make_block_mask(
        place.give(np.asarray(cu, np.int32)),
        segments=len(cu) - 1,
        rows=b,
        length=problem.length,
        block_q=problem.blocks[0],
        block_kv=problem.blocks[1],
        out=rooms,
        window=problem.window,
        prefix_lengths=0 if prefixes is None else place.give(prefixes),
    )
    place.run(kernel)
    return {name: place.take(rooms[name]).reshape(shape) for name, shape in shapes.items()}


def listed(counts: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Lists as [lists, blocks] of bools. They ascend, and what is behind their end is 0."""
    out = np.zeros(indices.shape, bool)
    for row, (count, numbers) in enumerate(zip(counts, indices, strict=True)):
        assert (np.diff(numbers[:count]) > 0).all()
        assert (numbers[count:] == 0).all()
        out[row, numbers[:count]] = True
    return out


def check(problem: Problem, found: dict[str, np.ndarray]) -> None:
    for row in range(len(problem.rows)):
        partial, full = by_blocks(problem, row)
        for prefix, want in (("", partial), ("full_", full)):
            kv = [found[f"{prefix}kv_{what}"][row] for what in ("num_blocks", "indices")]
            q = [found[f"{prefix}q_{what}"][row] for what in ("num_blocks", "indices")]
            assert np.array_equal(listed(kv[0], kv[1]), want)
            assert np.array_equal(listed(q[0], q[1]), want.T)
        ends = np.cumsum(problem.rows[row])
        begins = ends - problem.rows[row]
        prefixes = problem.prefixes[row] if problem.prefixes else 0 * begins
        assert np.array_equal(found["begin"][row], np.repeat(begins, problem.rows[row]))
        prefix_ends = np.minimum(begins + prefixes, ends)
        assert np.array_equal(found["prefix_end"][row], np.repeat(prefix_ends, problem.rows[row]))


@given(problems())
@pytest.mark.parametrize("place", PLACES)
def test_equals_the_dense_mask(place: type[Host], problem: Problem) -> None:
    check(problem, build(problem, place()))


@pytest.mark.parametrize(
    "lengths", [[300], [900], [128, 128, 44], [1] * 140, [0, 127, 0, 2, 171], [511]]
)
@pytest.mark.parametrize("blocks", [(128, 128), (64, 64), (256, 128), (128, 256)])
@pytest.mark.parametrize("window", [0, 1, 64, 129, 255])
@pytest.mark.parametrize("prefix", [None, 40, 500])
@on_every_place
def test_sizes_that_people_use(
    place: type[Host],
    lengths: list[int],
    blocks: tuple[int, int],
    window: int,
    prefix: int | None,
) -> None:
    prefixes = None if prefix is None else [[min(prefix, n) for n in lengths]]
    problem = Problem([lengths], blocks, window, prefixes)
    check(problem, build(problem, place()))


@pytest.mark.parametrize("window", [None, 4096])
@pytest.mark.parametrize("rows", [1, 4])
@on_every_place
def test_equals_the_host_s_builder_at_full_size(
    place: type[Host], rows: int, window: int | None
) -> None:
    random = np.random.default_rng(5)
    lengths = [random.multinomial(2**15, random.dirichlet(np.ones(75))) for _ in range(4)]
    flat = np.concatenate(lengths)
    problem = Problem(lengths if rows > 1 else [flat], (128, 128), window or 0)
    found = build(problem, place())
    cu = np.concatenate([[0], np.cumsum(flat)])
    want = bf.masks.block_mask_arrays(cu, window=window, rows=rows)._asdict()
    for side in ("kv", "full_kv", "q", "full_q"):
        counts, numbers = found[f"{side}_num_blocks"], found[f"{side}_indices"]
        assert np.array_equal(counts, want[f"{side}_num_blocks"])
        used = np.arange(numbers.shape[-1]) < counts[..., None]
        assert np.array_equal(numbers[used], want[f"{side}_indices"][used])
        assert not numbers[~used].any()


@on_every_place
def test_a_fixed_capacity_of_segments_changes_nothing(place: type[Host]) -> None:
    problem = Problem([[100, 27, 73]], (32, 32))
    padded = [0, 100, 127, 200] + [200] * 400
    exact, wide = build(problem, place()), build(problem, place(), padded)
    check(problem, exact)
    assert all(np.array_equal(exact[name], wide[name]) for name in exact)


@on_every_place
def test_many_documents(place: type[Host]) -> None:
    problem = Problem([[1, 2, 0, 5, 3] * 60, [5, 0, 1, 3, 2] * 60], (16, 8))
    check(problem, build(problem, place()))


@given(st.data())
@pytest.mark.parametrize("place", PLACES)
def test_whatever_cu_seqlens_holds_numbers_stay_in_range(
    place: type[Host], data: st.DataObject
) -> None:
    """A device's cu_seqlens are not looked at first: garbage gives garbage and harms no memory."""
    number = st.integers(-(2**31), 2**31 - 1) | st.integers(-5, 90)
    count = data.draw(st.integers(1, 2) | st.integers(129, 140))
    cu = data.draw(st.lists(number, min_size=count + 1, max_size=count + 1))
    length = data.draw(st.sampled_from([64, 70]))
    lengths = st.lists(number, min_size=count, max_size=count)
    problem = Problem(
        rows=[[length], [length]],
        blocks=(8, 16),
        window=data.draw(st.sampled_from([0, 3])),
        prefixes=data.draw(st.none() | lengths.map(lambda prefixes: [prefixes])),
    )
    q, kv = problem.counts
    host = place()
    host.compare_orders = False
    found = build(problem, host, cu)
    for name in lists(problem):
        array = found[name]
        most = kv if "kv" in name else q
        assert array.min() >= 0
        assert array.max() < most + name.endswith("num_blocks")


@on_every_place
def test_no_slots_have_no_blocks(place: type[Host]) -> None:
    found = build(Problem([[0]], (128, 128)), place())
    assert all(array.size == 0 for array in found.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 2**16, "length": 2**15}, "65536 rows of 32768 slots"),
        ({"length": -1}, "1 rows of -1 slots"),
        ({"segments": 0}, "0 segments"),
        ({"block_q": 0}, "0 slots"),
        ({"block_kv": 2**31}, "2147483648 slots"),
        ({"window": -1}, "window is -1"),
        ({"length": 2**31 - 1, "block_q": 1, "block_kv": 1}, "4294967294 blocks of threads"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"segments": 1, "rows": 1, "length": 128, "block_q": 128, "block_kv": 128, **change}
    names = lists(Problem([[1]], (1, 1)))
    with pytest.raises(bf.PlanError, match=message):
        _core.make_block_mask(0, out=dict.fromkeys(names, 64), **given)
