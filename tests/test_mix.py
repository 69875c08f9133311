"""Mixtures: who is drawn when, and that shares, epochs and counts are what was asked for."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, corpus_of, mixed


def draws(corpus, epoch=0, count=None, **how):
    plan = bf.DataLoader(corpus, **{"seq_len": 64, "num_workers": 0, **how})._plan
    return plan.draws(epoch, 0, plan.epoch_draws(epoch) if count is None else count).tolist()


def sources_of(lengths_by_source, documents):
    ends = np.cumsum([len(lengths) for lengths in lengths_by_source.values()])
    return np.searchsorted(ends, documents, side="right")


weights_lists = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=1, max_size=9
).filter(any)


@pytest.mark.filterwarnings("ignore:mix. 's")
@settings(max_examples=150, deadline=None)
@given(data=st.data(), weights=weights_lists, shuffle=st.booleans(), seed=st.integers(0, 2**32))
def test_counts_follow_the_weights_at_every_prefix(data, weights, shuffle, seed):
    sizes = [data.draw(st.integers(1, 40)) for _ in weights]
    lengths = {f"s{i}": [2] * n for i, n in enumerate(sizes)}
    corpus = mixed(lengths, weights=weights, unit="documents")
    found = []
    for epoch in range(4):
        found += draws(corpus, epoch, shuffle=shuffle, seed=seed)
    by_source = sources_of(lengths, found)
    share = np.array(weights) / sum(weights)
    sources = np.arange(len(weights))
    counts = np.cumsum(by_source[:, None] == sources, axis=0)
    expected = np.arange(1, len(found) + 1)[:, None] * share
    slack = 2.5 if not _whole_epochs(weights, sizes) else 4.5
    assert (np.abs(counts - expected) <= slack).all()
    firsts = np.cumsum([0, *sizes])
    for s, size in enumerate(sizes):  # each pass over a source is a permutation of it
        own = [d - firsts[s] for d in found if firsts[s] <= d < firsts[s + 1]]
        for begin in range(0, len(own) - size + 1, size):
            assert sorted(own[begin : begin + size]) == list(range(size))


def _whole_epochs(weights, sizes):
    ratios = [w / n for w, n in zip(weights, sizes, strict=True) if w]
    return max(ratios) - min(ratios) <= 1e-9 * max(ratios)


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    weights=st.one_of(st.none(), weights_lists),
    shuffle=st.booleans(),
    unit=st.sampled_from(["tokens", "documents"]),
)
def test_whole_epochs_hold_every_document_once(data, weights, shuffle, unit):
    number = len(weights) if weights else data.draw(st.integers(1, 8))
    lengths = {
        f"s{i}": [data.draw(st.integers(1, 9))] * data.draw(st.integers(1, 30))
        for i in range(number)
    }
    corpus = mixed(lengths, weights=weights, unit=unit, when_dry="drop")
    for epoch in range(3):
        found = draws(corpus, epoch, shuffle=shuffle)
        wanted, first = [], 0
        for i, own in enumerate(lengths.values()):
            if weights is None or weights[i]:
                wanted += range(first, first + len(own))
            first += len(own)
        assert sorted(found) == wanted
        plan = bf.DataLoader(corpus, seq_len=64, shuffle=shuffle)._plan
        for begin in {0, 1, len(found) // 3, len(found) - 1}:
            assert plan.draws(epoch, begin, len(found) - begin).tolist() == found[begin:]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("count", [300, 40_000])
def test_c61_each_of_many_sources_is_drawn_once(count, shuffle):
    tokens = bf.open([np.arange(4)])
    corpus = bf.mix(
        {f"s{i}": tokens for i in range(count)}, weights={f"s{i}": 1.0 for i in range(count)}
    )
    loader = bf.DataLoader(corpus, batch_size=64, seq_len=4, shuffle=shuffle, fields=["input_ids"])
    found = [d for d, _, _ in all_pieces(loader)]
    assert sorted(found) == list(range(count))
    exposure = loader.stats().exposure
    assert len(exposure) == count
    once = {"documents": 1, "tokens": 4, "effective_tokens": 3}
    assert all(row == once for row in exposure.values())
    assert exposure[f"s{count - 1}"]["documents"] == 1


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("shuffle", [False, True])
def test_c63_an_empty_source_disturbs_nobody(place, weights, shuffle):
    sources = {"two": [2, 2], "one": [2]}
    items = list(sources.items())
    items.insert(place, ("empty", []))
    corpus = mixed(dict(items), weights=weights, when_dry="drop")
    loader = bf.DataLoader(corpus, seq_len=2, shuffle=shuffle)
    for _ in range(2):
        assert sorted(all_pieces(loader)) == [(0, 0, 2), (1, 0, 2), (2, 0, 2)]
    assert set(loader.stats().exposure["empty"].values()) == {0}


def test_c63_sources_take_turns_until_all_are_used():
    lengths = {"two": [2] * 2, "four": [2] * 4, "one": [2]}
    found = draws(mixed(lengths, weights=[1, 1, 1], when_dry="drop"))
    assert sorted(found) == list(range(7))
    assert sorted(sources_of(lengths, found[:3])) == [0, 1, 2]
    assert sources_of(lengths, found)[-2:].tolist() == [1, 1]
    for source in ([0, 1], [2, 3, 4, 5], [6]):
        assert [d for d in found if d in source] == source


def test_when_dry_says_how_an_epoch_ends():
    lengths = {"small": [2] * 3, "large": [2] * 12}
    weights = {"small": 1.0, "large": 1.0}
    found = draws(mixed(lengths, weights=weights, when_dry="repeat"))
    assert len(found) == 15
    assert 7 <= sum(d < 3 for d in found) <= 8
    found = draws(mixed(lengths, weights=weights, when_dry="stop"))
    assert found[-1] == 2
    assert len(found) in (5, 6)
    with pytest.raises(bf.PlanError, match="'small' has 3 documents and runs dry"):
        draws(mixed(lengths, weights=weights, when_dry="error"))
    assert len(draws(mixed(lengths, weights=[1, 4], when_dry="error"))) == 15


@pytest.mark.parametrize(
    ("unit", "tokens", "documents"),
    [("documents", (0.25, 0.75), (1, 1)), ("tokens", (0.5, 0.5), (3, 1))],
)
def test_c65_the_unit_of_weights_is_defined(unit, tokens, documents):
    corpus = mixed({"a": [10] * 2000, "b": [30] * 2000}, weights=[1, 1], unit=unit)
    loader = bf.DataLoader(corpus, batch_size=16, seq_len=64, shuffle=True, fields=["input_ids"])
    for _ in loader:
        pass
    exposure = loader.stats().exposure
    everything = sum(e["tokens"] for e in exposure.values())
    for name, share in zip("ab", tokens, strict=True):
        assert exposure[name]["tokens"] / everything == pytest.approx(share, abs=0.002)
    ratio = exposure["a"]["documents"] / exposure["b"]["documents"]
    assert ratio == pytest.approx(documents[0] / documents[1], rel=0.002)


def test_exposure_counts_after_drops_and_cuts():
    corpus = mixed({"a": [4, 20, 4], "b": [6, 30]})
    loader = bf.DataLoader(corpus, seq_len=8, overlong="drop")
    with pytest.warns(UserWarning, match="50 tokens were dropped"):
        list(loader)
    stats = loader.stats()
    assert stats.exposure == {
        "a": {"documents": 2, "tokens": 8, "effective_tokens": 6},
        "b": {"documents": 1, "tokens": 6, "effective_tokens": 5},
    }
    assert stats.dropped == {
        "a": {"documents": 1, "tokens": 20},
        "b": {"documents": 1, "tokens": 30},
    }


def test_weights_that_cannot_be_used_are_refused():
    with pytest.raises(bf.PlanError):
        mixed({"a": [2], "b": [2]}, weights={"a": 1.0})
    for weights in ([1.0, -1.0], [float("nan"), 1.0], [float("inf"), 1.0], [0.0, 0.0]):
        with pytest.raises(bf.PlanError):
            mixed({"a": [2], "b": [2]}, weights=weights)
    with pytest.raises(bf.PlanError):
        draws(mixed({"a": [], "b": [2]}, weights=[1.0, 0.0]))


@pytest.mark.parametrize(
    "weight", [10**400, -(10**400), True, np.True_, "1", None, 1j, np.complex64(1), np.array([1.0])]
)
def test_a_weight_is_a_number(weight):
    with pytest.raises(bf.PlanError, match=r"'a' has (a )?weight"):
        mixed({"a": [2], "b": [2]}, weights={"a": weight, "b": 1})


@pytest.mark.parametrize("one", [1, np.int8(1), np.float32(1), np.array(1.0), np.array(1)])
def test_numbers_of_numpy_are_weights(one):
    corpus = mixed({"a": [2], "b": [2]}, weights={"b": 3, "a": one})
    assert corpus.rule.weights == {"a": 1.0, "b": 3.0}
    assert {type(weight) for weight in corpus.rule.weights.values()} == {float}


def test_corpora_without_names_are_refused_with_advice():
    a = corpus_of([2])
    for corpora in ([a, a], (a,), [], a, None):
        with pytest.raises(TypeError, match=r"expected \{name: corpus\}"):
            bf.mix(corpora)


def test_sources_advance_over_epochs():
    """With weights a source goes on where it stood: all its documents come before any twice."""
    lengths = {"small": [2] * 4, "large": [2] * 20}
    corpus = mixed(lengths, weights=[1, 1], unit="documents")
    counts = Counter()
    for epoch in range(2):
        counts.update(d for d in draws(corpus, epoch, shuffle=True) if d >= 4)
    assert len(counts) == 20
    assert max(counts.values()) - min(counts.values()) <= 1


def test_windows_do_not_change_what_an_epoch_holds():
    corpus = mixed({"a": [3] * 50, "b": [5] * 30}, weights=[2, 1])
    orders = [draws(corpus, window=window, shuffle=True) for window in (1, 7, 1000)]
    assert orders[0] == orders[1] == orders[2]


def test_a_large_source_is_permuted_without_a_table():
    plan = bf.DataLoader(corpus_of([1] * 5000), seq_len=4, shuffle=True)._plan
    found = plan.draws(3, 0, 5000)
    assert sorted(found.tolist()) == list(range(5000))
    displacement = np.abs(found - np.arange(5000)).mean()
    assert displacement == pytest.approx(5000 / 3, rel=0.05)


@pytest.mark.parametrize(
    ("lengths", "how", "words"),
    [
        (
            {"a": [1] * 99, "b": [1]},
            {"weights": [1, 0.001]},
            ["'b'", "0.001", "10.0 epochs of 100"],
        ),
        ({"a": [1] * 100, "b": []}, {"weights": [1, 1]}, ["'b' has weight 1 and no documents"]),
        ({"a": [1] * 100, "b": [0]}, {"weights": [1, 1]}, ["'b' has weight 1 and no tokens"]),
        # By tokens: documents of 500 tokens get few draws for their share.
        ({"a": [1] * 50, "b": [500] * 50}, {"weights": [1, 1]}, ["'b'", "5.0 epochs of 100"]),
        # "a" is dry after 2 draws.
        (
            {"a": [1] * 2, "b": [1] * 98},
            {"weights": [9, 1], "when_dry": "stop"},
            ["'b'", "4.5 epochs of 2 draws"],
        ),
    ],
)
def test_sources_that_give_nothing_are_told(lengths, how, words):
    unit = "tokens" if "500" in str(lengths) or [0] in lengths.values() else "documents"
    with pytest.warns(UserWarning, match="mix: ") as caught:
        mixed(lengths, **how, unit=unit)
    assert len(caught) == 1
    for word in words:
        assert word in str(caught[0].message)


@pytest.mark.parametrize(
    ("lengths", "how"),
    [
        ({"a": [1] * 99, "b": [1]}, {"weights": [99, 1]}),
        ({"a": [1] * 99, "b": [1]}, {"weights": [1, 0]}),
        ({"a": [1] * 99, "b": [1]}, {"weights": [1, 0.001], "when_dry": "drop"}),
        ({"a": [1] * 100, "b": []}, {}),
        ({"a": [1], "b": [1]}, {"weights": [3, 1]}),
    ],
)
def test_sources_that_give_what_they_should_are_not_told(lengths, how):
    mixed(lengths, **how, unit="documents")  # a warning would be an error
