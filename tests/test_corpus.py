"""Corpus and mix as Python sees them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from shard_files import documents_of


def corpus_of(*lengths, base=0):
    ends = np.cumsum([0, *lengths])
    return bf.open([np.arange(a, b) + base for a, b in pairwise(ends)])


def test_a_corpus_is_a_sequence_of_read_only_arrays():
    corpus = corpus_of(2, 0, 3)
    assert len(corpus) == 3
    assert documents_of(corpus) == [[0, 1], [], [2, 3, 4]]
    assert corpus[-1].tolist() == corpus[np.int64(2)].tolist() == [2, 3, 4]
    assert corpus[-3].tolist() == [0, 1]
    assert corpus.lengths.tolist() == [2, 0, 3]
    assert corpus.lengths.dtype == np.int64
    assert corpus.num_tokens == 5
    for bad in (3, -4, 2**40):
        with pytest.raises(IndexError, match=f"document {bad} of a corpus of 3"):
            corpus[bad]
    for bad in (1.0, "1", slice(2)):
        with pytest.raises(TypeError):
            corpus[bad]
    for array in (corpus[0], corpus.lengths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_document_outlives_its_corpus(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(range(100)))
    document = bf.open(tmp_path / "a.bin", dtype="uint8")[0]
    assert document.tolist() == list(range(100))


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=5), min_size=1, max_size=5))
def test_a_mix_numbers_source_after_source(sizes):
    corpora = {f"s{i}": corpus_of(*lengths, base=100 * i) for i, lengths in enumerate(sizes)}
    mixed = bf.mix(corpora)
    assert documents_of(mixed) == [d for corpus in corpora.values() for d in documents_of(corpus)]
    assert mixed.sources == tuple(corpora)
    assert mixed.num_tokens == sum(corpus.num_tokens for corpus in corpora.values())
    assert [info.documents for info in mixed.info] == list(map(len, sizes))
    outer = bf.mix({"all": mixed, "more": corpora["s0"]}, weights={"more": 1, "all": 2})
    assert documents_of(outer) == documents_of(mixed) + documents_of(corpora["s0"])
    assert outer.sources == ("all", "more")
    assert outer.rule == bf.corpus.MixRule({"all": 2, "more": 1}, "tokens", "repeat")
    assert mixed.rule is None


def test_a_mixture_with_weights_cannot_become_one_source():
    weighted = bf.mix({"a": corpus_of(1), "b": corpus_of(2)}, weights={"a": 1, "b": 1})
    with pytest.raises(bf.PlanError, match="'x' is itself a mixture with weights"):
        bf.mix({"x": weighted, "y": corpus_of(1)})


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"a": 1}, "exactly a, b"),
        ({"a": 1, "b": 1, "c": 1}, "exactly a, b"),
        ([1, 1], "exactly a, b"),
        ({"a": 1, "b": "1"}, "'b' has weight '1'"),
        ({"a": 1, "b": True}, "'b' has weight True"),
        ({"a": 1, "b": -0.5}, "source 1 has weight -0.5"),
        ({"a": 1, "b": float("inf")}, "finite"),
        ({"a": 0, "b": 0}, "at least one"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights, words):
    with pytest.raises(bf.PlanError, match=words):
        bf.mix({"a": corpus_of(1), "b": corpus_of(2)}, weights=weights)


@pytest.mark.parametrize("argument", ["unit", "when_dry"])
def test_unknown_settings_of_a_mix_are_refused(argument):
    with pytest.raises(bf.PlanError, match=f"{argument}=.*words"):
        bf.mix({"a": corpus_of(1)}, **{argument: "words"})


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_source_needs_a_name(name):
    with pytest.raises(bf.PlanError, match="non-empty string"):
        bf.mix({name: corpus_of(1)})


def test_a_mix_of_other_things_is_refused():
    with pytest.raises(bf.PlanError, match="no corpora"):
        bf.mix({})
    with pytest.raises(TypeError, match="'a' is a list; expected a Corpus"):
        bf.mix({"a": [[1, 2]]})


def test_a_row_map_survives_becoming_one_source():
    store = bf._core.arrow_store("m", np.arange(6), np.array([0, 1, 3, 6]))
    part = bf._core.Source("mapped", [store], np.array([2, 0, 2]))
    info = bf.corpus.SourceInfo("mapped", "arrow", "int64", "documents", "rows", "none", 3, 7)
    mapped = bf.Corpus(bf._core.Corpus([part]), (part,), (info,))
    both = bf.mix({"one": bf.mix({"a": corpus_of(2, 1), "b": mapped, "c": mapped})})
    assert documents_of(both) == [[0, 1], [2]] + 2 * [[3, 4, 5], [0], [3, 4, 5]]


def test_forty_thousand_sources():
    corpus = corpus_of(1, 2)
    mixed = bf.mix({f"s{i}": corpus for i in range(40_000)})
    assert len(mixed) == 80_000
    assert mixed[79_999].tolist() == [1, 2]


def test_a_corpus_says_what_it_is(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(1_500, dtype=np.uint16))
    corpus = bf.open(tmp_path, eos=("start", 7))
    text = "corpus: 2 documents, 1,500 tokens (npy, uint16, boundaries from start token 7)"
    assert corpus.describe() == text
    assert text in repr(corpus)
    assert "2 sources" in repr(bf.mix({"a": corpus, "b": corpus}))
