"""torch's path is torch's: iteration, order, workers and errors, item by item beside its class."""

import collections
import copy
import pickle
import random
import time

import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf
from side_by_side import WORKERS, plain, same

NUMBERS = list(range(10))


class Squares(data.Dataset):
    """Item i is i squared, with random numbers of all three generators."""

    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {
            "square": torch.tensor(index * index),
            "random": torch.rand(2),
            "others": (random.random(), np.random.rand()),
        }


class Batched(Squares):
    """Tells how it was asked."""

    def __getitem__(self, index):
        return f"one {index}"

    def __getitems__(self, indices):
        return [f"some {index} of {len(indices)}" for index in indices]


class Stream(data.IterableDataset):
    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


class Sharded(Stream):
    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))


class Worker(data.Dataset):
    """What a worker knows of itself."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = data.get_worker_info()
        if info is None:
            return index, None
        try:
            info.id = 3
        except RuntimeError as error:
            return index, info.id, info.num_workers, info.seed, type(info.dataset), str(error)
        return index


class Failing(data.Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 2:
            raise self.error
        return index


class Slow(data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(1)


def init(worker_id):
    torch.manual_seed(100 + worker_id)


@pytest.mark.parametrize("num_workers", WORKERS)
def test_point_11_iterators(num_workers):
    def program(DataLoader):
        loader = DataLoader(NUMBERS, 3, num_workers=num_workers, shuffle=True)
        one, other = iter(loader), iter(loader)
        came = [next(one), next(one), next(other), len(one), one is other, list(one), list(other)]
        came += [next(one, "end"), next(one, "end"), hasattr(loader, "__next__"), iter(one) is one]
        for batch in loader:
            came.append(batch)
            break
        return came, list(loader)

    same(program)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_point_11_persistent_workers_have_one_iterator(num_workers):
    def program(DataLoader):
        loader = DataLoader(
            Squares(), 3, num_workers=num_workers, shuffle=True, persistent_workers=True
        )
        first = iter(loader)
        came = [next(first), next(first)]
        second = iter(loader)  # left in the middle
        came += [first is second, list(second), list(loader), list(loader)]
        return came

    same(program)


@pytest.mark.parametrize("num_workers", WORKERS)
@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize(
    "sampler", ["none", "shuffle", "random", "replacement", "weighted", "subset"]
)
def test_points_12_13_draws_and_orders(num_workers, seeded, sampler):
    def program(DataLoader):
        generator = torch.Generator().manual_seed(3) if seeded else None
        own = {
            "random": data.RandomSampler(NUMBERS, generator=generator),
            "replacement": data.RandomSampler(NUMBERS, True, 7, generator=generator),
            "weighted": data.WeightedRandomSampler([0.5] * 10, 8, generator=generator),
            "subset": data.SubsetRandomSampler([4, 5, 6, 7], generator=generator),
        }.get(sampler)
        loader = DataLoader(
            NUMBERS, 3, sampler=own, shuffle=sampler == "shuffle" or None, generator=generator,
            num_workers=num_workers,
        )  # fmt: skip
        states = [torch.get_rng_state()]
        iterator = iter(loader)
        states.append(torch.get_rng_state())
        torch.rand(1)  # as a training loop draws, between iter() and next()
        came = list(iterator)
        states.append(torch.get_rng_state())
        came += [list(loader), None if generator is None else generator.get_state()]
        return states, came

    same(program)


@pytest.mark.parametrize("how", [{}, {"worker_init_fn": init}, {"persistent_workers": True}])
def test_point_14_seeds_of_workers(how):
    def program(DataLoader):
        loader = DataLoader(Squares(), 2, num_workers=2, **how)
        return list(loader), list(loader)

    same(program)


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", WORKERS)
def test_point_14_worker_info(num_workers):
    same(lambda DataLoader: list(DataLoader(Worker(), None, num_workers=num_workers)))
    assert data.get_worker_info() is None


@pytest.mark.parametrize("num_workers", WORKERS)
@pytest.mark.parametrize("kind", [Stream, Sharded])
@pytest.mark.parametrize("arguments", [{}, {"drop_last": True}], ids=str)
def test_point_15_iterable_datasets(num_workers, kind, arguments):
    def program(DataLoader):
        loader = DataLoader(kind(), 4, num_workers=num_workers, **arguments)
        single = DataLoader(kind(), None, num_workers=num_workers)
        return list(loader), list(loader), list(single)

    same(program)


@pytest.mark.parametrize("num_workers", WORKERS)
@pytest.mark.parametrize(
    "error", [KeyError("no such"), ValueError(2, "b"), OSError(5, "gone"), StopIteration()],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_point_16_errors_keep_their_type_and_iteration_goes_on(num_workers, error):
    def program(DataLoader):
        iterator = iter(DataLoader(Failing(error), 2, num_workers=num_workers))
        came = []
        for _ in range(6):
            try:
                came.append(next(iterator))
            except StopIteration:
                came.append("end")
            except Exception as failure:
                text = str(failure)
                assert "__getitem__" in text or num_workers == 0
                came.append((type(failure), text[:60]))
        return came

    same(program)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_point_17_getitems_serves_batches(num_workers):
    def program(DataLoader):
        how = {"num_workers": num_workers, "collate_fn": list}
        return list(DataLoader(Batched(), 4, **how)), list(DataLoader(Batched(), None, **how))

    same(program)


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "items",
    [
        ["a", "bc", "d"],
        [1.5, 2.5, 3.5],
        [np.arange(3, dtype=np.uint16)] * 3,
        [np.float32(1), np.float32(2)],
        [np.array("text")],
        [torch.arange(3), torch.arange(2)],
        [[1, 2], [1]],
        [{"input_ids": torch.arange(3), "labels": [1, 2, 3]}] * 3,
        [{"input_ids": [1, 2]}, {"input_ids": [3, 4]}],
        [{"a": 1}, {"b": 2}],
        [torch.tensor([5, 6, 7])] * 4,
        [Point(1, 2), Point(3, 4)],
        [(1, "a"), (2, "b")],
        [True, False],
        [b"x", b"y"],
        [None, None],
        [object()],
        [{1, 2}],
        [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
        [[], []],
    ],
    ids=lambda items: type(items[0]).__name__,
)
@pytest.mark.parametrize("batch_size", [2, None])
def test_point_18_items_are_collated_as_torch_does(items, batch_size):
    same(lambda DataLoader: list(DataLoader(items, batch_size)))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_point_18_own_collating(num_workers):
    def program(DataLoader):
        return list(DataLoader(NUMBERS, 4, collate_fn=sum, num_workers=num_workers))

    same(program)


class Pinning:
    def __init__(self, items):
        self.items, self.pinned = items, False

    def pin_memory(self):
        self.pinned = True
        return self


def told(items):
    return {"own": Pinning(items), "tensor": torch.tensor(items)}


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("device", ["", "cuda"])
def test_point_19_pinning(num_workers, device):
    def program(DataLoader):
        how = {"pin_memory": True, "pin_memory_device": device, "num_workers": num_workers}
        loader = DataLoader(NUMBERS, 5, collate_fn=told, **how)
        batches = list(loader)
        return [
            (batch["own"].pinned, batch["tensor"].is_pinned(), plain(batch["tensor"]))
            for batch in batches
        ], list(DataLoader(NUMBERS, 5, **how))

    same(program)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_point_20_loaders_pickle_and_iterators_do_not(copied):
    def program(DataLoader):
        loader = DataLoader(Squares(), 3, shuffle=True, generator=torch.Generator().manual_seed(2))
        iterator = iter(loader)
        next(iterator)
        another = copied(loader)
        assert type(another) is type(loader)
        came = [list(another), list(loader)]
        for thing in (iterator, _persistent(DataLoader)):
            try:
                copied(thing)
            except NotImplementedError:
                came.append("refused")
        return came

    assert same(program)[1][2:] == ["refused", "refused"]


def _persistent(DataLoader):
    loader = DataLoader(NUMBERS, num_workers=1, persistent_workers=True)
    copy.deepcopy(loader)  # before its first use
    next(iter(loader))
    return loader


def test_point_2_a_late_batch_is_an_error():
    def program(DataLoader):
        return next(iter(DataLoader(Slow(), num_workers=1, timeout=0.3)))

    kind, message = same(program)
    assert (kind, message) == (RuntimeError, "DataLoader timed out after 0.3 seconds")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_batches_may_come_out_of_order(num_workers):
    loader = bf.DataLoader(NUMBERS, 2, num_workers=num_workers, in_order=False)
    assert sorted(batch.tolist() for batch in loader) == [[i, i + 1] for i in range(0, 10, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_start_as_asked(method):
    def program(DataLoader):
        return list(DataLoader(NUMBERS, 4, num_workers=1, multiprocessing_context=method))

    same(program)


def test_profilers_find_torchs_names():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        list(bf.DataLoader(NUMBERS, 5))
    names = {event.key for event in profile.key_averages()}
    assert "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" in names
