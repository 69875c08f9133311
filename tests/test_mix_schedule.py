"""Schedules of weights, caps on passes and epochs of so many tokens: over the run, not an epoch."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, mixed


def plan_of(corpus, **how):
    return bf.DataLoader(corpus, **{"seq_len": 64, "num_workers": 0, **how})._plan


def run_draws(corpus, count, **how):
    """Documents of the first `count` draws of a run, over as many epochs as they take."""
    plan, found, epoch = plan_of(corpus, **how), [], 0
    while len(found) < count and plan.epoch_draws(epoch) > 0:
        found += plan.draws(epoch, 0, plan.epoch_draws(epoch)).tolist()
        epoch += 1
    return found[:count]


def sources_of(sizes, documents):
    return np.searchsorted(np.cumsum(sizes), documents, side="right")


def own_numbers(sizes, documents):
    """For each source, its documents in the order of the run, numbered within it."""
    firsts = np.cumsum([0, *sizes])
    source = sources_of(sizes, documents)
    return [(np.array(documents)[source == s] - firsts[s]).tolist() for s in range(len(sizes))]


def schedule_of(weights):
    return [(start, {f"s{i}": w for i, w in enumerate(row)}) for start, row in weights]


@st.composite
def schedules(draw, most_sources=5):
    n = draw(st.integers(1, most_sources))
    weight = st.one_of(st.just(0.0), st.floats(0.1, 10))
    row = st.lists(weight, min_size=n, max_size=n).filter(any)
    gaps = draw(st.lists(st.integers(1, 600), max_size=4))
    starts = [0, *np.cumsum(gaps).tolist()]
    sizes = draw(st.lists(st.integers(1, 30), min_size=n, max_size=n))
    lengths = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    return [(start, draw(row)) for start in starts], sizes, lengths


@pytest.mark.filterwarnings("ignore:mix. 's")
@settings(max_examples=150, deadline=None)
@given(
    schedule=schedules(),
    shuffle=st.booleans(),
    unit=st.sampled_from(["tokens", "documents"]),
    epoch_tokens=st.one_of(st.none(), st.integers(9, 500)),
)
def test_a_schedule_holds_its_shares_in_every_stretch(schedule, shuffle, unit, epoch_tokens):
    """Documents of a source are all of one length, so tokens are exact: a stretch begins with the
    first draw before which its position is reached, and its shares hold at every prefix of it."""
    stretches, sizes, lengths = schedule
    corpus = mixed(
        {f"s{i}": [n] * size for i, (size, n) in enumerate(zip(sizes, lengths, strict=True))},
        weights=schedule_of(stretches),
        unit=unit,
        epoch_tokens=epoch_tokens,
    )
    found = run_draws(corpus, stretches[-1][0] + 60, shuffle=shuffle)
    source = sources_of(sizes, found)
    tokens_before = np.cumsum([0, *np.array(lengths)[source]])
    begins = [int(np.searchsorted(tokens_before, start)) for start, _ in stretches]
    for begin, end, (_, weights) in zip(begins, [*begins[1:], len(found)], stretches, strict=True):
        share = np.array(weights)
        if unit == "tokens":
            share = share / lengths
        share = share / share.sum()
        counts = np.cumsum(source[begin:end, None] == np.arange(len(sizes)), axis=0)
        expected = np.arange(1, end - begin + 1)[:, None] * share
        assert (np.abs(counts - expected) <= 2.5).all()
        assert counts[-1:][..., share == 0].sum() == 0
    for size, own in zip(sizes, own_numbers(sizes, found), strict=True):
        for first in range(0, len(own) - size + 1, size):  # nothing skipped, nothing twice
            assert sorted(own[first : first + size]) == list(range(size))


def test_draws_of_a_schedule_are_random_access():
    corpus = mixed(
        {"a": [3] * 40, "b": [5] * 25, "c": [2] * 9},
        weights=[
            (0, {"a": 1, "b": 0, "c": 0}),
            (60, {"a": 1, "b": 1, "c": 1}),
            (200, {"a": 0, "b": 3, "c": 1}),
        ],
        max_passes={"a": 1.5, "b": 4},
    )
    plan = plan_of(corpus, shuffle=True)
    for epoch in range(4):
        whole = plan.draws(epoch, 0, plan.epoch_draws(epoch)).tolist()
        for first in range(len(whole)):
            assert (
                plan.draws(epoch, first, min(7, len(whole) - first)).tolist()
                == (whole[first : first + 7])
            )


def test_positions_count_the_tokens_that_an_overlong_rule_leaves():
    """Half of the documents of "a" are cut to 8 tokens or left out."""
    schedule = [(0, {"a": 1, "b": 0}), (400, {"a": 0, "b": 1})]
    lengths = {"a": [4, 20] * 50, "b": [2] * 50}
    for overlong, mean in [("split", 12), ("truncate", 6), ("drop", 2)]:
        corpus = mixed(lengths, weights=schedule)
        found = run_draws(corpus, 300, seq_len=8, overlong=overlong)
        assert next(i for i, d in enumerate(found) if d >= 100) == -(-400 // mean)


@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_shares_of_tokens_are_those_delivered():
    corpus = mixed({"a": [4, 28] * 200, "b": [8] * 900}, weights=[1, 1])
    for overlong in ("split", "truncate", "drop"):
        loader = bf.DataLoader(corpus, seq_len=8, overlong=overlong, packing="pad", batch_size=50)
        for _ in loader:
            pass
        tokens = {name: row["tokens"] for name, row in loader.stats().exposure.items()}
        assert tokens["a"] == pytest.approx(tokens["b"], rel=0.02)


caps = st.one_of(st.floats(0.1, 4), st.just(float("inf")))


@pytest.mark.filterwarnings("ignore:mix. 's")
@settings(max_examples=150, deadline=None)
@given(data=st.data(), schedule=schedules(), shuffle=st.booleans())
def test_a_cap_ends_a_source_and_all_caps_end_the_run(data, schedule, shuffle):
    stretches, sizes, lengths = schedule
    passes = [data.draw(caps) for _ in sizes]
    used = [any(weights[s] for _, weights in stretches) for s in range(len(sizes))]
    corpus = mixed(
        {f"s{i}": [n] * size for i, (size, n) in enumerate(zip(sizes, lengths, strict=True))},
        weights=schedule_of(stretches),
        max_passes={f"s{i}": p for i, p in enumerate(passes)},
    )
    found = run_draws(corpus, stretches[-1][0] + 300, shuffle=shuffle)
    own = own_numbers(sizes, found)
    last = stretches[-1][1]
    for s, size in enumerate(sizes):
        assert len(own[s]) <= passes[s] * size * (1 + 1e-15)
        for first in range(0, len(own[s]) - size + 1, size):
            assert sorted(own[s][first : first + size]) == list(range(size))
        assert used[s] or not own[s]
    if all(p < 5 for p, w in zip(passes, last, strict=True) if w):
        for s, weight in enumerate(last):  # all that have a weight at the end gave what they may
            assert not weight or len(own[s]) == int(passes[s] * sizes[s] * (1 + 1e-15))


def test_shares_hold_among_those_that_are_left():
    corpus = mixed(
        {"a": [2] * 10, "b": [2] * 100, "c": [2] * 100},
        weights=[2, 1, 1],
        max_passes={"a": 2},
    )
    found = run_draws(corpus, 120)
    source = sources_of([10, 100, 100], found)
    assert np.count_nonzero(source[:40] == 0) in (19, 20)
    assert np.count_nonzero(source == 0) == 20
    rest = source[np.flatnonzero(source == 0)[-1] + 1 :]
    assert abs(np.count_nonzero(rest == 1) - np.count_nonzero(rest == 2)) <= 1


def test_one_pass_of_a_schedule_is_every_document_once():
    """What when_dry="drop" is without a schedule."""
    corpus = mixed(
        {"a": [2] * 30, "b": [2] * 20},
        weights=[(0, {"a": 1, "b": 0}), (20, {"a": 1, "b": 4})],
        max_passes=1,
    )
    loader = bf.DataLoader(corpus, seq_len=2, shuffle=True, num_workers=1)
    assert sorted(d for d, _, _ in all_pieces(loader)) == list(range(50))
    assert all(d < 30 for d in run_draws(corpus, 10, shuffle=True))
    with pytest.raises(bf.PlanError, match="the run is over before epoch 1"):
        iter(loader)
    assert len(loader) == 0


@pytest.mark.parametrize("shuffle", [False, True])
def test_natural_shares_with_caps(shuffle):
    """Without weights shares go by document count, and a fraction of a pass takes a part of it."""
    corpus = mixed({"a": [2] * 40, "b": [2] * 60}, max_passes={"a": 0.5, "b": 2})
    found = run_draws(corpus, 1000, shuffle=shuffle)
    assert len(found) == 20 + 120
    first, second = own_numbers([40, 60], found)
    assert len(set(first)) == 20
    assert Counter(second) == dict.fromkeys(range(60), 2)
    assert sum(d < 40 for d in found[:50]) in (19, 20)


def test_a_stretch_whose_sources_are_gone_is_passed_over():
    corpus = mixed(
        {"a": [2] * 5, "b": [2] * 5},
        weights=[(0, {"a": 1, "b": 0}), (1000, {"a": 0, "b": 1})],
        max_passes={"a": 1},
    )
    assert run_draws(corpus, 12) == [*range(10), 5, 6]


@pytest.mark.parametrize("unit", ["tokens", "documents"])
def test_epoch_tokens_set_the_length_of_every_epoch(unit):
    corpus = mixed(
        {"a": [3] * 100, "b": [7] * 100},
        weights=[(0, {"a": 1, "b": 0}), (700, {"a": 1, "b": 1})],
        unit=unit,
        epoch_tokens=500,
    )
    loader = bf.DataLoader(corpus, seq_len=16, packing="streaming")
    total = 0
    for epoch in range(8):
        total += sum(n for _, _, n in all_pieces(loader))
        assert 500 * (epoch + 1) <= total < 500 * (epoch + 1) + 7
    plain = mixed({"a": [3] * 100}, epoch_tokens=150)
    assert [d for d, _, _ in all_pieces(bf.DataLoader(plain, seq_len=16))] == list(range(50))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"weights": [(5, {"a": 1, "b": 1})]}, "first weights hold from 0 on"),
        ({"weights": [(0, {"a": 1, "b": 1}), (0, {"a": 1, "b": 1})]}, "positions rise"),
        ({"weights": [(0, {"a": 1, "b": 1}), (9, {"a": 0, "b": 0})]}, "add up to"),
        ({"weights": [(0, {"a": 1})]}, "exactly a, b"),
        ({"weights": []}, "empty"),
        ({"weights": [(0.5, {"a": 1, "b": 1})]}, "whole number"),
        ({"weights": [(-1, {"a": 1, "b": 1})]}, "position -1"),
        ({"max_passes": 0}, "greater than 0"),
        ({"max_passes": -1.0}, "greater than 0"),
        ({"max_passes": float("nan")}, "greater than 0"),
        ({"max_passes": {"c": 1}}, "names 'c'"),
        ({"max_passes": "1"}, "no number"),
        ({"epoch_tokens": 0}, "expected 1"),
        ({"epoch_tokens": 1.5}, "whole number"),
        ({"max_passes": 2, "when_dry": "drop"}, "max_passes=1 takes every document at most once"),
        ({"max_passes": 2, "when_dry": "stop"}, "speak of each epoch anew"),
        ({"epoch_tokens": 50, "when_dry": "drop"}, "Give one of them"),
        (
            {"weights": [(0, {"a": 1, "b": 1}), (9, {"a": 1, "b": 0})], "when_dry": "error"},
            "speak of each epoch anew",
        ),
    ],
)
def test_what_has_no_clear_meaning_is_refused(how, words):
    with pytest.raises(bf.PlanError, match=words):
        mixed({"a": [2] * 5, "b": [2] * 5}, **how)


def test_positions_that_never_come_are_refused():
    nothing = {"a": [0] * 200, "b": [2] * 200}
    schedule = [(0, {"a": 1, "b": 0}), (9, {"a": 1, "b": 1})]
    with pytest.raises(bf.PlanError, match="no tokens"):
        plan_of(mixed(nothing, weights=schedule, unit="documents"))
    with pytest.raises(bf.PlanError, match="would be empty"):
        plan_of(mixed({"a": [9] * 5}, epoch_tokens=5))
    with pytest.raises(bf.PlanError, match="hold no tokens"):
        plan_of(mixed({"a": [0] * 5}, epoch_tokens=5))
    with pytest.raises(bf.PlanError, match="from token 9 on"):
        plan_of(mixed({"a": [2] * 5, "b": []}, weights=[*schedule[:1], (9, {"a": 0, "b": 1})]))


def test_epochs_that_nearly_never_end_are_refused():
    """Under "drop" the heavy source delivers nothing, so its draws bring no tokens."""
    weights = {"a": 1e9, "b": 1e-9}
    lengths = {"a": [9], "b": [5] * 20}
    for schedule in (weights, [(0, {"a": 1, "b": 1}), (40, weights)]):
        corpus = mixed(lengths, weights=schedule, epoch_tokens=50)
        with pytest.raises(bf.PlanError, match="an epoch would never end"):
            plan_of(corpus, seq_len=8, overlong="drop")
    capped = mixed(lengths, weights=weights, epoch_tokens=50, max_passes={"a": 3})
    assert plan_of(capped, seq_len=8, overlong="drop").epoch_draws(0) == 13


def test_error_looks_at_epochs_of_epoch_tokens():
    lengths = {"a": [2] * 10, "b": [2] * 90}
    short = mixed(lengths, weights=[1, 1], when_dry="error", epoch_tokens=36)
    assert plan_of(short).epoch_draws(0) == 18
    with pytest.raises(bf.PlanError, match="'a' has 10 documents and runs dry"):
        plan_of(mixed(lengths, weights=[1, 1], when_dry="error", epoch_tokens=60))


@pytest.mark.filterwarnings("ignore:.* tokens were dropped")
@pytest.mark.parametrize("how", [{"drop_last": True}, {"skip": range(3, 9)}, {"overlong": "drop"}])
def test_what_the_end_of_a_run_loses_is_counted_after_a_resume_behind_its_last_batch(how):
    """The state is of a loop that has its last batch and has not asked for another one."""

    def make():
        return bf.DataLoader(
            mixed({"a": [2] * 13, "b": [9]}, max_passes=1),
            seq_len=2,
            packing="pad",
            batch_size=4,
            window=1,
            num_workers=0,
            **how,
        )

    whole = make()
    batches = len(whole)
    iterator = iter(whole)
    for _ in range(batches):
        next(iterator)
    state = json.loads(json.dumps(whole.state_dict()))
    assert next(iterator, None) is None
    resumed = make()
    resumed.load_state_dict(state)
    assert list(resumed) == []
    assert resumed.state_dict() == whole.state_dict()
    lost = resumed.stats().all_ranks
    assert lost.dropped_tokens + lost.skipped_tokens > 0
    with pytest.raises(bf.PlanError, match="the run is over before epoch 1"):
        iter(resumed)
