"""torch's samplers and generators on the native path: what they ask for, as settings."""

import json
import warnings
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils import data

import brimful as bf
from truth import STRIDE, document, same


def numbers(items):
    """A collate function: the numbers of the documents that it gets."""
    return [int(item[0]) // STRIDE for item in items]


def dataset_of(count, length=3):
    return [document(i, length) for i in range(count)]


def rows(dataset, sampler, batch_size=1, **arguments):
    return bf.DataLoader(
        dataset, batch_size, sampler=sampler, seq_len=3, packing="pad", collate_fn=numbers,
        pad_token_id=-STRIDE, **arguments,
    )  # fmt: skip


def joined(batches):
    return [number for batch in batches for number in batch]


DUMMY = [-1]  # what a rank without a row gets, by the pad token above


@settings(max_examples=80)
@given(
    count=st.integers(1, 40),
    world_size=st.integers(1, 5),
    batch_size=st.integers(1, 4),
)
def test_ranks_get_the_rows_that_torch_deals_to_them(count, world_size, batch_size):
    dataset = dataset_of(count)
    for rank in range(world_size):
        sampler = data.DistributedSampler(dataset, world_size, rank, shuffle=False)
        loader = rows(dataset, sampler, batch_size)
        assert (loader.config.rank, loader.config.world_size) == (rank, world_size)
        found = [batch for batch in loader if batch != DUMMY]
        wanted = list(data.DataLoader(dataset, batch_size, sampler=sampler, collate_fn=numbers))
        # To even out ranks torch gives documents from the beginning again; brimful gives nothing.
        shared = count // world_size
        assert joined(found)[:shared] == joined(wanted)[:shared]
        if count % world_size == 0:
            assert found == wanted
        extra = joined(found)[shared:]
        assert extra == ([shared * world_size + rank] if rank < count % world_size else [])


@pytest.mark.parametrize("count", [8, 9, 10, 11, 12])
def test_a_sampler_that_drops_the_last_ones_drops_the_last_step(count):
    dataset = dataset_of(count)
    found, dropped = [], 0
    for rank in range(4):
        sampler = data.DistributedSampler(dataset, 4, rank, shuffle=False, drop_last=True)
        loader = rows(dataset, sampler)
        assert loader.drop_last
        with warnings.catch_warnings(action="ignore"):  # of what is dropped, on the rank it is of
            batches = list(loader)
        assert batches == list(data.DataLoader(dataset, 1, sampler=sampler, collate_fn=numbers))
        found += joined(batches)
        dropped += loader.stats().dropped_documents
    assert Counter(found) == Counter(range(count - count % 4))
    assert dropped == count % 4


def test_a_shuffling_sampler_gives_every_rank_its_share_of_one_order():
    dataset = dataset_of(24)

    def epoch(seed, number):
        found = []
        for rank in range(3):
            sampler = data.DistributedSampler(dataset, 3, rank, seed=seed)
            sampler.set_epoch(number)
            found.append([i for batch in rows(dataset, sampler, 2) for i in batch])
        assert sorted(joined(found)) == list(range(24))
        return found

    assert epoch(1, 0) == epoch(1, 0)
    assert epoch(1, 0) != epoch(2, 0)
    assert epoch(1, 0) != epoch(1, 1)


def test_set_epoch_of_the_users_sampler_acts_on_the_next_epoch():
    dataset = dataset_of(30)
    sampler = data.DistributedSampler(dataset, 1, 0, seed=7)
    loader = rows(dataset, sampler, 4)
    assert loader.sampler is sampler
    other = rows(dataset, None, 4, shuffle=True, seed=7)
    by_itself = [list(other) for _ in range(4)]

    assert list(loader) == by_itself[0]
    sampler.set_epoch(3)
    assert list(loader) == by_itself[3]
    assert list(loader) == by_itself[3]  # nobody set another one, as with torch's loader
    running = iter(loader)
    head = [next(running) for _ in range(2)]
    sampler.set_epoch(1)  # in the middle of an epoch, which goes on
    assert head + list(running) == by_itself[3]
    assert list(loader) == by_itself[1]
    for epoch in range(4):  # the loop of torch's documentation
        sampler.set_epoch(epoch)
        assert list(loader) == by_itself[epoch]


def test_epochs_go_on_by_themselves_until_somebody_sets_one():
    dataset = dataset_of(12)
    sampler = data.DistributedSampler(dataset, 1, 0)
    loader = rows(dataset, sampler)
    assert list(loader) != list(loader)


def test_a_state_keeps_its_place_in_the_epoch_that_is_set_on_the_sampler():
    dataset = dataset_of(20)

    def made():
        sampler = data.DistributedSampler(dataset, 1, 0, seed=3)
        return sampler, rows(dataset, sampler, 2)

    sampler, loader = made()
    sampler.set_epoch(2)
    iterator = iter(loader)
    head = [next(iterator) for _ in range(3)]
    state = json.loads(json.dumps(loader.state_dict()))
    tail = list(iterator)
    for sets in (True, False):
        sampler, loader = made()
        loader.load_state_dict(state)
        if sets:
            sampler.set_epoch(2)
        assert list(loader) == tail
    assert sorted(joined(head + tail)) == list(range(20))


def test_an_epoch_that_is_no_number_is_refused_where_it_is_used():
    dataset = dataset_of(4)
    sampler = data.DistributedSampler(dataset, 1, 0)
    loader = rows(dataset, sampler)
    sampler.set_epoch("second")
    with pytest.raises(bf.PlanError, match="epoch is 'second'"):
        iter(loader)


@pytest.mark.parametrize(
    ("make", "shuffle", "seed"),
    [
        (data.SequentialSampler, False, 0),
        (data.RandomSampler, True, 0),
        (lambda it: data.RandomSampler(it, generator=torch.Generator().manual_seed(5)), True, 5),
        (lambda it: data.RandomSampler(it, num_samples=len(it)), True, 0),
        (lambda it: data.DistributedSampler(it, 2, 1, seed=9), True, 9),
        (lambda it: data.DistributedSampler(it, 2, 1, shuffle=False, seed=9), False, 9),
    ],
    ids=range(6),
)
def test_samplers_of_torch_are_understood(make, shuffle, seed):
    dataset = dataset_of(6)
    loader = bf.DataLoader(dataset, sampler=make(dataset), seq_len=3)
    assert (loader.config.shuffle, loader.config.seed) == (shuffle, seed)
    assert bf.DataLoader(dataset, sampler=make(dataset), seq_len=3, seed=77).config.seed == 77


def test_derived_samplers_are_understood_where_they_draw_as_torchs():
    class Named(data.DistributedSampler):
        pass

    class Backwards(data.DistributedSampler):
        def __iter__(self):
            return reversed(list(super().__iter__()))

    dataset = dataset_of(6)
    assert bf.DataLoader(dataset, sampler=Named(dataset, 2, 1), seq_len=3).config.rank == 1
    with pytest.raises(bf.PlanError, match="sampler is a Backwards"):
        bf.DataLoader(dataset, sampler=Backwards(dataset, 2, 1), seq_len=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda it: [0, 1, 2],
        lambda it: range(3),
        lambda it: data.SubsetRandomSampler([0, 1]),
        lambda it: data.WeightedRandomSampler([1.0, 2.0], 4),
        lambda it: data.RandomSampler(it, replacement=True),
        lambda it: data.RandomSampler(it, num_samples=4),
        lambda it: data.SequentialSampler(it[:3]),
        lambda it: data.RandomSampler(it[:3]),
        lambda it: data.DistributedSampler([*it, 1], 2, 0),
        lambda it: 3,
    ],
    ids=range(10),
)
def test_samplers_that_draw_in_another_way_are_refused_with_what_to_do(make):
    dataset = dataset_of(6)
    with pytest.raises(bf.PlanError, match="sampler is") as caught:
        bf.DataLoader(dataset, sampler=make(dataset), seq_len=3)
    assert "once" in str(caught.value) or "shuffle=" in str(caught.value)


def test_a_batch_sampler_is_refused_with_what_to_do():
    dataset = dataset_of(6)
    batches = data.BatchSampler(data.SequentialSampler(dataset), 2, False)
    with pytest.raises(bf.PlanError, match=r"batch_sampler is a BatchSampler.*Give batch_size="):
        bf.DataLoader(dataset, batch_sampler=batches, seq_len=3)


def test_a_rank_of_the_loader_and_one_of_the_sampler_must_be_the_same():
    dataset = dataset_of(6)
    sampler = data.DistributedSampler(dataset, 3, 2)
    assert bf.DataLoader(dataset, sampler=sampler, seq_len=3, rank=2, world_size=3)
    with pytest.raises(bf.PlanError, match=r"rank=0 and world_size=3, and the sampler .* rank 2"):
        bf.DataLoader(dataset, sampler=sampler, seq_len=3, rank=0, world_size=3)


def test_ranks_of_the_sampler_count_before_those_of_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "8")
    dataset = dataset_of(6)
    config = bf.DataLoader(
        dataset, sampler=data.DistributedSampler(dataset, 3, 2), seq_len=3
    ).config
    assert (config.rank, config.world_size) == (2, 3)


def test_a_generator_gives_the_seed_and_is_not_drawn_from():
    dataset = dataset_of(40)
    generator = torch.Generator().manual_seed(2**63 + 11)
    before = generator.get_state()
    everyones = torch.get_rng_state()
    loader = bf.DataLoader(dataset, 2, True, seq_len=6, generator=generator)
    seeded = bf.DataLoader(dataset, 2, True, seq_len=6, seed=2**63 + 11)
    assert loader.config.seed == 2**63 + 11
    for ours, theirs in zip(loader, seeded, strict=True):
        assert same(ours, theirs)
    assert torch.equal(generator.get_state(), before)
    assert torch.equal(torch.get_rng_state(), everyones)
    assert bf.DataLoader(dataset, seq_len=6, seed=4, generator=generator).config.seed == 4
    sampler = data.RandomSampler(dataset)
    assert (
        bf.DataLoader(dataset, sampler=sampler, seq_len=6, generator=generator).config.seed
        == 2**63 + 11
    )
    with pytest.raises(TypeError, match=r"generator is 5; expected a torch\.Generator"):
        bf.DataLoader(dataset, seq_len=6, generator=5)
    with pytest.raises(TypeError, match="expected a torch"):
        bf.DataLoader(dataset, seq_len=6, generator=np.random.default_rng())
