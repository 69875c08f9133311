"""What loading a state on torch's path reads, leaves alone, warns of and refuses."""

import copy
import itertools
import json
import pickle
import random
import warnings

import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf
from brimful.drop_in.torch_random import pack, unpack
from torch_kinds import (
    NUMBERS,
    Counting,
    Epochs,
    generator,
    make,
    seed_all,
    values,
)


def test_indices_are_skipped_and_data_is_not_read():
    class Read(list):
        def __getitem__(self, index):
            read.append(index)
            return index

    read = []
    loader = bf.DataLoader(Read(range(1000)), 10, shuffle=True)
    iterator = iter(loader)
    for _ in range(90):
        next(iterator)
    another = bf.DataLoader(Read(range(1000)), 10, shuffle=True)
    another.load_state_dict(loader.state_dict())
    read.clear()
    assert len(list(another)) == 10
    assert len(read) == 100
    stream = bf.DataLoader(Counting(), 4)
    next(iter(stream))
    dataset = Counting()
    another = bf.DataLoader(dataset, 4)
    another.load_state_dict(stream.state_dict())
    list(another)
    assert dataset.read == 9


def test_global_generators_are_left_alone_by_a_resume():
    loader = bf.DataLoader(NUMBERS, 4, shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    seed_all(7)
    expected = torch.rand(1), random.random(), np.random.rand()
    seed_all(7)
    loader.load_state_dict(state)
    list(loader)
    assert (torch.rand(1), random.random(), np.random.rand()) == expected


def test_a_run_with_restored_generators_draws_as_if_it_had_not_stopped():
    """Between epochs nothing is replayed where the user has put torch's generator back."""
    seed_all(1)
    loader = bf.DataLoader(NUMBERS, 4, shuffle=True)
    list(loader)
    state, own = loader.state_dict(), torch.get_rng_state()
    expected = values(loader), torch.rand(1), values(loader)
    another = bf.DataLoader(NUMBERS, 4, shuffle=True)
    another.load_state_dict(state)
    torch.set_rng_state(own)
    assert (values(another), torch.rand(1), values(another)) == expected


def test_a_state_of_one_rank_serves_all_that_a_distributed_sampler_deals_to():
    def of_rank(rank):
        return bf.DataLoader(
            NUMBERS, batch_size=2, sampler=data.DistributedSampler(NUMBERS, 2, rank)
        )

    whole = [values(of_rank(rank)) for rank in (0, 1)]
    first = of_rank(0)
    next(iterator := iter(first))
    state = first.state_dict()
    del iterator
    for rank in (0, 1):
        loader = of_rank(rank)
        loader.load_state_dict(state)
        assert values(loader) == whole[rank][1:]


def test_epochs_of_samplers_come_back_and_set_epoch_has_the_last_word():
    sampler = Epochs()
    loader = bf.DataLoader(NUMBERS, 4, sampler=sampler)
    sampler.set_epoch(3)
    iterator = iter(loader)
    next(iterator)
    state, rest = loader.state_dict(), values(iterator)
    other = Epochs()
    another = bf.DataLoader(NUMBERS, 4, sampler=other)
    another.load_state_dict(state)
    assert other.epoch == 3
    other.set_epoch(3)
    assert values(another) == rest
    another.load_state_dict(state)
    other.set_epoch(4)
    with pytest.warns(UserWarning, match=r"set_epoch\(4\).*\(3\): the state has no effect"):
        assert len(list(another)) == 6


def test_an_order_that_cannot_be_drawn_again_is_warned_of():
    hidden = random.Random(1)

    class Hidden(data.Sampler):
        def __iter__(self):
            return iter(hidden.sample(NUMBERS, 23))

        def __len__(self):
            return 23

    loader = bf.DataLoader(NUMBERS, 4, sampler=Hidden())
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    with pytest.warns(UserWarning, match="another order than the state's"):
        list(loader)


def test_copies_have_places_of_their_own_and_keep_a_loaded_state():
    loader = bf.DataLoader(NUMBERS, 4)
    next(iter(loader))
    state = loader.state_dict()
    for copied in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        assert len(list(copied)) == 6
    loader.load_state_dict(state)
    for copied in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        assert copied.state_dict() == state
        assert len(list(copied)) == 5
    assert len(list(loader)) == 5


def test_a_damaged_state_of_a_given_generator_is_refused():
    loader = bf.DataLoader(NUMBERS, 4, shuffle=True, generator=generator(1))
    before = loader.state_dict()
    snapshot, _ = unpack(before["random"])
    snapshot.named["loader"] = snapshot.named["loader"][:-8]
    with pytest.raises(bf.StateError, match="random numbers are damaged"):
        loader.load_state_dict({**before, "random": pack(snapshot, None)})
    assert loader.state_dict() == before


def test_an_epoch_after_a_resumed_one_is_whole():
    for kind in ("Hugging Face stream", "stateful stream", "stateful iterators"):
        whole = values(make(kind, 1, 0))
        loader = make(kind, 1, 0)
        came = values(itertools.islice(iter(loader), 2))
        another = make(kind, 2, 0)
        another.load_state_dict(loader.state_dict())
        assert came + values(another) == whole
        assert values(another) == whole, kind


def test_states_are_small_and_cheap():
    loader = bf.DataLoader(NUMBERS, 4, shuffle=True, generator=generator(1))
    next(iter(loader))
    assert len(json.dumps(loader.state_dict())) < 20_000
    assert loader.state_dict()["random"] is loader.state_dict()["random"]


def other(state, **changes):
    return {**state, **changes}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: 3, "no state of a loader on torch's path"),
        (lambda state: [], "no state of a loader on torch's path"),
        (lambda state: bf.DataLoader([np.arange(3)], seq_len=4).state_dict(), "torch's path"),
        (lambda state: other(state, version=2), "version 2"),
        (lambda state: {k: v for k, v in state.items() if k != "early"}, "lacks early"),
        (lambda state: other(state, batches=-1), "batches is -1"),
        (lambda state: other(state, batches="1"), "batches is '1'"),
        (lambda state: other(state, early="x"), "damaged"),
        (lambda state: other(state, early=None), "damaged"),
        (lambda state: other(state, early="-3"), "-3"),
        (lambda state: other(state, random="AAAA"), "damaged"),
        (lambda state: other(state, random=None), "damaged"),
        (lambda state: other(state, random=state["random"][:-40]), "damaged"),
        (lambda state: other(state, samplers="{"), "damaged"),
        (lambda state: other(state, samplers="3"), "damaged"),
        (lambda state: other(state, samplers={"sampler": 3}), "damaged"),
        (lambda state: other(state, samplers={"sampler": {"epoch": "x"}}), "damaged"),
        (lambda state: other(state, dataset="[]"), "damaged"),
        (lambda state: other(state, batches=7), "7 batches are out of 6"),
        (lambda state: other(state, num_workers=None), "num_workers is None"),
        (lambda state: other(state, batch_size=5), "batch_size is 5, and here it is 4"),
        (lambda state: other(state, length=7), "length is 7, and here it is 6"),
        (lambda state: other(state, iterable=True), "iterable is True"),
    ],
)
def test_states_that_do_not_fit_are_refused_and_change_nothing(change, words):
    loader = bf.DataLoader(NUMBERS, 4)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    with pytest.raises(bf.StateError, match=words):
        loader.load_state_dict(change(state))
    assert loader.state_dict() == state
    assert len(list(loader)) == 6


def test_a_native_loader_refuses_a_state_of_torchs_path():
    state = bf.DataLoader(NUMBERS).state_dict()
    with pytest.raises(bf.StateError, match="one of a loader on torch's path, and this one is nat"):
        bf.DataLoader([np.arange(3)], seq_len=4).load_state_dict(state)


def test_states_go_through_torchs_checkpoints(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of running without a process group
        import torch.distributed.checkpoint as dcp

        whole = values(make("shuffled", 1, 0))
        loader = make("shuffled", 1, 0)
        came = values(itertools.islice(iter(loader), 2))
        dcp.save({"loader": loader}, checkpoint_id=tmp_path)
        another = make("shuffled", 2, 0)
        dcp.load({"loader": another}, checkpoint_id=tmp_path)
    assert came + values(another) == whole
