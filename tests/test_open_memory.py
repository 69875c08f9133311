"""Arrays, lists and dicts as a corpus."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from shard_files import documents_of

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"]


@given(st.lists(st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 127), max_size=5))))
def test_each_array_is_a_document_in_its_own_dtype(items):
    corpus = bf.open([np.array(tokens, dtype) for dtype, tokens in items])
    assert documents_of(corpus) == [tokens for _, tokens in items]
    assert [document.dtype.name for document in corpus] == [dtype for dtype, _ in items]


def test_big_arrays_stay_where_they_are_and_order_is_kept():
    big = np.arange(300_000, dtype=np.int64)
    small = [np.array([1]), np.array([2, 3])]
    corpus = bf.open([big, *small, big])
    assert documents_of(corpus) == [big.tolist(), [1], [2, 3], big.tolist()]
    assert np.shares_memory(corpus[0], big)
    assert np.shares_memory(corpus[3], big)
    assert not np.shares_memory(corpus[1], small[0])


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        (1, 2, 3),
        np.array([1, 2, 3], ">u2"),
        np.array([1, 9, 2, 9, 3, 9])[::2],
        np.array([1, 2, 3], np.uint64),
    ],
)
def test_whatever_holds_integers_is_tokens(values):
    assert documents_of(bf.open([values])) == [[1, 2, 3]]
    assert documents_of(bf.open([values], dtype="uint8")) == [[1, 2, 3]]


def test_torch_tensors_are_tokens():
    assert documents_of(bf.open([torch.tensor([1, 2]), torch.tensor([], dtype=torch.int32)])) == [
        [1, 2],
        [],
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.5], "token"),
        (np.zeros(2), "float64"),
        (np.zeros(2, bool), "bool"),
        (["a"], "array 1"),
        ([[1, 2]], "shape"),
        (7, "shape"),
        ([2**63], "not of int64"),
        (np.array([2**63], np.uint64), "not of int64"),
        ([None], "array 1"),
    ],
)
def test_what_is_no_document_is_refused_and_named(values, words):
    with pytest.raises(bf.FormatError, match=words):
        bf.open([[1], values])


def test_c47_a_declared_dtype_never_squeezes_tokens():
    assert bf.open([[1, 65_535]], dtype="uint16")[0].dtype == np.uint16
    with pytest.raises(bf.FormatError, match="token 1 is 70000, not of uint16"):
        bf.open([[1, 70_000]], dtype="uint16")
    with pytest.raises(bf.FormatError, match="token 0 is -1, not of uint16"):
        bf.open(np.array([-1]), dtype="uint16")


def test_one_array_is_a_document_or_a_document_a_row():
    assert documents_of(bf.open(np.array([1, 2, 3]))) == [[1, 2, 3]]
    matrix = np.arange(6, dtype=np.uint16).reshape(2, 3)
    assert documents_of(bf.open(matrix)) == matrix.tolist()
    assert documents_of(bf.open(np.asfortranarray(matrix))) == matrix.tolist()
    assert documents_of(bf.open(np.array([], np.uint16))) == documents_of(bf.open([])) == []
    for array in (np.zeros((1, 1, 1), int), np.array(1)):
        with pytest.raises(bf.FormatError, match="dimensions"):
            bf.open(array)


@pytest.mark.parametrize("source", [{}, {1, 2}, None, 7, ["a.bin", [1]], [{}, [1]]])
def test_what_cannot_be_opened_is_refused(source):
    with pytest.raises(bf.FormatError):
        bf.open(source)


@pytest.mark.parametrize("source", [[], ()])
def test_an_empty_list_is_an_empty_corpus(source):
    corpus = bf.open(source)
    assert (len(corpus), corpus.num_tokens, corpus.lengths.tolist()) == (0, 0, [])


@pytest.mark.parametrize(
    "arguments", [{"format": "raw"}, {"rows": "sequences"}, {"loss_masks": True}]
)
def test_what_speaks_of_files_is_refused_for_memory(arguments):
    with pytest.raises(bf.FormatError, match="go with files"):
        bf.open([[1]], **arguments)


@pytest.mark.parametrize("arguments", [{"format": "csv"}, {"rows": "columns"}])
def test_unknown_settings_are_refused(arguments):
    with pytest.raises(bf.FormatError, match="expected"):
        bf.open([[1]], **arguments)


def test_loss_masks_go_with_arrays():
    corpus = bf.open([[1, 2], [3]], loss_masks=[[True, False], np.array([0])])
    assert documents_of(corpus) == [[1, 2], [3]]
    assert corpus.info[0].loss_masks == "all"


@pytest.mark.parametrize(
    "masks",
    [
        [[1, 0]],
        [[1, 0], [1, 1]],
        [[1, 2], [1]],
        [[0.5, 1], [1]],
        [[1, 256], [1]],
        [[1, [0]], [1]],
        [np.ma.array([1, 0], mask=[0, 1]), [1]],
        [],
        5,
        np.array(1),
        "10",
        {"a": 1, "b": 0},
    ],
)
def test_loss_masks_that_do_not_fit_are_refused(masks):
    with pytest.raises(bf.FormatError):
        bf.open([[1, 2], [3]], loss_masks=masks)


def test_dicts_hold_documents():
    corpus = bf.open(
        [
            {"input_ids": [1, 2, 3], "labels": [-100, -100, 3]},
            {"input_ids": [4, 5], "loss_mask": [0, 1], "attention_mask": [1, 1]},
            {"input_ids": np.array([6])},
        ]
    )
    assert documents_of(corpus) == [[1, 2, 3], [4, 5], [6]]
    assert corpus.info[0].loss_masks == "all"
    assert bf.open([{"input_ids": [1]}]).info[0].loss_masks == "none"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"labels": [1]}, "expected input_ids"),
        ({"input_ids": [1], "text": "a"}, "text"),
        ({"input_ids": [1], "labels": [1], "loss_mask": [1]}, "expected input_ids"),
        ({"input_ids": [1, 2], "labels": [1]}, "labels of shape"),
        ({"input_ids": [1, 2], "labels": [2, -100]}, "label 2 at token 0, which is 1"),
        ({"input_ids": [1, 2], "loss_mask": [1]}, "a loss mask of shape"),
        ({"input_ids": [1, 2], "attention_mask": [1, 0]}, "attention_mask hides tokens"),
        ({"input_ids": [1, 2, 3], "attention_mask": [1]}, r"document 1: attention_mask of shape"),
        ({"input_ids": [1, 2, 3], "attention_mask": []}, "document 1: attention_mask of shape"),
        ({"input_ids": [1], "attention_mask": 1}, "document 1: attention_mask of shape"),
        ({"input_ids": [1, 2], "attention_mask": [1, [1]]}, "document 1: attention_mask is no"),
        ({"input_ids": [1, 2], "labels": [1, [2]]}, "document 1: labels is no list"),
        ({"input_ids": [1, 2], "loss_mask": [1, [1]]}, "document 1: expected a loss mask"),
        ({"input_ids": [1], "labels": np.ma.array([1])}, "document 1: labels: a masked array"),
        ({"input_ids": np.ma.array([1])}, "document 1: a masked array"),
    ],
)
def test_dicts_that_hold_something_else_are_refused(item, words):
    with pytest.raises(bf.FormatError, match=words):
        bf.open([{"input_ids": [9]}, item])


def test_masked_arrays_are_refused():
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    for source in (masked, [masked], [[4], masked], masked.reshape(1, 3)):
        with pytest.raises(bf.FormatError, match="masked array"):
            bf.open(source)
    assert documents_of(bf.open([masked.compressed()])) == [[1, 3]]


def test_no_arrays_have_no_loss_masks():
    assert len(bf.open([], loss_masks=[])) == 0
    with pytest.raises(bf.FormatError, match="1 loss masks for 0 arrays"):
        bf.open([], loss_masks=[[1]])
