"""States on torch's path: what was delivered and what comes after a resume is one epoch."""

import copy
import itertools
import json
import pickle
import random
import time
import warnings

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch.utils import data
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import RandomSampler as TorchdataSampler

import brimful as bf
from brimful.drop_in.torch_random import pack, unpack
from side_by_side import WORKERS

NUMBERS = list(range(23))


class Stream(data.IterableDataset):
    """Whole in each worker, or a share of it."""

    def __init__(self, count=13, shared=False):
        self.count, self.shared = count, shared

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if self.shared and info is not None else (0, 1)
        return iter(range(first, self.count, step))


class Counting(Stream):
    """Has a state of its own, counts what is read, and cannot be read from its beginning."""

    def __init__(self):
        super().__init__()
        self.place = self.read = 0

    def __iter__(self):
        while self.place < self.count:
            self.place += 1
            self.read += 1
            yield self.place - 1
        self.place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


class StatefulIterator:
    def __init__(self):
        self.place = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.place == 13:
            raise StopIteration
        self.place += 1
        return self.place - 1

    state_dict, load_state_dict = Counting.state_dict, Counting.load_state_dict


class OfStatefulIterators(Stream):
    def __iter__(self):
        return StatefulIterator()


class ShuffledStream(Stream):
    """In an order of Python's generator, or in workers of the worker's."""

    def __iter__(self):
        numbers = list(range(self.count))
        random.shuffle(numbers)
        yield from numbers


class Foreign(data.Sampler):
    """Batches in an order of numpy's and Python's generators."""

    def __iter__(self):
        order = np.random.permutation(23).tolist()
        random.shuffle(order)
        yield from (order[first : first + 4] for first in range(0, 23, 4))

    def __len__(self):
        return 6


class Epochs(data.Sampler):
    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter(random.Random(self.epoch).sample(NUMBERS, 23))

    def __len__(self):
        return 23


class Uneven(data.Dataset):
    """Every third item is late, so that workers overtake each other."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(0.03 if index % 3 == 0 else 0)
        return index


class Failing(data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index in (3, 4):
            raise KeyError(index)
        return index


def generator(seed):
    return torch.Generator().manual_seed(seed)


# How a loader is made, of a seed that is another one for the loader that goes on.
KINDS = {
    "in order": lambda _: {"dataset": NUMBERS, "batch_size": 4},
    "shuffled": lambda _: {"dataset": NUMBERS, "batch_size": 4, "shuffle": True},
    "shuffled by a generator": lambda seed: {
        "dataset": NUMBERS, "batch_size": 4, "shuffle": True, "generator": generator(seed),
    },
    "workers' generator": lambda seed: {
        "dataset": NUMBERS, "batch_size": 4, "shuffle": True, "generator": generator(seed),
        "drop_last": True,
    },
    "random sampler": lambda seed: {
        "dataset": NUMBERS, "batch_size": 4,
        "sampler": data.RandomSampler(NUMBERS, generator=generator(seed)),
    },
    "with replacement": lambda _: {
        "dataset": NUMBERS, "batch_size": 4, "sampler": data.RandomSampler(NUMBERS, True, 21),
    },
    "weighted": lambda _: {
        "dataset": NUMBERS, "batch_size": 4,
        "sampler": data.WeightedRandomSampler(torch.ones(23), 23, replacement=False),
    },
    "subset": lambda seed: {
        "dataset": NUMBERS, "batch_size": 4,
        "sampler": data.SubsetRandomSampler(range(5, 20), generator=generator(seed)),
    },
    "batch sampler": lambda seed: {
        "dataset": NUMBERS, "batch_sampler": data.BatchSampler(
            data.RandomSampler(NUMBERS, generator=generator(seed)), 5, False
        ),
    },
    "listed batches": lambda _: {"dataset": NUMBERS, "batch_sampler": [[1, 2], [3], [4, 5]]},
    "generated batches": lambda _: {
        "dataset": NUMBERS, "batch_sampler": itertools.batched(NUMBERS, 4)
        if hasattr(itertools, "batched") else ([i, i + 1] for i in range(0, 22, 2)),
    },
    "foreign batches": lambda _: {"dataset": NUMBERS, "batch_sampler": Foreign()},
    "distributed": lambda seed: {
        "dataset": NUMBERS, "batch_size": 4,
        "sampler": data.distributed.DistributedSampler(NUMBERS, 2, 1, seed=5),
    },
    "torchdata's sampler": lambda seed: {
        "dataset": NUMBERS, "batch_size": 4,
        "sampler": TorchdataSampler(NUMBERS, generator=generator(seed)),
    },
    "one by one": lambda _: {"dataset": NUMBERS[:7], "batch_size": None, "shuffle": True},
    "stream": lambda _: {"dataset": Stream(), "batch_size": 4},
    "shared stream": lambda _: {"dataset": Stream(shared=True), "batch_size": 4},
    "stream one by one": lambda _: {"dataset": Stream(5), "batch_size": None},
    "shuffled stream": lambda _: {"dataset": ShuffledStream(), "batch_size": 4},
    "stateful stream": lambda _: {"dataset": Counting(), "batch_size": 4},
    "stateful iterators": lambda _: {"dataset": OfStatefulIterators(), "batch_size": 4},
    "Hugging Face stream": lambda _: {
        "dataset": Dataset.from_dict({"n": NUMBERS}).to_iterable_dataset(num_shards=2),
        "batch_size": 4, "collate_fn": lambda rows: [row["n"] for row in rows],
    },
}  # fmt: skip


WITH_WORKERS = (
    "shuffled", "shuffled by a generator", "foreign batches", "distributed", "shared stream",
    "shuffled stream", "stateful stream",
)  # fmt: skip


def seed_all(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def values(batches):
    return [b.tolist() if isinstance(b, torch.Tensor) else b for b in batches]


def make(kind, seed, num_workers):
    seed_all(seed)
    return bf.DataLoader(**KINDS[kind](seed), num_workers=num_workers)


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
