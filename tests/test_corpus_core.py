"""The native corpus: numbering, row maps, lengths, hashes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful import FormatError, PlanError, _core


def make_store(lengths, dtype=np.uint32, base=0, offset_dtype=np.int64):
    """Token k of the store is base + k, so that a token names its place."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(offset_dtype)
    values = (base + np.arange(offsets[-1])).astype(dtype)
    return _core.arrow_store("memory", values, offsets)


lengths_lists = st.lists(st.integers(0, 9), max_size=12)


@given(
    st.lists(st.lists(lengths_lists, max_size=4), max_size=4), st.sampled_from([np.int32, np.int64])
)
def test_documents_run_over_sources_and_stores(layout, offset_dtype):
    sources, expected = [], []
    for s, stores in enumerate(layout):
        native = []
        for p, lengths in enumerate(stores):
            base = 10_000 * s + 1_000 * p
            native.append(make_store(lengths, base=base, offset_dtype=offset_dtype))
            start = base
            for n in lengths:
                expected.append(list(range(start, start + n)))
                start += n
        sources.append(_core.Source(f"s{s}", native))
    corpus = _core.Corpus(sources)
    assert corpus.num_documents == len(expected)
    assert corpus.num_tokens == sum(map(len, expected))
    assert corpus.lengths().tolist() == [len(d) for d in expected]
    assert [corpus.document(i).tolist() for i in range(len(expected))] == expected
    for s, stores in enumerate(layout):
        assert corpus.source_documents(s) == sum(map(len, stores))
        assert corpus.source_tokens(s) == sum(map(sum, stores))


@given(st.lists(lengths_lists, min_size=1, max_size=3), st.data())
def test_a_row_map_chooses_and_repeats_units(stores, data):
    n = sum(map(len, stores))
    rows = data.draw(st.lists(st.integers(0, n - 1), max_size=15) if n else st.just([]))
    native = [make_store(lengths, base=100 * p) for p, lengths in enumerate(stores)]
    plain = _core.Corpus([_core.Source("a", native)])
    mapped = _core.Corpus([_core.Source("a", native, np.array(rows, dtype=np.int64))])
    assert mapped.num_documents == len(rows)
    assert mapped.lengths().tolist() == plain.lengths()[rows].tolist() if rows else True
    for i, row in enumerate(rows):
        assert mapped.document(i).tolist() == plain.document(row).tolist()
    assert mapped.num_tokens == sum(mapped.lengths().tolist())


@pytest.mark.parametrize("row", [-1, 3, 2**62])
def test_a_row_map_out_of_range_is_refused(row):
    with pytest.raises(FormatError, match=f"{row} in place 1"):
        _core.Corpus([_core.Source("a", [make_store([1, 2, 3])], np.array([0, row]))])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5000), st.data())
def test_the_hash_sees_lengths_and_their_order_but_not_the_cut_into_stores(lengths, data):
    def hash_of(*stores):
        return _core.Corpus([_core.Source("a", [make_store(s) for s in stores])]).lengths_hash(0)

    cut = data.draw(st.integers(0, len(lengths)))
    whole = hash_of(lengths)
    assert hash_of(lengths[:cut], lengths[cut:]) == whole
    assert hash_of([*lengths, 0]) != whole
    i = data.draw(st.integers(0, len(lengths) - 1))
    other = list(lengths)
    other[i] += 1
    assert hash_of(other) != whole
    swapped = lengths[::-1]
    assert (hash_of(swapped) == whole) == (swapped == lengths)


def test_a_document_is_a_read_only_view_that_keeps_its_memory_alive():
    values = np.arange(6, dtype=np.uint16)
    store = _core.arrow_store("memory", values, np.array([0, 2, 6], dtype=np.int32))
    document = _core.Corpus([_core.Source("a", [store])]).document(1)
    assert np.shares_memory(document, values)
    with pytest.raises(ValueError, match="read-only"):
        document[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        document.setflags(write=True)
    del values, store
    assert document.tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0], "1 given for 2"),
        ([1, -1], "source 1"),
        ([0, 0], "add up"),
        ([1, float("nan")], "finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, words):
    with pytest.raises(PlanError, match=words):
        _core.Mix(2, schedule=[(0, weights)])


def test_an_empty_source_name_is_refused():
    with pytest.raises(PlanError, match="source 1 has an empty name"):
        _core.Corpus([_core.Source("a", []), _core.Source("", [])])


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([], "no offsets"),
        ([0, 3, 2], "offset 2 is 2"),
        ([0, 7], "offset 1 is 7"),
        ([-1, 2], "offset 0 is -1"),
    ],
)
def test_offsets_are_checked(offsets, words):
    with pytest.raises(FormatError, match=words):
        _core.arrow_store("memory", np.arange(6), np.array(offsets, dtype=np.int64))


@pytest.mark.parametrize(
    "values", [np.zeros(3), np.zeros(3, ">u2"), np.zeros((2, 2), int), np.zeros(6, int)[::2]]
)
def test_values_that_are_no_plain_tokens_are_refused(values):
    with pytest.raises(FormatError):
        _core.arrow_store("memory", values, np.array([0, 2]))


def test_a_corpus_of_forty_thousand_sources():
    store = make_store([1, 2])
    corpus = _core.Corpus([_core.Source(f"s{i}", [store]) for i in range(40_000)])
    assert corpus.num_documents == 80_000
    assert corpus.source_name(39_999) == "s39999"
    assert corpus.document(79_999).tolist() == [1, 2]
