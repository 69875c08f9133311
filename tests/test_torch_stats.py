"""What a loader on torch's path tells of the time it was waited for, and what it counts."""

import dataclasses
import itertools
import json
import time

import pytest
from torch.utils import data

import brimful as bf

NAP = 0.02


class Napping(data.Dataset):
    """Every item is late by a nap; one is broken."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(NAP)
        if index == 4:
            raise KeyError(index)
        return index


def test_waits_for_a_first_batch_and_for_others_are_told_apart():
    loader = bf.DataLoader(Napping(), 2)
    assert loader.stats() == dataclasses.replace(
        loader.stats(), batches=0, stall_seconds=0, first_batch_seconds=0
    )
    iterator = iter(loader)
    next(iterator)
    first = loader.stats()
    assert (first.batches, first.stall_seconds) == (1, 0)
    assert first.first_batch_seconds >= 2 * NAP
    time.sleep(NAP)  # of the loop's own, which is no stall
    next(iterator)
    second = loader.stats()
    assert second.batches == 2
    assert second.stall_seconds >= 2 * NAP
    assert second.first_batch_seconds == first.first_batch_seconds
    with pytest.raises(KeyError):
        next(iterator)
    failed = loader.stats()
    assert failed.batches == 2
    assert failed.stall_seconds >= second.stall_seconds + NAP


def test_laps_add_up_and_figures_fit_a_logger():
    loader = bf.DataLoader(range(6), 2)
    list(loader)
    first = loader.stats(lap=True)
    list(loader)
    list(loader)
    second = loader.stats(lap=True)
    whole = loader.stats()
    assert (first.batches, second.batches, whole.batches) == (3, 6, 9)
    assert first.stall_seconds + second.stall_seconds == pytest.approx(whole.stall_seconds)
    assert second == whole.since(first)
    assert json.loads(json.dumps(whole.as_dict())) == whole.as_dict()
    assert whole.summary().startswith("9 batches, stall 0.0")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_workers_and_their_start_are_counted_too(num_workers):
    loader = bf.DataLoader(Napping(), 2, num_workers=num_workers)
    assert len(list(itertools.islice(loader, 2))) == 2
    stats = loader.stats()
    assert stats.batches == 2
    assert stats.first_batch_seconds >= 2 * NAP
