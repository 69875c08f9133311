"""States on torch's path: what was delivered and what comes after a resume is one epoch."""

import itertools
import json
import random

import pytest
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import brimful as bf
from side_by_side import WORKERS
from torch_kinds import (
    KINDS,
    NUMBERS,
    WITH_WORKERS,
    Failing,
    Stream,
    Uneven,
    generator,
    make,
    values,
)


@pytest.mark.parametrize(
    ("kind", "num_workers"),
    [*((kind, 0) for kind in KINDS), *((kind, 2) for kind in WITH_WORKERS), ("stream", 1)],
)
def test_what_was_delivered_and_what_comes_after_a_resume_is_one_epoch(kind, num_workers):
    whole = values(make(kind, 1, num_workers))
    for stop in range(len(whole) + 1) if num_workers == 0 else (2, len(whole)):
        loader = make(kind, 1, num_workers)
        iterator = iter(loader)
        came = values(itertools.islice(iterator, stop))
        state = loader.state_dict()
        if kind != "torchdata's sampler":  # whose own state holds a tensor
            state = json.loads(json.dumps(state))
        another = make(kind, 2, num_workers)
        another.load_state_dict(state)
        came += values(another)
        if (kind, num_workers, stop) == ("shuffled stream", 0, 0):  # drawn with the first item
            assert sorted(itertools.chain(*came)) == sorted(itertools.chain(*whole))
        else:
            assert came == whole, stop


@pytest.mark.parametrize("kind", ["shuffled by a generator", "random sampler", "batch sampler"])
def test_epochs_after_a_resume_are_those_of_the_run(kind):
    loader = make(kind, 1, 0)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = values(iterator), values(loader), values(loader)
    another = make(kind, 2, 0)
    another.load_state_dict(state)
    assert (values(another), values(another), values(another)) == rest


@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_batch_and_between_epochs_a_state_is_of_a_whole_epoch(kind):
    """In the order of the run, where nothing else draws in between."""
    loader = make(kind, 1, 0)
    state = loader.state_dict()
    whole = values(loader)
    another = make(kind, 2, 0)
    another.load_state_dict(state)
    if kind == "shuffled stream":  # drawn with the first item, from Python's generator of then
        random.seed(1)
    assert values(another) == whole
    if kind == "generated batches":  # there is one epoch of them
        return
    between, own = loader.state_dict(), random.getstate()
    following = values(loader)
    assert len(following) == len(whole)
    another = make(kind, 3, 0)
    another.load_state_dict(between)
    random.setstate(own)
    assert values(another) == following


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
@pytest.mark.parametrize("kind", ["in order", "stream", "one by one"])
@pytest.mark.parametrize(
    ("stop", "num_workers"),
    [*((stop, 0) for stop in ("before", 0, 1, 3, "last", "end", "break")), (3, 2), ("last", 2)],
)
def test_point_21_places_mean_what_they_mean_in_torchdata(kind, num_workers, stop):
    """Where no order is drawn both deliver the same; where one is, as many batches."""

    def resumed(DataLoader):
        how = {**KINDS[kind](0), "num_workers": num_workers, "snapshot_every_n_steps": 2}
        loader = DataLoader(**how)
        if stop == "break":
            for _ in loader:
                break
        elif stop != "before":
            iterator = iter(loader)
            if stop == "end":
                list(iterator)
            elif stop == "last":
                for _ in range(len(list(DataLoader(**how)))):
                    next(iterator)
            else:
                list(itertools.islice(iterator, stop))
        another = DataLoader(**how)
        another.load_state_dict(loader.state_dict())
        return [values(another), values(another)]

    theirs, ours = resumed(StatefulDataLoader), resumed(bf.DataLoader)
    if kind == "one by one":
        theirs, ours = (list(map(len, epochs)) for epochs in (theirs, ours))
    assert ours == theirs


def test_point_21_loading_in_mid_iteration_counts_from_the_next_iter():
    loader = bf.DataLoader(NUMBERS, 4)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    next(iterator)
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    assert next(iterator).tolist() == [8, 9, 10, 11]
    assert values(loader)[0] == [4, 5, 6, 7]
    assert values(loader)[0] == [0, 1, 2, 3]
    loader.load_state_dict({})
    assert values(loader)[0] == [0, 1, 2, 3]


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 1)])
def test_point_21_the_number_of_workers_may_change(before, after):
    for kind in ("shuffled", "foreign batches", "distributed"):
        whole = values(make(kind, 1, before))
        loader = make(kind, 1, before)
        iterator = iter(loader)
        came = values(itertools.islice(iterator, 2))
        another = make(kind, 2, after)
        another.load_state_dict(loader.state_dict())
        assert came + values(another) == whole


def test_a_stream_shared_by_other_workers_is_warned_of():
    loader = bf.DataLoader(Stream(shared=True), 4, num_workers=2)
    next(iter(loader))
    another = bf.DataLoader(Stream(shared=True), 4)
    another.load_state_dict(loader.state_dict())
    with pytest.warns(UserWarning, match="batches of 2 workers, and the loader has 0"):
        iter(another)


def test_persistent_workers_go_on_from_a_state():
    how = {"shuffle": True, "num_workers": 2, "persistent_workers": True}
    loader = bf.DataLoader(NUMBERS, 4, generator=generator(1), **how)
    another = bf.DataLoader(NUMBERS, 4, generator=generator(2), **how)
    list(another)
    list(loader)
    iterator = iter(loader)
    came = values(itertools.islice(iterator, 2))
    another.load_state_dict(loader.state_dict())
    rest = values(iterator)
    assert values(another) == rest
    assert sorted(itertools.chain(*came, *rest)) == NUMBERS
    assert values(another) == values(loader)


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
def test_persistent_workers_draw_the_next_epoch_as_any_others(persistent, used, seeded):
    """They keep their seed, and the order of an epoch is drawn behind the workers' seed."""

    def loader(persistent):
        drawn_from = generator(1) if seeded else None
        return bf.DataLoader(
            NUMBERS,
            4,
            shuffle=True,
            num_workers=1,
            persistent_workers=persistent,
            generator=drawn_from,
        )

    torch.manual_seed(5)
    first = loader(persistent)
    list(first)
    state = first.state_dict()
    epochs = [values(first), values(first)]
    torch.manual_seed(6)
    another = loader(not persistent or used)
    if used:
        list(another)
    another.load_state_dict(state)
    assert values(another) == epochs[0]
    if seeded and another.persistent_workers == first.persistent_workers and used:
        assert values(another) == epochs[1]
    other_batches = bf.DataLoader(NUMBERS, 5, shuffle=True)
    other_batches.load_state_dict(state)  # from between epochs
    assert sorted(itertools.chain(*values(other_batches))) == NUMBERS


def test_out_of_order_batches_come_once_each_over_any_number_of_resumes():
    how = {"num_workers": 2, "in_order": False, "prefetch_factor": 3}
    state, came, overtaken = {}, [], False
    while True:
        loader = bf.DataLoader(Uneven(), 1, **how)
        loader.load_state_dict(state)
        batches = values(itertools.islice(iter(loader), 5))
        came += batches
        overtaken |= bool(loader.state_dict()["early"])
        state = json.loads(json.dumps(loader.state_dict()))
        if len(batches) < 5:
            break
    assert sorted(came) == [[i] for i in range(24)]
    assert overtaken
    assert came != sorted(came)


@pytest.mark.parametrize("num_workers", WORKERS)
def test_a_batch_that_failed_is_behind_the_place(num_workers):
    loader = bf.DataLoader(Failing(), 2, num_workers=num_workers)
    iterator = iter(loader)
    next(iterator)
    for _ in range(2):
        with pytest.raises(KeyError):
            next(iterator)
    another = bf.DataLoader(Failing(), 2, num_workers=num_workers)
    another.load_state_dict(loader.state_dict())
    assert values(another) == values(iterator) == [[6, 7], [8, 9]]
