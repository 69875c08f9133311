"""Loaders on torch's path, one for each way to draw an order, for tests of their states."""

import itertools
import random
import time

import numpy as np
import torch
from datasets import Dataset
from torch.utils import data
from torchdata.stateful_dataloader.sampler import RandomSampler as TorchdataSampler

import brimful as bf

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
