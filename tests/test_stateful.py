"""The state of a loader in a loop that was written for torchdata's StatefulDataLoader."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import brimful as bf

# torchdata calls torch.set_vital, which torch 2.13 calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")

DOCUMENTS = [torch.arange(8) + 10 * i for i in range(12)]


def ours() -> Any:
    return bf.DataLoader(DOCUMENTS, batch_size=2, seq_len=8)


def theirs() -> Any:
    return StatefulDataLoader(DOCUMENTS, batch_size=2, collate_fn=stacked)  # type: ignore[arg-type]


def stacked(documents: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.stack(documents)}


def tokens(batch: Any) -> list[list[int]]:
    rows: list[list[int]] = batch["input_ids"].tolist()
    return rows


def interrupted(make: Callable[[], Any], stop: int, *, noticed: bool = False) -> list[Any]:
    """Batches before a state was taken, after it was loaded, and of the epoch behind."""
    loader = make()
    batches = iter(loader) if stop else None  # a state of a loader that nobody has iterated
    first = [tokens(batch) for batch in islice(batches or (), stop)]
    if noticed:
        assert batches is not None
        assert next(batches, None) is None
    state = copy.deepcopy(loader.state_dict())
    going_on = [] if batches is None else [tokens(batch) for batch in batches]
    fresh = make()
    fresh.load_state_dict(state)
    rest = [tokens(batch) for batch in fresh]
    assert noticed or stop in (0, 6) or going_on == rest
    return [first, rest, [tokens(batch) for batch in fresh]]


@pytest.mark.parametrize("stop", range(6))
def test_a_state_is_taken_and_loaded_as_with_torchdata(stop: int) -> None:
    found = interrupted(ours, stop)
    assert found == interrupted(theirs, stop)
    assert [len(batches) for batches in found] == [stop, 6 - stop, 6]


def test_at_the_end_the_next_epoch_begins_and_none_is_empty() -> None:
    """torchdata delivers nothing where a state was taken before the end was noticed."""
    assert interrupted(ours, 6, noticed=True) == interrupted(theirs, 6, noticed=True)
    first, rest, second = interrupted(ours, 6)
    assert len(first) == len(rest) == len(second) == 6
    assert interrupted(theirs, 6)[1] == []


@pytest.mark.parametrize("make", [ours, theirs])
def test_a_state_loaded_in_mid_iteration_counts_from_the_next_iterator(make: Any) -> None:
    loader = make()
    list(islice(loader, 2))
    state = copy.deepcopy(loader.state_dict())
    whole = [tokens(batch) for batch in make()]
    running = iter(loader)
    next(running)
    loader.load_state_dict(state)
    assert [tokens(batch) for batch in loader] == whole[2:]
    assert [tokens(batch) for batch in loader] == whole
