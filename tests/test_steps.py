"""Steps by their numbers: which they are, and what the plan says that each of them holds."""

from __future__ import annotations

import copy
import json
import pickle
import signal
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from stepped import ORDERS, delivered, lengths_of, make, resumed, run, told
from truth import mixed, pieces, same, token_counts


@settings(max_examples=60)
@given(lengths_of, st.sampled_from(ORDERS), st.sampled_from([1, 2, 3]), st.integers(1, 2),
       st.integers(1, 2))  # fmt: skip
def test_a_step_holds_what_the_audit_says(
    lengths: list[int], how: dict[str, Any], world_size: int, batch_size: int, accumulate: int
) -> None:
    dealt = {"world_size": world_size, "batch_size": batch_size, "accumulate": accumulate, **how}
    loaders = [make(lengths, rank=rank, **dealt) for rank in range(world_size)]
    asked_before = [make(lengths, rank=0, **dealt), make(lengths, rank=world_size - 1, **dealt)]
    steps = delivered(loaders, 3)
    assert sorted(steps) == list(range(len(steps)))  # no number is left out
    for step, entries in steps.items():
        for loader in (*asked_before, loaders[0]):
            assert sorted(told(loader, step)) == sorted(entries)
    epochs = {batch.step: batch.epoch for batch in run(make(lengths, rank=0, **dealt), 3)}
    assert {step: loaders[0].documents(step).epoch for step in epochs} == epochs


def test_the_audit_names_sources_and_looks_far_ahead() -> None:
    corpus = mixed({"web": [5] * 9, "code": [7] * 4}, weights={"web": 0.5, "code": 0.5})
    loader = make(corpus, shuffle=True)
    for step in (0, 1, 40, 3):
        found = loader.documents(step)
        names = np.where(found.documents < 9, "web", "code")
        assert found.sources.tolist() == names.tolist()
        assert (found.step, found.skipped) == (step, False)
    steps = delivered([make(corpus, shuffle=True)], 20)
    assert sorted(told(loader, 40)) == sorted(steps[40])


@pytest.mark.parametrize("step", [-1, -(2**70), 2**63, 10**30, 1.0, "1", None, True])
def test_what_is_no_step_is_refused(step: Any) -> None:
    with pytest.raises(bf.PlanError, match="step is"):
        make([5] * 9).documents(step)


def test_a_run_without_a_whole_step_has_no_step_to_tell() -> None:
    with pytest.raises(bf.PlanError, match="there is no step 0"):
        make([5], batch_size=8, drop_last=True).documents(0)
    with pytest.raises(bf.PlanError, match="there is no step 3"):
        make([]).documents(3)


def test_numbers_go_on_where_the_global_batch_changes() -> None:
    lengths = [16] * 40
    loader, steps, seen = make(lengths, batch_size=4, shuffle=True), [], Counter()
    for change in (None, 3, 2, 5):
        if change:
            state = loader.state_dict()
            loader = resumed(state, lengths, batch_size=change, shuffle=True, change=True)
            origin = state["step"]
            assert loader.state_dict()["step"] == origin
            with pytest.raises(bf.PlanError, match=f"the global batch changed at step {origin}"):
                loader.documents(origin - 1)
        told_ahead = {step: Counter(e[3:] for e in told(loader, step))
                      for step in range(len(steps), len(steps) + 4)}  # fmt: skip
        for _, batch in zip(range(2), loader, strict=False):
            steps.append(batch.step)
            assert Counter(pieces(batch)) == told_ahead[batch.step]
            seen.update(token_counts(pieces(batch)))
    assert steps == list(range(8))
    assert max(seen.values()) == 1
    later = resumed(loader.state_dict(), lengths, batch_size=5, shuffle=True)
    rest = run(later, 2)
    assert [batch.step for batch in rest] == list(range(8, 8 + len(rest)))
    assert all(Counter(pieces(b)) == Counter(e[3:] for e in told(later, b.step)) for b in rest)
    with pytest.raises(bf.PlanError, match="the global batch changed at step"):
        later.documents(1)


def test_numbers_go_on_where_drop_last_changes() -> None:
    lengths = [16] * 10
    first = make(lengths, batch_size=4)
    steps = [batch.step for batch in run(first, 1)]
    second = resumed(first.state_dict(), lengths, batch_size=4, drop_last=True)
    steps += [batch.step for batch in run(second, 2)]
    assert steps == [0, 1, 2, 3, 4, 5, 6]
    assert second.documents(6).epoch == 2


def test_a_step_is_counted_only_when_it_is_asked_for() -> None:
    loader = make([16] * 10, batch_size=4)
    next(iter(loader))
    assert next(iter(loader)).epoch == 1
    state = loader.state_dict()
    assert state["step"] is None  # epoch 0 was left early, and nobody knows its length
    assert next(iter(resumed(state, [16] * 10, batch_size=4))).step == 4
    assert next(iter(loader)).step == 6
    assert loader.state_dict()["step"] == 7


def test_a_batch_in_another_process_knows_its_step() -> None:
    loader = make([16] * 10, batch_size=4)
    batch = run(loader, 2)[-1]
    for again in (pickle.loads(pickle.dumps(batch)), copy.copy(batch), batch.to("cpu")):
        assert (again.step, again.epoch, again.micro_batch) == (5, 1, 0)
        assert same(again, batch)


def test_set_epoch_keeps_the_numbers_of_the_run() -> None:
    loader = make([16] * 10, batch_size=4, skip=(6,))
    loader.set_epoch(2)
    assert len(loader) == 2
    for _ in range(2):
        assert [batch.step for batch in loader] == [7, 8]


def test_a_bad_document_is_named_with_its_step() -> None:
    docs = [np.full(16, i) for i in range(10)]
    docs[7][3] = -1
    loader = make(bf.open(docs), batch_size=2, skip=(0,))
    with pytest.warns(UserWarning, match="document 7"):
        batches = [*loader, *loader]
    assert [(bad.epoch, bad.step) for bad in loader.bad_documents] == [(0, 3), (1, 8)]
    assert [batch.step for batch in batches if batch.num_tokens < 32] == [3, 8]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 4}, "cannot be of one run"),
        ({"step": -1}, "state.step"),
        ({"step": "2"}, "state.step"),
        ({"skip": None}, "'skip'"),
        ({"skip": [[3]]}, "two step numbers"),
        ({"skip": [[3, 1]]}, "ends before it begins"),
        ({"skip": [[-3, 1]]}, "skip"),
        ({"numbered_from": 3}, "numbered_from"),
        ({"numbered_from": {"step": 9}}, "cursor|drop_last"),
    ],
)
def test_c83_a_state_with_other_numbers_is_refused(change: dict[str, Any], message: str) -> None:
    loader = make([16] * 10)
    for _ in zip(range(3), loader, strict=False):
        pass
    state = json.loads(json.dumps(loader.state_dict())) | change
    fresh = make([16] * 10)
    with pytest.raises(bf.StateError, match=message):
        fresh.load_state_dict(state)
    assert [batch.step for batch in fresh] == list(range(10))  # nothing was changed


def test_a_numbering_from_elsewhere_is_refused() -> None:
    loader = make([16] * 10)
    next(iter(loader))
    for place in ({"bin": 5}, {"step_bins": 1}, {"step": 1}, {"epoch": 1}, {"window": 10**6}):
        state = json.loads(json.dumps(loader.state_dict()))
        state["numbered_from"]["cursor"] |= place
        with pytest.raises(bf.StateError):
            make([16] * 10).load_state_dict(state)


def test_a_far_step_costs_what_it_must_and_ctrl_c_ends_the_question() -> None:
    loader = make(bf.open(np.zeros((20_000, 8), np.int32)), shuffle=True, window=50)
    assert loader.documents(3).epoch == 0
    assert loader._steps.known_before(1) is None  # a step near by needs no whole epoch
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            loader.documents(2**62)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert loader.documents(4).epoch == 0
