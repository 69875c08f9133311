"""torch's path is torch's: construction, defaults and attributes, item by item beside its class."""

import inspect
import multiprocessing

import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf
from brimful.drop_in.torch_arguments import TORCH_NAMES
from brimful.drop_in.torch_loader import TorchLoader
from side_by_side import same

NUMBERS = list(range(10))
NAMES = ", ".join  # of cases: the same in every process, as the values of arguments are not
ATTRIBUTES = (
    "batch_size", "drop_last", "num_workers", "pin_memory", "timeout", "worker_init_fn",
    "prefetch_factor", "persistent_workers", "in_order", "multiprocessing_context",
    "pin_memory_device", "collate_fn", "generator",
)  # fmt: skip


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(10))


class Sized(Stream):
    def __len__(self):
        return 10


def context(name):
    return multiprocessing.get_context(name)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"prefetch_factor": -1, "num_workers": 1},
        {"persistent_workers": True},
        {"batch_size": 0},
        {"batch_size": -1},
        {"batch_size": True},
        {"batch_size": 2.0},
        {"batch_size": "2"},
        {"sampler": [1], "shuffle": True},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_sampler": [[1]], "shuffle": True},
        {"batch_sampler": [[1]], "sampler": [1]},
        {"batch_sampler": [[1]], "drop_last": True},
        {"batch_size": None, "drop_last": True},
        {"multiprocessing_context": "threads", "num_workers": 1},
        {"multiprocessing_context": "fork"},
        {"multiprocessing_context": context("fork")},
        {"multiprocessing_context": 3, "num_workers": 1},
        {"drop_last": "yes"},
        {"num_workers": "1"},
    ],
    ids=NAMES,
)
def test_point_1_arguments_that_torch_refuses(arguments):
    kind, _ = same(lambda DataLoader: DataLoader(NUMBERS, **arguments))
    assert issubclass(kind, ValueError | TypeError)


def test_point_2_timeout_without_workers_fails_at_iter_only():
    assert same(lambda DataLoader: len(DataLoader(NUMBERS, timeout=3))) == 10
    assert same(lambda DataLoader: iter(DataLoader(NUMBERS, timeout=3)))[0] is AssertionError


@pytest.mark.parametrize(
    "arguments",
    [{"shuffle": True}, {"shuffle": 1}, {"sampler": [1]}, {"batch_sampler": [[1]]}, {"shuffle": 0}],
    ids=NAMES,
)
def test_point_3_iterable_datasets_take_no_sampler(arguments):
    assert same(lambda DataLoader: list(DataLoader(Stream(), **arguments)))[0] in (
        ("list",) if arguments == {"shuffle": 0} else (ValueError,)
    )
    assert len(same(lambda DataLoader: list(DataLoader(Stream(), shuffle=False)))[1]) == 10


@pytest.mark.parametrize("arguments", [{}, {"batch_size": None}, {"shuffle": True}], ids=str)
def test_point_4_empty_datasets(arguments):
    def program(DataLoader):
        loader = DataLoader([], **arguments)
        return len(loader), list(loader)

    result = same(program)
    assert result[0] is ValueError if arguments.get("shuffle") else result[1][0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"batch_size": 4, "num_workers": 2},
        {"num_workers": 1, "prefetch_factor": 3, "persistent_workers": True, "timeout": 1.5},
        {"num_workers": 1, "multiprocessing_context": "spawn", "in_order": False},
        {"num_workers": 1, "multiprocessing_context": context("forkserver")},
        {"batch_size": None},
        {"batch_sampler": [[1, 2], [3]]},
        {"shuffle": True, "drop_last": True, "batch_size": 3, "pin_memory_device": "cuda"},
        {"collate_fn": list, "worker_init_fn": print, "generator": torch.Generator()},
        {"batch_size": np.int64(3), "shuffle": None},
    ],
    ids=NAMES,
)
def test_points_5_6_7_defaults_and_attributes(arguments):
    def program(DataLoader):
        loader = DataLoader(NUMBERS, **arguments)
        found = {name: getattr(loader, name) for name in ATTRIBUTES}
        kinds = [type(getattr(loader, name)) for name in ("sampler", "batch_sampler", "dataset")]
        return found, kinds, len(loader), loader.dataset is NUMBERS

    same(program)


def test_point_5_thirteen_arguments_have_places_and_four_have_names_alone():
    places = (4, False, None, None, 0, None, False, True, 0, None, None, None)
    assert same(lambda DataLoader: [len(DataLoader(NUMBERS, *places))])[1] == [2]
    with pytest.raises(TypeError):
        bf.DataLoader(NUMBERS, *places, None)
    parameters = inspect.signature(data.DataLoader).parameters
    assert {"dataset", *TORCH_NAMES} == {*parameters, "snapshot_every_n_steps"}
    ours = inspect.signature(bf.DataLoader).parameters
    for name, parameter in parameters.items():
        assert ours[name].kind is parameter.kind
    assert list(ours)[:13] == list(parameters)[:13]
    assert inspect.signature(TorchLoader) == inspect.signature(data.DataLoader)
    assert list(bf.DataLoader(NUMBERS, num_workers=None, batch_size=5)) != []
    assert bf.DataLoader(NUMBERS, num_workers=None).num_workers == 0


def test_point_6_batch_samplers_may_be_lists_or_generators():
    def program(DataLoader):
        loader = DataLoader(NUMBERS, batch_sampler=[[1, 2], [5]])
        return loader.batch_size, loader.drop_last, type(loader.sampler), len(loader), list(loader)

    same(program)
    batches = [[3, 4], [5]]

    def generated(DataLoader):
        loader = DataLoader(NUMBERS, batch_sampler=(batch for batch in batches))
        first = list(loader)
        try:
            len(loader)
        except TypeError as error:
            return first, str(error)
        raise AssertionError("a generator has no length")

    same(generated)


def test_point_7_without_batches_items_come_one_by_one_through_default_convert():
    items = [np.arange(2), {"a": np.float32(1)}, "text", 3]

    def program(DataLoader):
        loader = DataLoader(items, batch_size=None)
        return loader.batch_sampler, len(loader), list(loader)

    same(program)
    same(lambda DataLoader: list(DataLoader(NUMBERS, batch_size=None, shuffle=True)))
    same(lambda DataLoader: list(DataLoader(NUMBERS, batch_size=None, sampler=[[1], 2, 3])))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 3), ("batch_sampler", [[1]]), ("sampler", [1]), ("drop_last", True),
        ("dataset", [1]), ("persistent_workers", True), ("batch_size", 1),
    ],
)  # fmt: skip
def test_point_8_attributes_that_may_not_be_set(name, value):
    def program(DataLoader):
        setattr(DataLoader(NUMBERS), name, value)

    assert same(program)[0] is ValueError


def test_point_8_attributes_that_may_be_set_take_effect():
    def program(DataLoader):
        loader = DataLoader(NUMBERS, 4, shuffle=True)
        came = [list(loader)]
        loader.collate_fn = sum
        loader.generator = torch.Generator().manual_seed(1)
        loader.pin_memory = True
        came.append(list(loader))
        loader.pin_memory = False
        loader.num_workers, loader.prefetch_factor = 1, 1
        loader.worker_init_fn = torch.manual_seed
        came.append([loader.prefetch_factor, *loader])
        loader.timeout = 20
        came.append(list(loader))
        loader.num_workers = 0
        try:
            iter(loader)
        except AssertionError:
            return came
        raise AssertionError("a timeout has no effect without workers")

    same(program)


def test_point_9_samplers_are_the_users_own():
    sampler = data.SequentialSampler(NUMBERS)
    batch_sampler = data.BatchSampler(sampler, 4, False)
    assert bf.DataLoader(NUMBERS, sampler=sampler).sampler is sampler
    assert bf.DataLoader(NUMBERS, batch_sampler=batch_sampler).batch_sampler is batch_sampler
    assert bf.DataLoader(NUMBERS, collate_fn=sum).collate_fn is sum

    def program(DataLoader):
        distributed = data.distributed.DistributedSampler(NUMBERS, num_replicas=2, rank=1, seed=4)
        loader = DataLoader(NUMBERS, 3, sampler=distributed)
        came = [list(loader)]
        for epoch in (0, 5):
            loader.sampler.set_epoch(epoch)
            came.append(list(loader))
        return came, len(loader)

    same(program)


@pytest.mark.parametrize("dataset", [Stream(), Sized(), NUMBERS], ids=lambda d: type(d).__name__)
@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None},
        {"batch_size": 4, "num_workers": 3},
    ],
    ids=NAMES,
)  # fmt: skip
def test_point_10_lengths(dataset, arguments):
    same(lambda DataLoader: len(DataLoader(dataset, **arguments)))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_point_10_a_stream_longer_than_it_said_comes_whole_with_warnings(num_workers):
    class Short(Stream):
        def __len__(self):
            return 3

    dataset = Short()

    def program(DataLoader):
        loader = DataLoader(dataset, 2, num_workers=num_workers)
        return len(loader), list(loader)

    assert len(same(program)[1][1][1]) == (10 if num_workers else 5)
