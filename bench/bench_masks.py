"""Masks and metadata from cu_seqlens, next to torch's and transformers' ways to the same.

    pytest bench/bench_masks.py

All run on one thread and give the same, which is checked first. Documents are lognormal (sigma 1).
The rivals of block masks get a tensor and return a BlockMask; so does "brimful, BlockMask". What
would take more than 20 s or 12 GiB is left out: create_block_mask, not compiled, above 8,192 slots.
Compilation is not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import brimful as bf
from rivals.masks import block_masks, columns, squares

SIZES = [(8192, 20), (32768, 80), (131072, 300), (131072, 1)]
NAMES = bf.masks.BlockMaskArrays._fields
pytestmark = pytest.mark.filterwarnings("ignore")

# What makes a BlockMask of a tensor, and the most slots that it is asked for.
RIVALS: dict[str, tuple[Callable[[torch.Tensor], Any], int]] = {
    "create_block_mask": (block_masks.by_predicate, 8192),
    "create_block_mask, compiled": (block_masks.by_compiled_predicate, 131072),
    "bounds of blocks": (block_masks.by_bounds, 131072),
    "bounds of blocks, compiled": (block_masks.by_compiled_bounds, 131072),
}


@pytest.fixture(autouse=True, scope="module")
def one_torch_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def cu_seqlens(slots: int, documents: int) -> NDArray[np.int32]:
    ends = np.random.default_rng(3).lognormal(0, 1, documents).cumsum()
    return np.concatenate([[0], ends / ends[-1] * slots]).round().astype(np.int32)


def lists(mask: Any) -> list[list[list[int]]]:
    arrays = [np.asarray(getattr(mask, name)).squeeze((0, 1)) for name in NAMES]
    return [
        [sorted(row[:count].tolist()) for count, row in zip(*pair, strict=True)]
        for pair in zip(arrays[::2], arrays[1::2], strict=True)
    ]


def test_all_block_masks_are_the_same() -> None:
    cu = torch.from_numpy(cu_seqlens(2048, 9))
    ours = bf.masks.block_mask(cu)
    for make, _ in RIVALS.values():
        assert lists(make(cu)) == lists(ours)
    assert lists(block_masks.from_kv_blocks(ours)) == lists(ours)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_block_mask_arrays(benchmark: Any, size: tuple[int, int]) -> None:
    benchmark.group = f"block mask {size}"
    cu = cu_seqlens(*size)
    out = bf.masks.block_mask_arrays(cu)
    benchmark(bf.masks.block_mask_arrays, cu, out=out)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_block_mask(benchmark: Any, size: tuple[int, int]) -> None:
    benchmark.group = f"block mask {size}"
    benchmark(bf.masks.block_mask, torch.from_numpy(cu_seqlens(*size)))


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_rival_block_mask(benchmark: Any, size: tuple[int, int], rival: str) -> None:
    make, most = RIVALS[rival]
    benchmark.group = f"block mask {size}"
    if size[0] <= most:
        cu = torch.from_numpy(cu_seqlens(*size))
        slow = "create" in rival
        benchmark.pedantic(make, (cu,), rounds=3 if slow else 5, warmup_rounds=1)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_from_kv_blocks(benchmark: Any, size: tuple[int, int]) -> None:
    """The q lists alone, from kv lists that are there."""
    benchmark.group = f"block mask {size}"
    mask = bf.masks.block_mask(torch.from_numpy(cu_seqlens(*size)))
    benchmark.pedantic(block_masks.from_kv_blocks, (mask,), rounds=5, warmup_rounds=1)


COLUMNS = [(9633, 16), (131072, 300), (1048576, 2400)]


def tokens(slots: int) -> NDArray[np.uint16]:
    return np.random.default_rng(1).integers(0, 50_000, slots).astype(np.uint16)


def our_columns(ids: Any, cu: Any) -> dict[str, Any]:
    return {
        "labels": bf.masks.labels(ids, cu),
        "position_ids": bf.masks.position_ids(cu),
        "document_ids": bf.masks.document_ids(cu),
    }


def documents(ids: NDArray[np.uint16], cu: NDArray[np.int32]) -> list[dict[str, list[int]]]:
    return [{"input_ids": part.tolist()} for part in np.split(ids, cu[1:-1])]


def test_all_columns_are_the_same() -> None:
    cu, ids = cu_seqlens(9633, 16), tokens(9633)
    want = our_columns(ids, cu)
    collated = columns.flattening_collator()(documents(ids, cu))
    for found in (
        columns.numpy_columns(ids, cu),
        columns.torch_columns(torch.from_numpy(ids), torch.from_numpy(cu)),
        {**collated, "document_ids": collated["seq_idx"]},
    ):
        for name in want:
            assert np.asarray(found[name]).reshape(-1).tolist() == want[name].tolist()


@pytest.mark.parametrize("size", COLUMNS, ids=str)
def test_columns(benchmark: Any, size: tuple[int, int]) -> None:
    benchmark.group = f"columns {size}"
    benchmark(our_columns, tokens(size[0]), cu_seqlens(*size))


@pytest.mark.parametrize("size", COLUMNS, ids=str)
def test_numpy_columns(benchmark: Any, size: tuple[int, int]) -> None:
    benchmark.group = f"columns {size}"
    benchmark(columns.numpy_columns, tokens(size[0]), cu_seqlens(*size))


@pytest.mark.parametrize("size", COLUMNS, ids=str)
def test_torch_columns(benchmark: Any, size: tuple[int, int]) -> None:
    benchmark.group = f"columns {size}"
    ids, cu = torch.from_numpy(tokens(size[0])), torch.from_numpy(cu_seqlens(*size))
    benchmark(columns.torch_columns, ids, cu)


def test_flattening_collator(benchmark: Any) -> None:
    benchmark.group = f"columns {COLUMNS[0]}"
    given = documents(tokens(9633), cu_seqlens(9633, 16))
    benchmark(columns.flattening_collator(), given)


SQUARES = [(4096, 10), (8192, 20)]


def test_all_squares_are_the_same() -> None:
    cu = cu_seqlens(1000, 7)
    want = bf.masks.dense(cu)
    assert (squares.by_triangles(cu) == want).all()
    assert (squares.by_broadcast(torch.from_numpy(cu)).numpy() == want).all()


@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", SQUARES, ids=str)
def test_dense(benchmark: Any, size: tuple[int, int], dtype: torch.dtype) -> None:
    benchmark.group = f"dense {size}"
    benchmark(bf.masks.dense, cu_seqlens(*size), dtype=dtype)


@pytest.mark.parametrize("size", SQUARES, ids=str)
def test_triangles(benchmark: Any, size: tuple[int, int]) -> None:
    benchmark.group = f"dense {size}"
    benchmark(squares.by_triangles, cu_seqlens(*size))


@pytest.mark.parametrize("size", SQUARES, ids=str)
def test_broadcast(benchmark: Any, size: tuple[int, int]) -> None:
    benchmark.group = f"dense {size}"
    benchmark(squares.by_broadcast, torch.from_numpy(cu_seqlens(*size)))
