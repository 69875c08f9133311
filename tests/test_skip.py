"""Steps left out by `skip=`: counted, on every rank, through every resume."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from stepped import ORDERS, lengths_of, make, resumed, run
from truth import all_pieces, pieces, same

skips = st.lists(
    st.one_of(st.integers(0, 30), st.tuples(st.integers(0, 30), st.integers(0, 9))), max_size=6
)


def as_skip(entries: list[Any]) -> list[int | range]:
    return [e if isinstance(e, int) else range(e[0], e[0] + e[1]) for e in entries]


@settings(max_examples=80)
@given(lengths_of, st.sampled_from(ORDERS), st.sampled_from([1, 2]), st.integers(1, 3), skips)
def test_skipped_steps_are_left_out_and_counted_and_nothing_else_changes(
    lengths: list[int], how: dict[str, Any], world_size: int, accumulate: int, entries: list[Any]
) -> None:
    skip = as_skip(entries)
    numbers = {n for entry in skip for n in ([entry] if isinstance(entry, int) else entry)}
    tokens: Counter[str] = Counter()
    for rank in range(world_size):
        dealt = {"rank": rank, "world_size": world_size, "accumulate": accumulate, **how}
        whole_loader, loader = make(lengths, **dealt), make(lengths, skip=skip, **dealt)
        whole = run(whole_loader, 3)
        lengths_told, found = [], []
        for _ in range(3):
            lengths_told.append(len(loader))
            epoch = run(loader, 1)
            assert lengths_told[-1] == len(epoch)
            found += epoch
        want = [batch for batch in whole if batch.step not in numbers]
        assert [(b.step, b.micro_batch) for b in found] == [(b.step, b.micro_batch) for b in want]
        assert all(same(a, b) for a, b in zip(found, want, strict=True))
        left_out = [batch for batch in whole if batch.step in numbers]
        stats, all_stats = loader.stats(), whole_loader.stats()
        assert stats.skipped_steps == len({batch.step for batch in left_out})
        assert stats.skipped_tokens == sum(batch.num_tokens for batch in left_out)
        assert stats.skipped_documents == sum(s == 0 for _, s, _ in all_pieces(left_out))
        everyone, all_everyone = stats.all_ranks, all_stats.all_ranks
        assert everyone.tokens + everyone.skipped_tokens == all_everyone.tokens
        assert everyone.documents + everyone.skipped_documents == all_everyone.documents
        assert everyone.dropped_tokens == all_everyone.dropped_tokens
        by_source = stats.skipped["corpus"]
        assert by_source["tokens"] == everyone.skipped_tokens
        assert by_source["documents"] == everyone.skipped_documents
        tokens["rank"] += stats.skipped_tokens
        for step in {batch.step for batch in whole}:
            assert loader.documents(step).skipped == (step in numbers)
    assert tokens["rank"] == everyone.skipped_tokens  # ranks agree, and add up


@pytest.mark.filterwarnings("ignore:.*had no effect")
@settings(max_examples=60)
@given(lengths_of, st.sampled_from(ORDERS), skips, st.lists(st.integers(0, 20), max_size=4),
       st.data())  # fmt: skip
def test_c80_numbers_skips_and_counts_go_on_through_any_chain_of_saves(
    lengths: list[int], how: dict[str, Any], entries: list[Any], stops: list[int], data: Any
) -> None:
    """A global batch of six, split anew at each stop; `skip=` is given to the first loader only."""
    splits = ((1, 6, 1), (1, 1, 6), (1, 2, 3), (1, 3, 2))
    whole_loader = make(lengths, batch_size=6, skip=as_skip(entries), **how)
    wanted: dict[int, Counter[Any]] = {}
    for batch in run(whole_loader, 3):
        wanted.setdefault(batch.step, Counter()).update(pieces(batch))
    loader = make(lengths, batch_size=6, skip=as_skip(entries), **how)
    found: dict[int, Counter[Any]] = {}

    def go_on(count: int | None) -> None:
        while count is None or count > 0:
            if loader.state_dict()["cursor"]["epoch"] >= 3:
                return
            for batch in loader:
                if batch.epoch >= 3:
                    return
                found.setdefault(batch.step, Counter()).update(pieces(batch))
                count = None if count is None else count - 1
                if count == 0:
                    return

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped tokens, and of a state that ends the run
        for stop in stops:
            go_on(stop)
            state = loader.state_dict()
            assert state["step"] is not None
            _, batch_size, accumulate = data.draw(st.sampled_from(splits))
            split = {"batch_size": batch_size, "accumulate": accumulate}
            loader = resumed(state, lengths, **split, **how)
        go_on(None)
    assert found == wanted
    if loader.state_dict()["cursor"] == whole_loader.state_dict()["cursor"]:
        got, want = loader.stats().all_ranks, whole_loader.stats().all_ranks
        assert got.skipped_steps == want.skipped_steps
        assert (got.tokens, got.skipped_tokens) == (want.tokens, want.skipped_tokens)
        assert loader.stats().skipped == whole_loader.stats().skipped


def test_the_skip_of_a_state_and_that_of_a_loader_are_united() -> None:
    lengths = [16] * 40
    first = make(lengths, skip=(2, 30))
    batches = iter(first)
    assert [next(batches).step for _ in range(4)] == [0, 1, 3, 4]
    state = first.state_dict()
    assert state["skip"] == [[2, 3], [30, 31]]
    second = resumed(state, lengths, skip=[range(6, 8), 2])
    assert second.state_dict()["skip"] == [[2, 3], [6, 8], [30, 31]]
    assert [batch.step for batch in second][:4] == [5, 8, 9, 10]
    assert second.stats().all_ranks.skipped_steps == 4
    with pytest.warns(UserWarning, match=r"skip: 2 steps of it began before .* at step 5"):
        third = resumed(state, lengths, skip=(1, 4, 5))
    assert [batch.step for batch in third][:2] == [6, 7]
    assert not third.documents(4).skipped
    assert third.documents(5).skipped


def test_a_step_that_has_begun_is_finished() -> None:
    lengths = [16] * 12
    first = make(lengths, accumulate=4)
    next(iter(first))
    state = first.state_dict()
    with pytest.warns(UserWarning, match="1 step of it"):
        second = resumed(state, lengths, accumulate=4, skip=range(2))
    assert [(b.step, b.micro_batch) for b in second][:4] == [(0, 1), (0, 2), (0, 3), (2, 0)]


def test_all_of_an_epoch_may_be_skipped() -> None:
    loader = make([16] * 10, skip=range(10))
    assert len(loader) == 0
    assert [batch.step for _ in range(2) for batch in loader] == list(range(10, 20))
    assert loader.stats().skipped_documents == 10


@pytest.mark.parametrize(
    "skip", [-1, "3", 1.5, [True], [(1, 2)], range(-2, 3), [2**62], range(0, 10**9, 3), [None]]
)
def test_what_names_no_steps_is_refused(skip: Any) -> None:
    with pytest.raises(bf.PlanError, match="skip"):
        make([5] * 9, skip=skip)


def test_steps_may_be_named_in_many_ways() -> None:
    for skip in (3, [3], {3}, np.array([3]), range(3, 4), (range(3, 3), np.int32(3), 3)):
        assert make([5] * 9, skip=skip).state_dict()["skip"] == [[3, 4]]
    assert make([5] * 9, skip=range(0, 9, 4)).state_dict()["skip"] == [[0, 1], [4, 5], [8, 9]]
    assert make([5] * 9, skip=range(5, 2, -1)).state_dict()["skip"] == [[3, 6]]
    assert make([5] * 9, skip=[0, range(10**12)]).state_dict()["skip"] == [[0, 10**12]]
