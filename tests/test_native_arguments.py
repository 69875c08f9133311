"""torch's arguments and attributes on the native path, against torch's own loader."""

import multiprocessing

import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf

DATASET = [np.arange(i, i + 4) for i in range(10)]


def native(*args, **arguments):
    return bf.DataLoader(DATASET, *args, seq_len=4, **arguments)


def torchs(*args, **arguments):
    return data.DataLoader(DATASET, *args, **arguments)


def written(arguments):
    """For names of tests, the same in every process."""
    plain = bool | int | float | str
    return ", ".join(
        f"{name}={value if isinstance(value, plain) else type(value).__name__}"
        for name, value in arguments.items()
    )


SAMPLER = data.SequentialSampler(DATASET)
BATCHES = data.BatchSampler(SAMPLER, 2, False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"timeout": -0.5},
        {"num_workers": 0, "prefetch_factor": 2},
        {"num_workers": 0, "prefetch_factor": 0},
        {"num_workers": 2, "prefetch_factor": -1},
        {"num_workers": 0, "persistent_workers": True},
        {"batch_size": 0},
        {"batch_size": -1},
        {"batch_size": True},
        {"batch_size": 2.0},
        {"batch_size": None, "drop_last": True},
        {"sampler": SAMPLER, "shuffle": True},
        {"batch_sampler": BATCHES, "batch_size": 2},
        {"batch_sampler": BATCHES, "shuffle": True},
        {"batch_sampler": BATCHES, "sampler": SAMPLER},
        {"batch_sampler": BATCHES, "drop_last": True},
        {"num_workers": 2, "multiprocessing_context": "thread"},
        {"num_workers": 2, "multiprocessing_context": ""},
        {"num_workers": 0, "multiprocessing_context": "fork"},
        {"num_workers": 0, "multiprocessing_context": 3},
        {"num_workers": 2, "multiprocessing_context": 3},
        {"num_workers": 2, "multiprocessing_context": multiprocessing},
    ],
    ids=written,
)
def test_what_torch_refuses_is_refused_with_the_same_kind_of_exception(arguments):
    with pytest.raises((ValueError, TypeError)) as theirs:
        torchs(**arguments)
    with pytest.raises((ValueError, TypeError)) as ours:
        native(**arguments)
    assert isinstance(ours.value, theirs.type)


@pytest.mark.parametrize(
    "arguments",
    [
        {"worker_init_fn": print, "num_workers": 2},
        {"multiprocessing_context": "spawn", "num_workers": 2},
        {"multiprocessing_context": multiprocessing.get_context("fork"), "num_workers": 1},
        {"multiprocessing_context": torch.multiprocessing.get_context("spawn"), "num_workers": 1},
        {"persistent_workers": True, "num_workers": 2, "prefetch_factor": 4},
        {"pin_memory_device": "cuda"},
        {"in_order": False, "num_workers": 2},
        {"shuffle": None, "sampler": None, "batch_sampler": None, "collate_fn": None},
        {"shuffle": False, "sampler": SAMPLER},
        {"shuffle": 0, "pin_memory": 0},
        {"pin_memory": None},
        {"generator": torch.Generator()},
        {"timeout": 30.0, "num_workers": 2},
    ],
    ids=written,
)
def test_what_torch_takes_changes_no_batch(arguments):
    torchs(**arguments)
    loader = native(2, **arguments)
    plain = native(2)
    for ours, theirs in zip(loader, plain, strict=True):
        assert torch.equal(ours["input_ids"], theirs["input_ids"])
    told = loader.explain().arguments
    assert all(told[name] for name in arguments)


def test_flags_may_be_numbers_as_torch_takes_them():
    assert native(shuffle=1).config.shuffle is True
    assert native(shuffle=0).config.shuffle is False
    loader = native(pin_memory=0)
    with pytest.warns(UserWarning, match="torch has no accelerator"):
        loader.pin_memory = 1
    assert loader.config.pin_memory is True
    for name in ("shuffle", "pin_memory"):
        with pytest.raises(bf.PlanError, match=f"{name} is 2"):
            native(**{name: 2})


def test_the_first_arguments_have_torchs_places():
    loader = bf.DataLoader(
        DATASET, 2, False, None, None, 1, list, False, True, 5, print, "spawn",
        torch.Generator().manual_seed(3), seq_len=4,
    )  # fmt: skip
    assert (loader.batch_size, loader.num_workers, loader.timeout) == (2, 1, 5)
    assert (loader.collate_fn, loader.worker_init_fn, loader.drop_last) == (list, print, True)
    assert loader.config.seed == 3


def attributes(loader):
    """Those of plain values."""
    names = (
        "batch_size drop_last num_workers pin_memory timeout worker_init_fn prefetch_factor "
        "persistent_workers in_order pin_memory_device dataset collate_fn generator "
        "multiprocessing_context"
    )
    return {name: getattr(loader, name) for name in names.split()}


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_workers": 0},
        {"num_workers": 2},
        {"batch_size": 3, "drop_last": True, "num_workers": 1, "prefetch_factor": 5},
        {"num_workers": 2, "persistent_workers": True, "timeout": 9, "in_order": False},
        {"num_workers": 2, "worker_init_fn": print, "multiprocessing_context": "spawn"},
        {"num_workers": 0, "generator": torch.Generator(), "pin_memory_device": "cuda"},
    ],
    ids=written,
)
def test_attributes_read_as_those_of_torchs_loader(arguments):
    ours = attributes(native(collate_fn=list, **arguments))
    theirs = attributes(torchs(collate_fn=list, **arguments))
    contexts = ours.pop("multiprocessing_context"), theirs.pop("multiprocessing_context")
    assert type(contexts[0]) is type(contexts[1])
    assert ours == theirs


@pytest.mark.parametrize("arguments", [{}, {"shuffle": True}, {"sampler": SAMPLER}], ids=written)
def test_samplers_are_those_of_torchs_loader_over_the_documents(arguments):
    ours, theirs = native(3, drop_last=True, **arguments), torchs(3, drop_last=True, **arguments)
    assert type(ours.sampler) is type(theirs.sampler)
    assert len(ours.sampler) == len(theirs.sampler)
    assert type(ours.batch_sampler) is type(theirs.batch_sampler)
    assert len(ours.batch_sampler) == len(theirs.batch_sampler)
    assert (ours.batch_sampler.batch_size, ours.batch_sampler.drop_last) == (3, True)
    if "sampler" in arguments:
        assert ours.sampler is SAMPLER


def test_an_empty_dataset_has_a_sampler_too():
    loader = bf.DataLoader([], shuffle=True, seq_len=4)
    assert list(loader.sampler) == list(loader) == []


FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


@pytest.mark.parametrize("name", FIXED)
def test_what_torch_lets_nobody_set_is_a_value_error(name):
    for loader in (native(), torchs()):
        with pytest.raises(ValueError, match=name):
            setattr(loader, name, getattr(loader, name))


def test_the_generator_cannot_be_changed_once_its_seed_was_taken():
    with pytest.raises(ValueError, match="generator cannot be set"):
        native().generator = torch.Generator()


def test_attributes_that_can_be_set_take_effect_with_the_next_iteration():
    loader = native(2, collate_fn=len)
    running = iter(loader)
    assert next(running) == 2
    loader.collate_fn = list
    assert next(running) == 2
    assert len(next(iter(loader))) == 2
    loader.num_workers = 5
    loader.prefetch_factor = 3
    assert (loader.config.num_workers, loader.config.depth, loader.prefetch_factor) == (5, 15, 3)
    loader.num_workers = 0
    assert loader.prefetch_factor is None
    assert sum(map(len, loader)) == 10
    loader.timeout = 7
    assert loader.config.timeout == loader.timeout == 7
    loader.worker_init_fn = print
    loader.in_order = False
    loader.pin_memory_device = "cuda"
    assert (loader.worker_init_fn, loader.in_order) == (print, False)
    with pytest.warns(UserWarning, match="torch has no accelerator"):
        loader.pin_memory = True
    assert loader.pin_memory
    loader.num_workers = 1
    loader.multiprocessing_context = "fork"
    assert loader.multiprocessing_context is multiprocessing.get_context("fork")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("num_workers", -1, ValueError),
        ("num_workers", "two", ValueError),
        ("timeout", -1, ValueError),
        ("prefetch_factor", 0, ValueError),
        ("pin_memory", "yes", ValueError),
        ("collate_fn", 5, TypeError),
        ("collate_fn", None, TypeError),
        ("multiprocessing_context", "thread", ValueError),
        ("multiprocessing_context", 5, TypeError),
    ],
)
def test_a_bad_value_is_refused_when_it_is_set_and_changes_nothing(name, value, kind):
    loader = native(2, collate_fn=len)
    before = getattr(loader, name)
    with pytest.raises(kind):
        setattr(loader, name, value)
    assert getattr(loader, name) == before
    assert sum(loader) == 10


def test_a_collate_function_can_be_given_later_where_there_are_documents():
    loader = native(2, packing="pad")
    assert isinstance(next(iter(loader)), bf.Batch)
    loader.collate_fn = lambda documents: [document.tolist() for document in documents]
    loader.set_epoch(0)
    assert next(iter(loader)) == [DATASET[0].tolist(), DATASET[1].tolist()]
    loader = native(2, fields=("labels",))
    with pytest.raises(ValueError, match="leave fields out"):
        loader.collate_fn = list
    assert isinstance(next(iter(loader)), bf.Batch)


def test_each_argument_of_torch_is_explained():
    told = native().explain().arguments
    assert "DistributedSampler" in told["sampler"]
    assert "threads run no Python" in told["worker_init_fn"]
    assert not any("refused" in told[name] for name in told.keys() - {
        "sampler", "batch_sampler", "batch_size",
    })  # fmt: skip


def test_an_iterator_has_the_length_of_its_pass_and_keeps_ending():
    loader = native(4)
    iterator = iter(loader)
    assert len(iterator) == 3
    next(iterator)
    other = iter(loader)
    assert len(iterator) == len(other) == 3
    list(iterator)
    assert len(iterator) == 3
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)
    state = loader.state_dict()
    running = iter(loader)
    next(running)
    rest = native(4)
    rest.load_state_dict(loader.state_dict())
    assert len(iter(rest)) == 2
    assert state["cursor"]["bin"] == 0
    assert not hasattr(loader, "__next__")


def test_the_dataset_of_paths_is_the_corpus_and_so_has_documents(tmp_path):
    with bf.ShardWriter(tmp_path / "s") as writer:
        writer.add([1, 2, 3])
    for given in (tmp_path / "s", str(tmp_path / "s"), [tmp_path / "s"]):
        loader = bf.DataLoader(given, seq_len=4)
        assert len(loader.dataset) == len(loader.sampler) == 1
    assert native().dataset is DATASET
