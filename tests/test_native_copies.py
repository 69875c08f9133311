"""Copies of native loaders, pickled or not: they stand where the original stands."""

import copy
import json
import os
import pickle
import subprocess
import sys

import datasets
import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf
from truth import corpus_of, document, same

ROWS = [document(i, 1 + i % 9, stride=100).tolist() for i in range(60)]
HOW = {"batch_size": 2, "shuffle": True, "seq_len": 12, "seed": 3}

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda loader: pickle.loads(pickle.dumps(loader)),
}


@pytest.fixture(params=sorted(COPIES))
def copied(request):
    return COPIES[request.param]


class Items(data.Dataset):
    def __len__(self):
        return len(ROWS)

    def __getitem__(self, index):
        return torch.tensor(ROWS[index])


def equal(ours, theirs):
    return all(same(a, b) for a, b in zip(ours, theirs, strict=True))


def loaders(tmp_path):
    """Loaders of the same documents, from all that can be pickled."""
    for half in (0, 1):
        with bf.ShardWriter(tmp_path / f"s{half}") as writer:
            for row in ROWS[half * 30 :][:30]:
                writer.add(row)
    dataset = datasets.Dataset.from_dict({"input_ids": ROWS})
    dataset.save_to_disk(tmp_path / "saved")
    both = [tmp_path / "s0", tmp_path / "s1"]
    yield bf.DataLoader([str(path) for path in both], **HOW)
    yield bf.DataLoader(bf.open(both), **HOW)
    yield bf.DataLoader(str(tmp_path / "s*/*.idx"), **HOW)
    yield bf.DataLoader(bf.open(tmp_path / "saved"), **HOW)
    yield bf.DataLoader(dataset, **HOW)
    yield bf.DataLoader(ROWS, **HOW)
    yield bf.DataLoader(Items(), **HOW, ingest="once")
    mixed = bf.mix({name: bf.open(tmp_path / name) for name in ("s0", "s1")}, weights=None)
    yield bf.DataLoader(mixed, **HOW)


def test_a_copy_delivers_what_the_original_would(tmp_path, monkeypatch, copied):
    for number, loader in enumerate(loaders(tmp_path)):
        fresh = copied(loader)
        assert equal(fresh, copied(loader))
        first, second = list(loader), list(loader)
        assert not equal(first[:3], second[:3])
        assert equal(copied(fresh), second), number  # fresh has given its first epoch
        assert equal(fresh, second)
        assert fresh.config == loader.config


def test_files_are_found_from_another_working_directory(tmp_path, monkeypatch):
    with bf.ShardWriter(tmp_path / "s") as writer:
        for row in ROWS:
            writer.add(row)
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(bf.open("s"))
    monkeypatch.chdir("/")
    assert [d.tolist() for d in pickle.loads(pickled)] == ROWS


def test_a_corpus_in_memory_is_copied_as_itself_and_not_pickled(copied):
    corpus = corpus_of([3, 4])
    assert copy.copy(corpus) is copy.deepcopy(corpus) is corpus
    with pytest.raises(TypeError, match="holds tokens in memory and cannot be pickled"):
        pickle.dumps(bf.DataLoader(corpus, seq_len=4))
    assert equal(copy.deepcopy(bf.DataLoader(corpus, seq_len=4)), bf.DataLoader(corpus, seq_len=4))


def test_a_running_iterator_is_not_in_the_copy_and_a_loaded_state_is(copied):
    loader = bf.DataLoader(ROWS, **HOW)
    iterator = iter(loader)
    head = [next(iterator) for _ in range(4)]
    twin = copied(loader)
    state = json.loads(json.dumps(loader.state_dict()))
    tail = list(iterator)
    second = list(loader)
    assert equal(twin, second)
    resumed = bf.DataLoader(ROWS, **HOW)
    resumed.load_state_dict(state)
    twin = copied(resumed)
    assert equal(twin, tail)
    assert equal(twin, second)
    assert equal(resumed, tail)
    assert head


def test_epochs_and_attributes_that_were_set_are_in_the_copy(copied):
    loader = bf.DataLoader(ROWS, **HOW, collate_fn=len)
    loader.set_epoch(4)
    loader.collate_fn = list
    loader.num_workers = 3
    loader.prefetch_factor = 5
    loader.worker_init_fn = print
    twin = copied(loader)
    assert (twin.config.num_workers, twin.config.depth) == (3, 15)
    assert (twin.collate_fn, twin.worker_init_fn) == (list, print)
    assert list(twin) == list(loader) == list(twin)


def test_a_sampler_goes_along(copied):
    sampler = data.DistributedSampler(ROWS, 2, 1, seed=5)
    loader = bf.DataLoader(ROWS, 2, sampler=sampler, seq_len=12)
    sampler.set_epoch(3)
    twin = copied(loader)
    assert (twin.config.rank, twin.config.seed) == (1, 5)
    assert equal(twin, loader)


def test_a_copy_of_a_fresh_loader_fits_the_ranks_where_it_is_made(tmp_path):
    with bf.ShardWriter(tmp_path / "s") as writer:
        for row in ROWS:
            writer.add(row)
    pickled = pickle.dumps(bf.DataLoader(tmp_path / "s", **HOW))
    program = (
        "import pickle, sys, brimful; loader = pickle.loads(sys.stdin.buffer.read()); "
        "print(loader.config.rank, loader.config.world_size, sum(b.num_tokens for b in loader))"
    )
    tokens = 0
    for rank in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], input=pickled, capture_output=True, check=True,
            env=os.environ
            | {"PYTHONPATH": ":".join(sys.path), "RANK": str(rank), "WORLD_SIZE": "2"},
        )  # fmt: skip
        *place, count = map(int, done.stdout.split())
        assert place == [rank, 2]
        tokens += count
    assert tokens == sum(map(len, ROWS))


def test_a_changed_mix_goes_along(tmp_path):
    for name in "ab":
        with bf.ShardWriter(tmp_path / name) as writer:
            for i in range(200):
                writer.add(np.full(5, i))

    def loader(a):
        corpora = {name: bf.open(tmp_path / name) for name in "ab"}
        mixed = bf.mix(corpora, weights={"a": a, "b": 1}, epoch_tokens=500)
        return bf.DataLoader(mixed, seq_len=10, window=16)

    first = loader(1)
    iterator = iter(first)
    for _ in range(9):
        next(iterator)
    second = loader(3)
    second.load_state_dict(first.state_dict(), allow_mix_change=True)
    twin = pickle.loads(pickle.dumps(second))
    assert equal(twin, second)
    assert equal(pickle.loads(pickle.dumps(twin)), second)
