"""pin_memory: a batch is views of one block that torch allocated and brimful's threads filled.

Without an accelerator torch has no page-locked memory, so here blocks come from its ordinary
allocator; all else is as ever.
"""

from __future__ import annotations

import gc
import threading
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

import brimful as bf
from brimful import _core, native, pinned
from brimful.config import FIELDS
from truth import check, corpus_of, listed, same

LENGTHS = [1 + i * 37 % 61 for i in range(80)]


class Allocator:
    """Stands for torch's allocator of page-locked memory, and remembers what it gave."""

    def __init__(self) -> None:
        self.storages: list[StorageWeakRef] = []
        self.threads: set[int] = set()
        self.fails = False

    def __call__(self, num_bytes: int) -> torch.Tensor:
        if self.fails:
            raise RuntimeError("no page-locked memory is left")
        block = torch.full((num_bytes,), 0xEE, dtype=torch.uint8)
        self.storages.append(StorageWeakRef(block.untyped_storage()))
        self.threads.add(threading.get_ident())
        return block

    def alive(self) -> int:
        gc.collect()
        return sum(not storage.expired() for storage in self.storages)


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    allocator = Allocator()
    monkeypatch.setattr(pinned, "pinned_block", allocator)
    monkeypatch.setattr("brimful.drop_in.attributes.can_pin", lambda: True)
    return allocator


def make(lengths: Any = LENGTHS, **how: Any) -> bf.DataLoader:
    settings = {"batch_size": 2, "seq_len": 64, "fields": FIELDS, "shuffle": True, **how}
    return bf.DataLoader(corpus_of(lengths), **settings)


def storage_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("layout", ["rows", "varlen"])
def test_batches_are_the_same_in_blocks_of_torch(
    allocator: Allocator, workers: int, layout: str
) -> None:
    how: dict[str, Any] = {"num_workers": workers, "layout": layout, "align": 4}
    plain = list(make(**how))
    loader = make(pin_memory=True, **how)
    count = 0
    for batch, want in zip(loader, plain, strict=True):
        check(batch, loader)
        assert same(batch, want)
        assert len({storage_of(column) for column in batch.values()}) == 1
        assert batch.cu_seqlens.dtype == torch.int32
        count += 1
    assert count == len(plain)
    assert allocator.threads == {threading.get_ident()}


def test_shares_of_a_batch_lie_in_blocks_too(allocator: Allocator) -> None:
    how: dict[str, Any] = {"cp_size": 2, "cp_rank": 1, "num_workers": 2}
    for batch, want in zip(make(pin_memory=True, **how), make(**how), strict=True):
        assert same(batch, want)


def test_a_block_is_torchs_again_when_its_last_tensor_dies(allocator: Allocator) -> None:
    loader = make(num_workers=1, depth=2, pin_memory=True)
    kept = list(loader)
    wanted = [batch["labels"].clone() for batch in kept]
    del loader
    # A batch keeps two blocks: that of its columns, and the small one of cu_seqlens.
    assert allocator.alive() == 2 * len(kept)
    labels = [batch["labels"] for batch in kept]
    del kept
    assert allocator.alive() == len(labels)
    for column, want in zip(labels, wanted, strict=True):
        assert torch.equal(column, want)
    labels.pop(0)
    del column
    assert allocator.alive() == len(labels)


@pytest.mark.parametrize(("workers", "ahead"), [(0, 2), (2, 5)])
def test_few_blocks_are_ahead_and_none_is_left(
    allocator: Allocator, workers: int, ahead: int
) -> None:
    loader = make(num_workers=workers, depth=4, pin_memory=True)
    iterator = iter(loader)
    for _ in range(6):
        batch = next(iterator)
        assert allocator.alive() <= ahead + 2
        del batch
    iterator.close()
    assert allocator.alive() == 0
    iterator = iter(loader)
    next(iterator)
    del iterator
    assert allocator.alive() == 0
    list(loader)
    assert allocator.alive() == 0
    assert loader.stats().batches > 6


def test_a_failed_allocation_loses_no_batch(allocator: Allocator) -> None:
    whole = list(make(num_workers=2))
    iterator = iter(make(num_workers=2, pin_memory=True))
    found = list(islice(iterator, 3))
    allocator.fails = True
    with pytest.raises(RuntimeError, match="no page-locked memory"):
        next(iterator)
    allocator.fails = False
    for got, want in zip([*found, *iterator], whole, strict=True):
        assert same(got, want)


def test_errors_and_states_are_as_ever(allocator: Allocator) -> None:
    docs = [np.array([1, 2, 3]), np.array([4, -5]), np.array([6, 7, 8])]
    loader = bf.DataLoader(docs, seq_len=3, pin_memory=True, bad_documents="error")
    iterator = iter(loader)
    assert listed(next(iterator)["input_ids"]) == [[1, 2, 3]]
    for _ in range(2):
        with pytest.raises(bf.FormatError, match="document 1"):
            next(iterator)
    iterator.close()
    assert allocator.alive() == 0

    loader = make(pin_memory=True)
    begun = list(islice(iter(loader), 3))
    again = make(num_workers=0)
    again.load_state_dict(loader.state_dict())
    for got, want in zip([*begun, *again], make(), strict=True):
        assert same(got, want)


def test_memory_is_page_locked_and_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(torch, "empty", lambda *size, **how: asked.update(how, size=size))
    pinned.pinned_block(640)
    assert asked == {"size": (640,), "dtype": torch.uint8, "device": "cpu", "pin_memory": True}


def test_without_an_accelerator_a_warning_says_so() -> None:
    with pytest.warns(UserWarning, match="no accelerator"):
        loader = make(pin_memory=True)
    for batch, want in zip(loader, make(), strict=True):
        assert same(batch, want)


def test_a_limit_of_slots_is_refused() -> None:
    with pytest.raises(bf.PlanError, match="max_slots"):
        make(pin_memory=True, max_slots=4)


def test_the_core_refuses_blocks_that_do_not_fit() -> None:
    loader = make(num_workers=1)

    def stream(*, supplied: bool) -> _core.Stream:
        prefetch = native.make_prefetch(loader.config, supplied=supplied)
        return _core.Stream(
            loader._plan, loader._layout, loader._geometry, _core.Cursor(), loader._read, prefetch,
            loader._ledger, loader._skip, 0,
        )  # fmt: skip

    owner = stream(supplied=False)
    block = np.zeros(loader._layout.slot_bytes, np.uint8)
    assert owner.blocks_wanted == 0
    with pytest.raises(bf.BrimfulError, match="memory of its own"):
        owner.supply(block)
    owner.close()
    taker = stream(supplied=True)
    assert taker.blocks_wanted == 5
    with pytest.raises(bf.PlanError, match="bytes was supplied"):
        taker.supply(block[1:])
    with pytest.raises(bf.BrimfulError, match="no block was supplied"):
        taker.next()
    read_only = block.copy()
    read_only.flags.writeable = False
    with pytest.raises((TypeError, ValueError)):
        taker.supply(read_only)
    taker.supply(block)
    assert taker.blocks_wanted == 4
    address, rows, columns = taker.next()[0]
    assert (address, rows, columns) == (block.ctypes.data, 2, 64)
    taker.close()
    assert taker.blocks_wanted == 0
