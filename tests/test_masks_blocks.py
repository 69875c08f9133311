"""Block masks: torch's own, block for block, and every wrong way to build them is noticed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_block_mask

import brimful as bf
from block_builder import MISTAKES, build
from mask_truth import Lists, block_lists, listed, many_lengths, offsets, pairs

arrays = bf.masks.block_mask_arrays
NAMES = bf.masks.BlockMaskArrays._fields
BLOCKS = [128, 64, (256, 128)]


@pytest.fixture(autouse=True, scope="module")
def one_torch_thread() -> Iterator[None]:
    """create_block_mask is many small operations, whose threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def torch_lists(cu: Any, block_size: Any, window: int | None, prefixes: Any) -> list[Lists]:
    """What create_block_mask makes of a predicate."""
    total = int(cu[-1])
    document = torch.from_numpy(np.repeat(np.arange(len(cu) - 1), np.diff(cu)))
    start = torch.from_numpy(np.repeat(cu[:-1], np.diff(cu)))
    prefix = torch.zeros(len(cu) - 1, dtype=torch.long)
    prefix = prefix if prefixes is None else torch.as_tensor(prefixes)

    def see(b: Any, h: Any, q: Any, k: Any) -> Any:
        near = k <= q if window is None else (k <= q) & (q - k < window)
        return (document[q] == document[k]) & (near | (k < start[q] + prefix[document[q]]))

    made = create_block_mask(see, None, None, total, total, device="cpu", BLOCK_SIZE=block_size)
    return [list(of) for of in listed([getattr(made, name)[0, 0] for name in NAMES])]


def edges() -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Cuts at, before and behind block boundaries; broken last blocks; empty and tiny documents;
    tails; with windows and prefixes around sizes of blocks and documents.
    """
    sets = [
        [1],
        [128],
        [127],
        [129],
        [256, 1],
        [128, 128, 256],
        [64, 64, 64],
        [130, 126, 1],
        [0, 100, 0, 0, 156, 0],
        [1] * 150,
        [1, 1, 300, 1, 1],
        [255, 2, 255],
        [5, 507],
        [511, 1],
        [100, 200, 212],  # as if the last were a tail
        [300, 0, 84],
    ]
    for lengths in sets:
        longest = max(lengths)
        yield lengths, {}
        for window in (1, 2, 127, 128, 129, longest):
            yield lengths, {"window": window}
        for prefix in (1, 64, 128, longest):
            yield lengths, {"prefixes": [prefix] * len(lengths)}
        yield lengths, {"window": 100, "prefixes": [min(70, n) for n in lengths]}


def random_cases(number: int) -> Iterator[tuple[list[int], dict[str, Any]]]:
    rng = np.random.default_rng(5)
    for _ in range(number):
        kinds = [rng.integers(0, 4), rng.integers(1, 200), 128 * rng.integers(0, 3), 1]
        lengths = [int(rng.permuted(kinds)[0]) for _ in range(rng.integers(1, 6))]
        settings: dict[str, Any] = {}
        if rng.random() < 0.4:
            settings["window"] = int(rng.integers(1, 300))
        if rng.random() < 0.4:
            settings["prefixes"] = rng.integers(0, 200, len(lengths)).tolist()
        yield lengths, settings


CASES = [*edges(), *random_cases(100)]


def test_there_are_enough_cases() -> None:
    assert len(CASES) * len(BLOCKS) >= 800


@pytest.mark.parametrize("block_size", BLOCKS, ids=str)
@pytest.mark.parametrize("part", range(8))
def test_equal_to_torchs_create_block_mask(block_size: Any, part: int) -> None:
    """Partial and full, of queries and of keys, as sets: over 800 cases in all."""
    for lengths, given_ in CASES[part::8]:
        cu = offsets(lengths)
        if cu[-1] == 0:
            continue
        window, prefixes = given_.get("window"), given_.get("prefixes")
        made = arrays(cu, block_size, window=window, prefix_lengths=prefixes)
        found = [list(of) for of in listed(made)]
        assert found == torch_lists(cu, block_size, window, prefixes), (lengths, given_)


@given(
    many_lengths(),
    st.integers(1, 20),
    st.integers(1, 20),
    st.none() | st.integers(1, 70),
    st.data(),
)
@settings(max_examples=400)
def test_equal_to_the_definition_for_blocks_of_any_size(
    lengths: list[int], block_q: int, block_kv: int, window: int | None, data: st.DataObject
) -> None:
    number = len(lengths)
    some = st.lists(st.integers(0, 70), min_size=number, max_size=number)
    prefixes = data.draw(st.none() | some)
    cu = offsets(lengths)
    made = arrays(cu, (block_q, block_kv), window=window, prefix_lengths=prefixes)
    assert listed(made) == block_lists(
        pairs(cu, window=window, prefixes=prefixes), block_q, block_kv
    )
    for counts, indices in zip(made[::2], made[1::2], strict=True):
        assert counts.dtype == indices.dtype == np.int32
        assert indices.flags.c_contiguous
        # Behind the count too, for kernels look at the first entry of a row that has none.
        assert indices.size == 0 or (indices.min() >= 0 and indices.max() < indices.shape[-1])


@given(st.lists(many_lengths(documents=4), min_size=1, max_size=4), st.integers(0, 20), st.data())
def test_rows_are_those_of_each_row_by_itself(
    rows: list[list[int]], tail: int, data: st.DataObject
) -> None:
    block = data.draw(st.sampled_from([4, 8, (8, 4), (5, 3)]))
    window = data.draw(st.none() | st.integers(1, 40))
    total = max(map(sum, rows)) + tail
    cus = [bf.masks.cu_seqlens(row, total=total) for row in rows]
    made = arrays(cus, block, window=window)
    flat = arrays(bf.masks.cu_seqlens(rows, total=total), block, window=window, rows=len(rows))
    for one, other in zip(made, flat, strict=True):
        assert one.shape == other.shape == (len(rows), *one.shape[1:])
        assert one.tolist() == other.tolist() or one.ndim == 3
    for i, cu in enumerate(cus):
        alone = arrays(cu, block, window=window)
        assert listed([of[i] for of in made]) == listed([of[i] for of in flat]) == listed(alone)


SMALL = [
    (lengths, blocks, window, prefix)
    for lengths in ([8, 8, 16], [3, 0, 21, 8], [40], [5, 30], [1] * 9, [7, 2, 15], [8, 20, 0, 0, 4])
    for blocks in ((8, 8), (4, 8), (8, 4), (5, 3))
    for window in (None, 1, 4, 8, 9, 13)
    for prefix in (None, 3, 8, 30)
]


def noticed(mistake: str) -> bool:
    """Whether a builder that makes this mistake differs from the definition on a small case."""
    for lengths, (block_q, block_kv), window, prefix in SMALL:
        cu, prefixes = offsets(lengths), None if prefix is None else [prefix] * len(lengths)
        expected = block_lists(pairs(cu, window=window, prefixes=prefixes), block_q, block_kv)
        try:
            if build(cu, block_q, block_kv, window, prefixes, mistake) != expected:
                return True
        except AssertionError:
            return True
    return False


def test_a_right_builder_passes_on_the_small_cases() -> None:
    assert not noticed("")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_builders_are_noticed(mistake: str) -> None:
    assert noticed(mistake)


def test_the_small_cases_hold_for_the_native_builder() -> None:
    for lengths, blocks, window, prefix in SMALL:
        cu, prefixes = offsets(lengths), None if prefix is None else [prefix] * len(lengths)
        made = arrays(cu, blocks, window=window, prefix_lengths=prefixes)
        assert listed(made) == build(cu, *blocks, window, prefixes)


def test_c40_three_documents_of_whole_blocks() -> None:
    cu = bf.masks.cu_seqlens([128, 128, 256])
    partial, full, _, _ = listed(arrays(cu))
    assert partial == [[0], [1], [2], [3]]
    assert full == [[], [], [], [2]]
    assert np.count_nonzero(bf.masks.dense(cu)) == 49_408


def test_c40_96_000_tokens_take_no_square_of_them() -> None:
    """A square mask would take 9.2 GB, and its blocks as bytes 562 kB; the eight arrays 9 MB."""
    cu = bf.masks.cu_seqlens([128] * 750)
    made = arrays(cu)
    assert made.kv_num_blocks.tolist() == made.q_num_blocks.tolist() == [1] * 750
    assert made.kv_indices[:, 0].tolist() == made.q_indices[:, 0].tolist() == list(range(750))
    assert not made.full_kv_num_blocks.any()
    assert not made.full_q_num_blocks.any()


GROWTH = """
import re, sys
import numpy as np
import brimful as bf

def kilobytes(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

cu = bf.masks.cu_seqlens([128] * 750)
bf.masks.block_mask_arrays(cu[:2])
open("/proc/self/clear_refs", "w").write("5")
before = kilobytes("VmRSS")
made = bf.masks.block_mask_arrays(cu)
print(kilobytes("VmHWM") - before, sum(array.nbytes for array in made) // 1024)
"""


def test_c40_96_000_tokens_take_little_memory_besides_the_result() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True, timeout=60
    )
    grown, result = map(int, done.stdout.split())
    assert grown < result + 16 * 1024


def test_arrays_are_written_again() -> None:
    one = arrays([0, 100, 300])
    kept = listed(one)
    other = arrays([0, 250, 300])
    assert arrays([0, 100, 300], out=other) is other
    assert listed(other) == kept
    assert all(a is not b for a, b in zip(one, other, strict=True))


def test_results_that_live_are_never_written_again() -> None:
    """Memory of a result that died serves the next one; what is alive stays as it was."""
    kept = [arrays([0, end, 700]) for end in range(1, 700, 37)]
    told = [listed(made) for made in kept]
    for end in range(2, 700, 31):
        arrays([0, end, 700])
        arrays([0, 1, end, 700], 64)
    assert [listed(made) for made in kept] == told
    views = [made.kv_indices[3:] for made in kept]
    told_views = [view.tolist() for view in views]
    del kept
    for end in range(1, 700, 7):
        arrays([0, end, 700])
    assert [view.tolist() for view in views] == told_views


def test_threads_get_memory_of_their_own() -> None:
    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(150):
            total = int(rng.choice([256, 700, 1000]))
            cu = np.array([0, rng.integers(0, total), total], np.int32)
            made = arrays(np.sort(cu), 64)
            want = arrays(np.sort(cu), 64, rows=1)
            assert listed(made) == listed([of[0] for of in want])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_entries_behind_the_count_are_blocks_of_the_mask_for_any_order_of_calls() -> None:
    for total in (64, 8, 200, 8, 64, 24, 200):
        made = arrays([0, total // 2, total], 8)
        for indices in made[1::2]:
            assert indices.min() >= 0
            assert indices.max() < indices.shape[-1]


def test_a_mask_of_nothing() -> None:
    made = arrays([0])
    assert [array.shape for array in made] == [(0,), (0, 0)] * 4


@pytest.mark.parametrize(
    "settings",
    [
        {"block_size": 0},
        {"block_size": -128},
        {"block_size": 2**31},
        {"block_size": (128, 0)},
        {"block_size": (128, 128, 128)},
        {"block_size": (128,)},
        {"block_size": 12.5},
        {"block_size": None},
        {"block_size": True},
        {"window": 0},
        {"window": "all"},
        {"prefix_lengths": [1]},
        {"prefix_lengths": [1, -1]},
        {"rows": 2},
        {"rows": 0},
    ],
    ids=str,
)
def test_what_block_masks_refuse(settings: dict[str, Any]) -> None:
    with pytest.raises(bf.PlanError):
        arrays([0, 3, 5], **settings)
    with pytest.raises(bf.PlanError):
        bf.masks.block_mask([0, 3, 5], **settings)


def test_arrays_that_do_not_fit_are_refused() -> None:
    good = arrays([0, 300])
    fixed = arrays([0, 300])
    fixed.q_indices.flags.writeable = False
    for bad, name in (
        (arrays([0, 100]), "kv_num_blocks"),
        (arrays([0, 300], rows=1), "kv_num_blocks"),
        (good._replace(kv_indices=good.kv_indices.astype(np.int64)), "kv_indices"),
        (good._replace(full_kv_indices=good.kv_indices.T), "full_kv_indices"),
        (good._replace(q_num_blocks=good.q_num_blocks.tolist()), "q_num_blocks"),
        (fixed, "q_indices"),
    ):
        with pytest.raises(bf.PlanError, match=rf"out.{name} must be"):
            arrays([0, 300], out=bad)
    with pytest.raises(bf.PlanError, match="eight arrays"):
        arrays([0, 300], out=good[:7])
    with pytest.raises(bf.PlanError, match="out is a list"):
        arrays([0, 300], out=list(good))


def test_torchs_mask_has_the_same_lists_and_shows_what_is_seen() -> None:
    rows = [[100, 200, 84], [384]]
    cus = [offsets(row) for row in rows]
    prefixes = [[10, 0, 5], [200]]
    made = bf.masks.block_mask(cus, 64, window=90, prefix_lengths=prefixes)
    assert made.shape == (2, 1, 384, 384)
    assert made.BLOCK_SIZE == (64, 64)
    q, k = torch.arange(384)[:, None], torch.arange(384)
    for i, (cu, prefix) in enumerate(zip(cus, prefixes, strict=True)):
        seen = pairs(cu, window=90, prefixes=prefix)
        lists = [getattr(made, name)[i, 0] for name in NAMES]
        assert listed(lists) == block_lists(seen, 64, 64)
        assert (made.mask_mod(torch.tensor(i), 0, q, k).numpy() == seen).all()
    one = bf.masks.block_mask(torch.from_numpy(cus[0]))
    assert one.shape == (1, 1, 384, 384)
    assert all(getattr(one, name).dtype == torch.int32 for name in NAMES)
    assert all(getattr(one, name).is_contiguous() for name in NAMES)
    # One row stands for every row of a larger batch.
    assert (one.mask_mod(torch.tensor(3), 0, q, k).numpy() == pairs(cus[0])).all()
