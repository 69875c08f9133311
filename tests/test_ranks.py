"""Any number of ranks, in one process: how runs end unevenly, go on, and what saving costs."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, corpus_of, pieces


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """torch's threads spin while they wait, which takes long where there are more than cores."""
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


def ranks(corpus: bf.Corpus, world_size: int, **how: Any) -> list[bf.DataLoader]:
    how = {"seq_len": 16, "window": 11, "num_workers": 0, **how}
    return [bf.DataLoader(corpus, rank=r, world_size=world_size, **how) for r in range(world_size)]


def told_by(monkeypatch: pytest.MonkeyPatch, **environment: str) -> tuple[int, int]:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    config = bf.DataLoader(corpus_of([4]), seq_len=4).config
    return config.rank, config.world_size


def test_ranks_of_the_environment_are_whole_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_by(monkeypatch) == (0, 1)
    assert told_by(monkeypatch, WORLD_SIZE="1") == (0, 1)
    assert told_by(monkeypatch, RANK="2", WORLD_SIZE="3") == (2, 3)
    wrong = (
        {"RANK": "1"}, {"RANK": "0"}, {"WORLD_SIZE": "4"}, {"RANK": "", "WORLD_SIZE": "4"},
        {"RANK": "one", "WORLD_SIZE": "4"}, {"RANK": "1.0", "WORLD_SIZE": "4"},
    )  # fmt: skip
    for environment in wrong:
        with pytest.raises(bf.PlanError, match=r"the environment says RANK=.*give rank="):
            told_by(monkeypatch, **environment)
    for environment in ({"RANK": "3", "WORLD_SIZE": "3"}, {"RANK": "-1", "WORLD_SIZE": "3"}):
        with pytest.raises(bf.PlanError, match="rank"):
            told_by(monkeypatch, **environment)
    with pytest.raises(bf.PlanError, match="give both or neither"):
        bf.DataLoader(corpus_of([4]), seq_len=4, rank=1)


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), max_size=30),
    world_size=st.integers(1, 7),
    batch_size=st.integers(1, 3),
    accumulate=st.integers(1, 3),
    drop_last=st.booleans(),
    layout=st.sampled_from([{}, {"layout": "varlen"}, {"layout": "varlen", "tail": "keep"}]),
    packing=st.sampled_from(["streaming", "concat", "best_fit_decreasing", "pad", "bucket"]),
    balance=st.sampled_from([None, "attention"]),
    overlong=st.sampled_from(["split", "truncate", "drop"]),
    shuffle=st.booleans(),
)
def test_c09_c70_every_kind_of_uneven_end_is_the_same_number_of_batches_and_flagged(
    lengths: list[int], world_size: int, batch_size: int, accumulate: int, drop_last: bool,
    layout: dict[str, Any], packing: str, balance: str | None, overlong: str, shuffle: bool,
) -> None:  # fmt: skip
    corpus = corpus_of(lengths or [0])
    how = {"packing": packing, "balance": balance, "overlong": overlong, "shuffle": shuffle}
    (whole,) = ranks(corpus, 1, **how, drop_last=False)
    loaders = ranks(
        corpus, world_size, **how, **layout, batch_size=batch_size, accumulate=accumulate,
        drop_last=drop_last,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped tokens
        wanted = Counter(all_pieces(whole))
        counts = [len(loader) for loader in loaders]
        epoch = [list(loader) for loader in loaders]
    assert [len(batches) for batches in epoch] == counts == [counts[0]] * world_size

    found = Counter(piece for batches in epoch for batch in batches for piece in pieces(batch))
    assert max(found.values(), default=1) == 1, "nothing comes twice"
    if drop_last:
        assert found <= wanted
        assert counts[0] % accumulate == 0
    else:
        assert found == wanted

    # Batches that every rank has at the same time are of one step, whose labels all ranks know.
    items: Counter[tuple[int, int]] = Counter()
    for together in zip(*epoch, strict=True):
        assert len({(b.epoch, b.step, b.micro_batch) for b in together}) == 1
        items[together[0].epoch, together[0].step] += sum(batch.num_items for batch in together)
    for batches in epoch:
        for batch in batches:
            assert batch.num_items_step_global == items[batch.epoch, batch.step]

    for loader, batches in zip(loaders, epoch, strict=True):
        empty = [batch for batch in batches if not pieces(batch)]
        assert not (drop_last and empty)
        assert loader.stats().dummy_rows == len(empty)
        for batch in empty:
            assert (batch.num_tokens, batch.num_items) == (0, 0)
            assert len(batch["input_ids"]) == 1
            assert not (batch["labels"] != -100).any()
            assert int(batch.cu_seqlens[-1]) == batch["input_ids"].numel()
        slots = sum(b["input_ids"].numel() for b in batches if pieces(b))
        if layout.get("tail") == "keep" or not layout:
            assert loader.stats().slots == slots, "dummy rows are none"
    stats = loaders[0].stats().all_ranks
    assert stats.tokens == sum(n for _, _, n in found.elements())
    assert stats.tokens + stats.dropped_tokens == sum(lengths)


@pytest.mark.parametrize("documents", [0, 1, 2, 5])
@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_c70_fewer_documents_than_ranks(documents: int, world_size: int) -> None:
    loaders = ranks(corpus_of([9] * documents or [0]), world_size)
    counts = {len(loader) for loader in loaders}
    assert counts == {-(-documents // world_size)}
    for _ in range(2):  # epochs
        found = [[pieces(batch) for batch in loader] for loader in loaders]
        assert {len(batches) for batches in found} == counts
        delivered = sorted(piece for batches in found for batch in batches for piece in batch)
        assert delivered == [(d, 0, 9) for d in range(documents)]


def test_c70_a_fixed_epoch_is_the_same_whenever_it_is_evaluated() -> None:
    loaders = ranks(corpus_of([5, 30, 2, 8, 13] * 5), 3, shuffle=True, batch_size=2)
    for loader in loaders:
        loader.set_epoch(4)
    first, second = ([all_pieces(loader) for loader in loaders] for _ in range(2))
    assert first == second
    (alone,) = ranks(corpus_of([5, 30, 2, 8, 13] * 5), 1, shuffle=True)
    alone.set_epoch(4)
    assert Counter(p for mine in first for p in mine) == Counter(all_pieces(alone))


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """examples/evaluate.py as a module."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
    yield importlib.import_module("evaluate")
    del sys.modules["evaluate"]


def test_c70_a_summed_loss_depends_on_neither_ranks_nor_batches(
    recipe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, corpus = recipe.Model().double(), recipe.documents(23)
    found, dummy_rows = [], 0
    for world_size, batch_size in ((1, 1), (1, 4), (2, 3), (3, 1), (3, 2), (5, 7)):
        parts = []
        for rank in range(world_size):  # as torchrun would start them
            monkeypatch.setenv("RANK", str(rank))
            monkeypatch.setenv("WORLD_SIZE", str(world_size))
            parts.append(recipe.evaluate(model, recipe.held_out_loader(corpus, batch_size)))
        assert sum(part.predicted for part in parts) == corpus.num_tokens - len(corpus)
        found.append(sum(part.loss_sum for part in parts))
        dummy_rows += sum(part.dummy_rows for part in parts)
    assert found[0] > 0
    assert found == pytest.approx([found[0]] * len(found), rel=1e-12)
    assert dummy_rows > 0, "some rank had no row left"


def test_c79_a_state_counts_what_all_ranks_delivered() -> None:
    corpus = corpus_of([4] * 40)
    loaders = ranks(corpus, 2, seq_len=4)
    for loader in loaders:
        list(islice(loader, 10))
    state = loaders[0].state_dict()
    assert state["all_ranks"]["documents"] == state["all_ranks"]["bins"] == 20
    resumed = ranks(corpus, 2, seq_len=4)
    for loader in resumed:
        loader.load_state_dict(state)
    assert [all_pieces(loader)[0][0] for loader in resumed] == [20, 21]


def test_c80_packs_of_a_step_are_the_same_at_every_world_size() -> None:
    corpus = corpus_of([4] * 32)
    state, order = None, []
    for world_size, steps in ((4, 2), (2, 1), (8, 1)):
        loaders = ranks(
            corpus, world_size, seq_len=4, batch_size=8 // world_size, num_workers=world_size % 3
        )
        taken = []
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
            taken.append([[d for d, _, _ in pieces(b)] for b in islice(loader, steps)])
        order += [sorted(d for mine in taken for d in mine[step]) for step in range(steps)]
        state = loaders[-1].state_dict()
    assert order == [list(range(8 * step, 8 * step + 8)) for step in range(4)]
    with pytest.raises(bf.StateError, match="bins_per_step: 8 in the state, 4 here"):
        ranks(corpus, 2, seq_len=4, batch_size=2)[0].load_state_dict(state)


def test_c81_ranks_that_were_given_different_numbers_of_documents_share_one_state() -> None:
    rng = np.random.default_rng(0)
    corpus = corpus_of(rng.integers(1, 16, 600).tolist())
    how: dict[str, Any] = {"packing": "best_fit_decreasing", "window": 600, "shuffle": True}
    loaders = ranks(corpus, 2, **how)
    iterators = [iter(loader) for loader in loaders]
    taken = [sum(len(pieces(b)) for b in islice(iterator, 60)) for iterator in iterators]
    assert taken[0] != taken[1]
    states = [loader.state_dict() for loader in loaders]
    assert states[0] == states[1]
    assert states[0]["all_ranks"]["documents"] == sum(taken)
    wanted = [[pieces(batch) for batch in iterator] for iterator in iterators]
    for loader, rest in zip(ranks(corpus, 2, **how), wanted, strict=True):
        loader.load_state_dict(states[0])  # of the other rank for one of them
        assert [pieces(batch) for batch in loader] == rest


def calls(function: Callable[[], object]) -> int:
    """Calls of functions, of Python's and of C's, that a call makes."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_c82_a_state_at_every_step_is_the_same_little_work(tmp_path: Path) -> None:
    """Of 10 documents and of 10 million, after the first step and after many."""
    path = tmp_path / "tokens.bin"
    with path.open("wb") as file:
        file.truncate(10_000_000 * 8 * 2)
    many = bf.open(np.memmap(path, np.uint16, "r").reshape(10_000_000, 8))
    costs: dict[int, set[int]] = {}
    for corpus in (bf.open([np.arange(8)] * 10), many):
        loader = bf.DataLoader(corpus, seq_len=64, shuffle=True, num_workers=0)
        loader.state_dict()  # the first one hashes all lengths
        for _ in islice(loader, 50):
            costs.setdefault(len(corpus), set()).add(calls(loader.state_dict))
            assert len(json.dumps(loader.state_dict())) < 4096
    assert costs[10_000_000] == costs[10]
    assert len(costs[10]) == 1


def test_c82_a_state_that_another_thread_takes_is_of_one_moment() -> None:
    """What it counts is what was delivered up to its place, also in the middle of a delivery."""
    corpus = bf.open(np.zeros((30_000, 4), np.uint16))
    (loader,) = ranks(corpus, 1, seq_len=4, window=2**40)
    states: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            state = loader.state_dict()
            states.append((state["cursor"]["bin"], state["all_ranks"]["bins"]))

    asking = threading.Thread(target=ask)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads change places as often as they can
    try:
        batches = iter(loader)
        asking.start()
        for _ in islice(batches, 15_000):
            pass
    finally:
        sys.setswitchinterval(interval)
        done.set()
        asking.join()
    assert len(states) > 100
    assert all(place == counted for place, counted in states)


def test_c82_asking_for_states_changes_no_batch() -> None:
    corpus = corpus_of([5, 30, 2, 8, 13] * 20)
    for num_workers in (0, 2):
        how: dict[str, Any] = {"shuffle": True, "num_workers": num_workers}
        quiet, asked = ranks(corpus, 1, **how)[0], ranks(corpus, 1, **how)[0]
        wanted = [pieces(batch) for _ in range(2) for batch in quiet]
        found = []
        for _ in range(2):
            for batch in asked:
                found.append(pieces(batch))
                asked.state_dict()
        assert found == wanted
        assert asked.stats().all_ranks == quiet.stats().all_ranks
