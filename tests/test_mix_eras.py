"""Changes of the mix in mid-run, as plans: each source goes on where it stood, whatever follows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import native
from brimful.mix_rule import MixRule
from truth import mixed

SIZES = {"a": 7, "b": 12, "c": 1}
ENDS = np.cumsum([*SIZES.values()])
MEANS = {"a": 3, "b": 5, "c": 2}
WINDOW = 6


def plan_of(history, shuffle=False):
    corpus = mixed({name: [MEANS[name]] * size for name, size in SIZES.items()})
    config = bf.LoaderConfig(seq_len=64, window=WINDOW, shuffle=shuffle)
    return native.make_plan(corpus, config, history)


def epochs(plan, count):
    return [plan.draws(e, 0, plan.epoch_draws(e)).tolist() for e in range(count)]


def shares(*weights):
    return dict(zip(SIZES, map(float, weights), strict=True))


weights_rows = st.lists(st.one_of(st.just(0.0), st.floats(0.1, 10)), min_size=3, max_size=3).filter(
    any
)


@st.composite
def rules(draw):
    kind = draw(st.sampled_from(["plain", "repeat", "drop", "stop", "schedule", "caps", "epoch"]))
    weights = shares(*draw(weights_rows))
    if kind == "plain":
        return MixRule(None)
    if kind in ("repeat", "drop", "stop"):
        return MixRule(weights, draw(st.sampled_from(["tokens", "documents"])), kind)
    if kind == "schedule":
        return MixRule(((0, weights), (draw(st.integers(1, 400)), shares(*draw(weights_rows)))))
    if kind == "caps":
        return MixRule(weights, max_passes=shares(*draw(st.tuples(*[st.floats(0.2, 9)] * 3))))
    return MixRule(weights, epoch_tokens=draw(st.integers(5, 150)))


@st.composite
def histories(draw):
    """Rules, each from a window that the run before it has."""
    history = [(draw(rules()), 0, 0)]
    for _ in range(draw(st.integers(0, 3))):
        plan = plan_of(tuple(history))
        _, epoch, window = history[-1]
        epoch += draw(st.integers(0, 2))
        first = window + 1 if epoch == history[-1][1] else 0
        windows = plan.num_windows(epoch)
        if first < windows:
            history.append((draw(rules()), epoch, draw(st.integers(first, windows - 1))))
        elif epoch > history[-1][1]:  # the run is over, and is taken up again
            history.append((draw(rules()), epoch, 0))
    return tuple(history)


@settings(max_examples=200, deadline=None)
@given(history=histories(), shuffle=st.booleans())
def test_c64_no_document_is_skipped_or_repeated_over_any_changes(history, shuffle):
    plan = plan_of(history, shuffle)
    last = history[-1][1]
    found = epochs(plan, last + 4)
    flat = [d for epoch in found for d in epoch]
    for end, size in zip(ENDS, SIZES.values(), strict=True):
        own = [d - (end - size) for d in flat if end - size <= d < end]
        for first in range(0, len(own) - size + 1, size):  # each pass in turn
            assert sorted(own[first : first + size]) == list(range(size))
        rest = own[len(own) // size * size :]
        assert len(set(rest)) == len(rest)
    for k in range(1, len(history)):  # what came before a change is what it was
        _, epoch, window = history[k]
        before = epochs(plan_of(history[:k], shuffle), epoch + 1)
        assert found[:epoch] == before[:epoch]
        assert found[epoch][: window * WINDOW] == before[epoch][: window * WINDOW]
    for epoch, draws in enumerate(found):
        for first in range(0, len(draws), 5):
            assert (
                plan.draws(epoch, first, min(4, len(draws) - first)).tolist()
                == (draws[first : first + 4])
            )
    for epoch in range(last + 1, last + 4):  # an epoch is empty only behind the run's end
        assert found[epoch] or not any(found[epoch:])


@settings(max_examples=100, deadline=None)
@given(before=rules(), after=weights_rows, window=st.integers(1, 3))
def test_a_new_mix_holds_from_its_window_on(before, after, window):
    rule = MixRule(shares(*after), "documents")
    start = plan_of(((before, 0, 0),))
    if window >= start.num_windows(0):
        return
    plan = plan_of(((before, 0, 0), (rule, 0, window)))
    flat = [d for epoch in epochs(plan, 8) for d in epoch][window * WINDOW :]
    source = np.searchsorted(ENDS, flat, side="right")
    counts = np.cumsum(source[:, None] == np.arange(3), axis=0)
    expected = np.arange(1, len(flat) + 1)[:, None] * (np.array(after) / sum(after))
    assert (np.abs(counts - expected) <= 2.5).all()


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("before", [MixRule(None), MixRule(shares(1, 1, 1))])
def test_whole_epochs_follow_the_passes_that_are_begun(before, window):
    """when_dry="drop" after anything: each source ends its pass, then every epoch has all once."""
    if window >= plan_of(((before, 0, 0),)).num_windows(0):
        window = 1
    drop = MixRule(shares(2, 1, 1), when_dry="drop")
    found = epochs(plan_of(((before, 0, 0), (drop, 0, window)), shuffle=True), 4)
    for epoch in found[1:]:
        assert sorted(epoch) == list(range(20))
    tail = found[0][window * WINDOW :]
    assert len(set(tail)) == len(tail)


@pytest.mark.parametrize(
    "places", [[(0, 0)], [(0, 9)], [(1, 0), (1, 0)], [(1, 0), (0, 1)], [(2**61, 0)], [(0, 2**61)]]
)
def test_changes_at_places_that_a_run_does_not_have_are_refused(places):
    rule = MixRule(shares(1, 1, 1))
    with pytest.raises(bf.StateError, match="change of the mix at"):
        plan_of(((rule, 0, 0), *((rule, *place) for place in places)))
