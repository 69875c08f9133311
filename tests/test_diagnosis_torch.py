"""Diagnoses of torch's loaders: what is wrong is found, no batch is taken, no generator moves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from torch.utils import data

import brimful as bf
from brimful.drop_in.torch_random import RandomSnapshot
from brimful.profiling.diagnose import diagnose
from brimful.profiling.diagnosis import AREAS
from test_diagnosis import line


class Documents(data.Dataset[dict[str, torch.Tensor]]):
    """Document i is its number, i % 7 + 1 times; the `copies` behind them repeat the first ones."""

    def __init__(self, documents: int = 40, copies: int = 0) -> None:
        self.documents, self.copies = documents, copies
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.documents + self.copies

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        self.asked.append(number)
        random.random()
        np.random.random()
        torch.rand(1)
        document = number % self.documents
        return {"input_ids": torch.full((document % 7 + 1,), document)}


class Stream(data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(20))


class StatefulStream(Stream):
    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Iterator[int]:
        while self.at < 20:
            self.at += 1
            yield self.at
        self.at = 0

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


def loader(dataset: Any = None, **settings: Any) -> Any:
    settings = {"batch_size": 4, "collate_fn": list} | settings
    return bf.DataLoader(Documents() if dataset is None else dataset, **settings)


def test_a_sound_loader_asks_for_nothing_and_covers_all_areas() -> None:
    diagnosis = loader(shuffle=True).diagnose()
    assert diagnosis.look_here == ()
    assert [*dict.fromkeys(line.area for line in diagnosis.lines)] == list(AREAS)


def test_copies_among_items_are_counted() -> None:
    answer = line(loader(Documents(38, copies=6)).diagnose(), "there twice")
    assert answer.status == "look here"
    assert answer.figure == "6 copies in all 44 items"
    few = Documents(400)
    assert "a sample of 40 items" in line(loader(few).diagnose(documents=40), "twice").figure
    assert len(few.asked) == 40


@pytest.mark.parametrize("item", [
    [1, 2], np.arange(3), torch.arange(3), (torch.arange(3), 1), {"input_ids": [4, 5]},
])  # fmt: skip
def test_items_of_any_kind_are_compared(item: Any) -> None:
    answer = line(loader([item] * 8).diagnose(), "there twice")
    assert answer.figure == "7 copies in all 8 items"


@pytest.mark.parametrize("item", ["text", {"text": "a"}, None, object(), [], [[1], [2, 3]]])
def test_items_without_tokens_are_not_compared(item: Any) -> None:
    assert line(loader([item] * 8).diagnose(), "there twice").status == "not measured"


def test_shares_of_ranks_are_looked_at() -> None:
    dataset = Documents(41)
    sampler: Any = data.DistributedSampler(dataset, num_replicas=4, rank=1)
    diagnosis = loader(dataset, sampler=sampler).diagnose()
    dealt = line(diagnosis, "every document once")
    assert dealt.status == "look here"
    assert dealt.figure == "3 items repeated for even shares of 4 ranks"
    assert line(diagnosis, "order of its own").status == "look here"
    sampler.set_epoch(1)
    assert line(loader(dataset, sampler=sampler).diagnose(), "order of its own").status == "ok"
    cut: Any = data.DistributedSampler(dataset, num_replicas=4, rank=1, drop_last=True)
    left = line(loader(dataset, sampler=cut).diagnose(), "every document once")
    assert left.figure == "1 item left out for even shares of 4 ranks"


def test_draws_with_replacement_and_short_batches_are_named() -> None:
    dataset = Documents(42)
    again: Any = data.RandomSampler(dataset, replacement=True)
    diagnosis = loader(dataset, sampler=again).diagnose()
    assert line(diagnosis, "every document once").status == "look here"
    short = line(diagnosis, "same size")
    assert short.status == "look here"
    assert short.figure == "4 items, the last one 2"
    assert line(loader(dataset, drop_last=True).diagnose(), "same size").status == "ok"


class HalfShuffled(data.Sampler[int]):
    """Draws from a generator that no state holds."""

    def __init__(self, items: int) -> None:
        self.items, self.draws = items, random.Random(1)

    def __len__(self) -> int:
        return self.items

    def __iter__(self) -> Iterator[int]:
        numbers = list(range(self.items))
        self.draws.shuffle(numbers)
        return iter(numbers)


@pytest.mark.parametrize("settings", [
    {}, {"shuffle": True}, {"shuffle": True, "generator": torch.Generator()}, {"drop_last": True},
    {"shuffle": True, "num_workers": 2}, {"batch_size": None, "collate_fn": None},
    {"batch_size": 1, "batch_sampler": [[1, 2], [3], [0, 9, 4], [8], [7]]},
])  # fmt: skip
def test_every_loader_resumes_equally_and_goes_on_as_if_nobody_had_asked(
    settings: dict[str, Any],
) -> None:
    def items(batches: Any) -> list[Any]:
        batches = (batch if isinstance(batch, list) else [batch] for batch in batches)
        return [[item["input_ids"].tolist() for item in batch] for batch in batches]

    def made() -> Any:
        torch.manual_seed(5)
        if "generator" in settings:
            settings["generator"].manual_seed(3)
        return loader(**settings)

    undisturbed = items(made())
    asked = made()
    assert line(asked.diagnose(), "resumed run be equal").status == "ok"
    batches = iter(asked)
    found = items(islice(batches, 2))
    before = RandomSnapshot.take({}, everything=True)
    state = asked.state_dict()
    answer = line(asked.diagnose(), "resumed run be equal")
    assert answer.status == "ok", answer.figure
    assert asked.state_dict() == state
    assert before.is_now()
    assert random.getstate() == before.python
    assert found + items(batches) == undisturbed


def test_a_sampler_whose_draws_no_state_holds_is_found() -> None:
    sampler = HalfShuffled(40)
    made = loader(sampler=sampler)
    batches = iter(made)
    next(batches)
    assert line(made.diagnose(), "resumed run be equal").status == "look here"


def test_streams_say_whether_they_go_on() -> None:
    assert line(loader(Stream()).diagnose(), "be equal").status == "look here"
    assert line(loader(StatefulStream()).diagnose(), "be equal").status == "ok"
    again = loader(StatefulStream(), num_workers=1).diagnose()
    assert line(again, "be equal").status == "look here"
    assert line(again, "there twice").status == "not measured"


def test_torchs_own_loader_has_no_state() -> None:
    plain: Any = data.DataLoader(Documents(), batch_size=4)
    answer = line(diagnose(plain), "be equal")
    assert answer.status == "look here"
    assert "no state" in answer.figure


class Unsized(data.Dataset[int]):
    def __getitem__(self, number: int) -> int:
        raise KeyError("no such document")


def test_datasets_that_tell_nothing_or_fail_leave_answers_out() -> None:
    class Failing(Unsized):
        def __len__(self) -> int:
            return 12

    cases: list[tuple[Any, Any, str]] = [
        (Unsized(), [1, 2, 3], "not measured"),
        (Failing(), None, "ok"),  # which items are drawn is known without reading them
    ]
    for dataset, sampler, resumed in cases:
        diagnosis = loader(dataset, sampler=sampler).diagnose()
        assert line(diagnosis, "there twice").status == "not measured"
        assert line(diagnosis, "be equal").status == resumed
    assert "no such document" in line(diagnosis, "there twice").figure


def test_a_dataset_in_files_is_looked_for_in_memory(tmp_path: Path) -> None:
    table = datasets.Dataset.from_dict({"text": ["a", "b"] * 50})
    table.save_to_disk(str(tmp_path))
    diagnosis = loader(datasets.load_from_disk(str(tmp_path))).diagnose()
    assert line(diagnosis, "corpus in memory").status == "ok"
    assert "of 32 reads" in line(diagnosis, "read take").figure


def test_waits_are_told_without_a_profile_and_set_beside_steps_with_one() -> None:
    made = loader()
    list(made)
    assert "a batch" in line(made.diagnose(), "waited for").figure
    profile = bf.profile(made).run().profile()
    assert line(made.diagnose(profile=profile), "waited for").status == "look here"
