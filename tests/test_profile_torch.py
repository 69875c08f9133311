"""Profiles of torch's DataLoader: load is timed where it happens, and nothing else changes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import random
import statistics
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader

import brimful as bf
from brimful.profiling.counting import figures_of
from brimful.profiling.figures import Profile
from timed import one_of_three

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital':UserWarning")

COST = 0.012  # of an item; the collate function's is a third of it


class Timed(Dataset[Any]):
    """Items that say how long they took, asleep and at work, by the worker's own clock."""

    def __init__(self, count: int = 12) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Any:
        began = time.perf_counter()
        time.sleep(COST)
        asleep = time.perf_counter() - began
        began = time.thread_time()
        while time.thread_time() - began < COST / 2:
            pass
        return number, asleep, time.thread_time() - began


class TimedIterable(IterableDataset[Any]):
    """The same, dealt to workers."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, every = (0, 1) if info is None else (info.id, info.num_workers)
        return (Timed()[number] for number in range(first, 12, every))


def collate(items: list[Any]) -> list[Any]:
    began = time.perf_counter()
    time.sleep(COST / 3)
    return [items, time.perf_counter() - began]


def make(kind: str, dataset: Any, workers: int, **more: Any) -> Any:
    made = {"torch": DataLoader, "torchdata": StatefulDataLoader, "brimful": bf.DataLoader}[kind]
    return made(dataset, batch_size=2, num_workers=workers, collate_fn=collate, **more)


def check_loads(profile: Profile, batches: list[Any]) -> None:
    """Each batch's figures against what its items say of themselves."""
    assert len(profile.batches) == len(batches)
    excess = []
    for figures, (items, collated) in zip(profile.batches, batches, strict=True):
        asleep = sum(item[1] for item in items)
        at_work = sum(item[2] for item in items)
        assert figures.load is not None
        assert figures.blocked is not None
        assert figures.collate is not None
        assert collated <= figures.collate
        excess.append(figures.collate - collated)
        assert asleep + at_work + collated <= figures.load
        # What is neither work nor sleep is standing in line for a core, and is not blocked.
        slept = len(items) * COST + COST / 3
        assert slept - 0.001 <= figures.blocked <= figures.load - at_work + 0.001
    # Of one batch a process that lost its core between two clocks makes more.
    assert statistics.median(excess) <= 0.005


@pytest.mark.parametrize("kind", ["torch", "torchdata", "brimful"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", [Timed, TimedIterable])
@one_of_three
def test_the_load_of_each_batch_is_that_of_its_items(
    kind: str, workers: int, dataset: type[Any]
) -> None:
    loader = make(kind, dataset(), workers)
    with bf.profile(loader) as p:
        batches = list(p)
    check_loads(p.profile(), batches)
    assert p.stats().loaded_batches == len(batches) - 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@one_of_three
def test_workers_that_do_not_fork_keep_time_too(method: str) -> None:
    loader = make("torch", Timed(6), 1, multiprocessing_context=method)
    with bf.profile(loader) as p:
        batches = list(p)
    check_loads(p.profile(), batches)


@pytest.mark.parametrize("kind", ["torch", "torchdata", "brimful"])
@one_of_three
def test_workers_that_persist_are_timed_in_every_pass_and_profile(kind: str) -> None:
    loader = make(kind, Timed(8), 2, persistent_workers=True)
    for _ in range(2):
        with bf.profile(loader) as p:
            batches = list(p)
            for _ in zip(range(2), p, strict=False):  # and leave while others are on their way
                pass
            batches += list(p)
        profile = p.profile()
        rows = profile.batches[:4] + profile.batches[-4:]
        check_loads(dataclasses.replace(profile, batches=rows), batches)
        list(loader)  # outside of a profile


# Nothing else changes


class Drawn(Dataset[Any]):
    """Items that draw from every global generator."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, number: int) -> Any:
        return number, random.random(), float(np.random.rand()), float(torch.rand(()))


class DrawnIterable(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (Drawn()[number] for number in range(10))


def seed_worker(worker: int) -> None:
    random.seed(1000 + worker + get_worker_info().seed)  # type: ignore[union-attr]


def seeded() -> None:
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)


def drawn_now() -> tuple[Any, ...]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


@pytest.mark.parametrize("kind", ["torch", "torchdata", "brimful"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_workers": 2, "worker_init_fn": seed_worker},
        {"num_workers": 2, "persistent_workers": True},
    ],
)
@pytest.mark.parametrize("dataset", [Drawn, DrawnIterable])
def test_batches_and_random_streams_are_the_same_with_and_without_a_profile(
    kind: str, settings: dict[str, Any], dataset: type[Any]
) -> None:
    made = {"torch": DataLoader, "torchdata": StatefulDataLoader, "brimful": bf.DataLoader}[kind]
    shuffle = {"shuffle": True} if dataset is Drawn else {}

    def loader() -> Any:
        return made(dataset(), batch_size=3, collate_fn=list, **shuffle, **settings)

    seeded()
    plain = loader()
    expected = [list(plain) for _ in range(2)]
    after = drawn_now()
    seeded()
    with bf.profile(loader()) as p:
        found = [list(p) for _ in range(2)]
    assert found == expected
    assert drawn_now() == after
    seeded()
    watched = loader()
    with bf.profile(watched) as p:
        first = list(p)
    assert [first, list(watched)] == expected


def test_a_loader_is_put_back() -> None:
    loader = DataLoader(Drawn(), num_workers=2, persistent_workers=True, worker_init_fn=seed_worker)
    before = dict(vars(loader))
    with pytest.raises(KeyError), bf.profile(loader) as p:
        raise KeyError(next(iter(p)))
    after = dict(vars(loader))
    iterator = after.pop("_iterator")
    after.pop("__pl_attrs_record", None)  # Lightning's, where it was imported: of `_iterator`
    assert after == {name: value for name, value in before.items() if name != "_iterator"}
    assert "_process_data" not in vars(iterator)
    assert iterator._worker_init_fn is not seed_worker  # it was seen


def test_profiles_of_one_loader_may_end_in_any_order() -> None:
    loader = make("torch", list(range(8)), 0)
    first, second = bf.profile(loader).__enter__(), bf.profile(loader).__enter__()
    first.__exit__()
    assert sum(1 for _ in second) == 4
    third = bf.profile(loader).__enter__()
    second.__exit__()
    assert sum(1 for _ in third) == 4
    third.__exit__()
    assert first.stats().batches == 0
    assert second.stats().loaded_batches == third.stats().loaded_batches == 3


class Derived(DataLoader[Any]):
    def _get_iterator(self) -> Any:
        return super()._get_iterator()


def test_a_loader_that_asks_its_base_for_an_iterator_is_timed_once() -> None:
    plain, derived = DataLoader(range(8)), Derived(range(8))  # type: ignore[arg-type]
    with bf.profile(plain), bf.profile(derived) as p:
        assert sum(1 for _ in p) == 8
    assert p._clock._made == deque()


@pytest.mark.parametrize("kind", ["torch", "torchdata", "brimful"])
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))]
)
def test_copies_of_a_loader_under_a_profile_are_loaders_of_their_own(
    kind: str, copied: Any
) -> None:
    loader = make(kind, list(range(8)), 0)
    with bf.profile(loader) as outer, bf.profile(loader) as p:
        another = copied(loader)
        another.dataset[:] = [9] * 8
        assert [items for items, _ in another] == [[9, 9]] * 4
        assert [items for items, _ in p] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert p.stats().loaded_batches == 3  # behind the first
    assert outer.stats().batches == 0


def test_workers_end_with_the_last_reference_to_an_iterator() -> None:
    loader = DataLoader(Drawn(), num_workers=2)
    with bf.profile(loader) as p:
        for _ in p:
            break
        iterator = iter(p)
        next(iterator)
        assert iterator._iterator is not None
        workers = iterator._iterator._workers  # type: ignore[attr-defined]
        del iterator
        for worker in workers:
            worker.join(10)
            assert not worker.is_alive()


@pytest.mark.parametrize("make", [StatefulDataLoader, bf.DataLoader])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_goes_on_from_a_state_under_a_profile(make: Any, workers: int) -> None:
    def loader() -> Any:
        generator = torch.Generator().manual_seed(3)
        how = {"batch_size": 2, "shuffle": True, "num_workers": workers, "generator": generator}
        return make(list(range(20)), **how)

    whole = [batch.tolist() for batch in loader()]
    first, second = loader(), loader()
    with bf.profile(first) as p:
        head = [batch.tolist() for _, batch in zip(range(3), p, strict=False)]
        state = first.state_dict()
    second.load_state_dict(state)
    with bf.profile(second) as p:
        tail = [batch.tolist() for batch in p]
    assert head + tail == whole
    assert all(row.load is not None for row in p.profile().batches)


def ragged(number: int) -> dict[str, torch.Tensor]:
    ids = torch.arange(1, 5 + number)
    return {"input_ids": ids, "labels": torch.where(ids > 2, ids, -100)}


def pad(items: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    columns = {
        name: torch.nn.utils.rnn.pad_sequence(
            [item[name] for item in items], batch_first=True, padding_value=value
        )
        for name, value in (("input_ids", 0), ("labels", -100))
    }
    return {**columns, "attention_mask": (columns["input_ids"] > 0).long()}


def in_pieces(items: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """More segments than a worker tells of."""
    ids = torch.arange(300 + len(items))[None]
    return {"input_ids": ids, "position_ids": torch.zeros_like(ids)}


class Doubled(DataLoader[Any]):
    """Hands out other batches than are fetched."""

    def __iter__(self) -> Any:
        for batch in super().__iter__():
            yield {name: torch.cat([column, column]) for name, column in batch.items()}


@pytest.mark.parametrize("collating", [pad, in_pieces, list])
@pytest.mark.parametrize("kind", [DataLoader, Doubled, StatefulDataLoader, bf.DataLoader])
def test_what_batches_hold_is_the_same_whoever_counts_it(kind: Any, collating: Any) -> None:
    if kind is Doubled and collating is list:
        collating = pad
    items = [ragged(number) for number in range(9)]
    profiles = []
    for workers in (0, 2):
        loader = kind(items, batch_size=2, num_workers=workers, collate_fn=collating)
        with bf.profile(loader) as p:
            batches = list(p)
        assert [row.figures for row in p.profile().batches] == [figures_of(b) for b in batches]
        profiles.append(p.stats())
    for name in ("slots", "tokens", "effective_tokens", "documents", "num_bytes", "length_counts"):
        assert getattr(profiles[0], name) == getattr(profiles[1], name), name
