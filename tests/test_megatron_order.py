"""Megatron's sample order: every index equals megatron-core's own, bit for bit, dtype included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import brimful as bf
import megatron_core

LENGTHS = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 7, 20, 100]), min_size=1, max_size=30)


def assert_same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def assert_indices(found: bf.MegatronIndices, expected: Any) -> None:
    assert_same(found.document_index, expected.document_index)
    assert_same(found.sample_index, expected.sample_index)
    assert_same(found.shuffle_index, expected.shuffle_index)


@given(
    lengths=LENGTHS,
    seq_len=st.integers(1, 40),
    epochs=st.floats(0, 5.2),
    seed=st.integers(0, 2**32 - 1),
    extra_token=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_indices_of_an_epoch_to_five(
    lengths: list[int], seq_len: int, epochs: float, seed: int, extra_token: bool
) -> None:
    assume(sum(lengths) > 0)
    num_samples = int(epochs * sum(lengths) / seq_len)
    expected = megatron_core.of_lengths(
        lengths, seq_len, num_samples, seed, extra_token=extra_token
    )
    for given_lengths in (lengths, np.array(lengths, np.int32)):
        found = bf.megatron_order(
            given_lengths, seq_len, num_samples, seed, extra_token=extra_token
        )
        assert_indices(found, expected)
    document_index, sample_index, shuffle_index = found
    assert len(shuffle_index) == len(sample_index) - 1 >= num_samples
    assert len(document_index) % len(lengths) == 0


@given(lengths=LENGTHS, seq_len=st.integers(1, 40), seed=st.integers(0, 99), extra=st.booleans())
@settings(deadline=None)
def test_without_a_number_it_is_one_epoch(
    lengths: list[int], seq_len: int, seed: int, extra: bool
) -> None:
    assume(sum(lengths) > 0)
    expected = megatron_core.of_lengths(lengths, seq_len, None, seed, extra_token=extra)
    assert_indices(bf.megatron_order(lengths, seq_len, None, seed, extra_token=extra), expected)


@given(
    lengths=LENGTHS,
    seq_len=st.integers(1, 40),
    epochs=st.floats(0, 3.2),
    extra_token=st.booleans(),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_a_partial_last_sample_of_a_validation_set(
    lengths: list[int], seq_len: int, epochs: float, extra_token: bool, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(lengths) - 1))
    documents = range(first, data.draw(st.integers(first + 1, len(lengths))))
    tokens = sum(lengths[d] for d in documents)
    assume(tokens > 0)
    num_samples = int(epochs * tokens / seq_len)
    asked: dict[str, Any] = {
        "documents": documents,
        "extra_token": extra_token,
        "drop_partial": False,
    }
    try:
        expected = megatron_core.of_lengths(
            lengths, seq_len, num_samples, 5, split="valid", **asked
        )
    except AssertionError:  # it has no offset for a sample that ends with an empty document
        with pytest.raises(bf.PlanError, match="ends with an empty document"):
            bf.megatron_order(lengths, seq_len, num_samples, 5, **asked)
        return
    assert_indices(bf.megatron_order(lengths, seq_len, num_samples, 5, **asked), expected)


@pytest.mark.parametrize("extra_token", [False, True])
@pytest.mark.parametrize(("share", "apart"), [(0.5, True), (0.79, True), (0.81, False), (1, False)])
def test_a_last_epoch_is_shuffled_apart_where_it_gives_few_samples(
    share: float, apart: bool, extra_token: bool
) -> None:
    lengths = [10] * 100  # 250 samples of 4 in an epoch, 249 where there is an extra token
    per_epoch = (1000 - extra_token) // 4
    num_samples = (2000 - extra_token) // 4 + int(share * per_epoch)
    expected = megatron_core.of_lengths(lengths, 4, num_samples, 9, extra_token=extra_token)
    found = bf.megatron_order(lengths, 4, num_samples, 9, extra_token=extra_token)
    assert_indices(found, expected)
    last = found.document_index[-100:]
    assert (sorted(last.tolist()) == list(range(100))) == apart
    assert (found.shuffle_index[(2000 - extra_token) // 4 :].min() > 400) == apart


@pytest.mark.parametrize(
    ("tokens", "seq_len", "samples"),
    [(2**25 + 9, 2**23 + 2, 4), (3 * (2**24 + 5), 2**24 + 5, 4)],  # of 5 and 3
)
def test_a_number_of_partial_samples_that_32_bits_round(
    tokens: int, seq_len: int, samples: int
) -> None:
    rule: dict[str, Any] = {"extra_token": False, "drop_partial": False}
    lengths = [1000, tokens - 1000]
    expected = megatron_core.of_lengths(lengths, seq_len, None, 1, split="valid", **rule)
    found = bf.megatron_order(lengths, seq_len, None, 1, **rule)
    assert len(found.shuffle_index) == samples
    assert_indices(found, expected)


def test_numbers_that_need_64_bits() -> None:
    long = 2**31 + 5
    found = bf.megatron_order([long, 3], 2**30, 2, 0, documents=[0])
    assert found.sample_index.dtype == np.int64
    assert found.sample_index.tolist() == [[0, 0], [0, 2**30], [0, 2**31]]
    short = bf.megatron_order([long, 3], 1, 2, 0, documents=[1])  # the index's kind goes by all
    assert short.sample_index.dtype == np.int64
    assert short.document_index.tolist() == [1]


def test_samples_of_no_tokens_are_refused() -> None:
    for lengths in ([], [0, 0]):
        for num_samples in (0, 1, 10):
            with pytest.raises(bf.PlanError, match="no tokens"):
                bf.megatron_order(lengths, 4, num_samples, 0)
        assert len(bf.megatron_order(lengths, 4, None, 0).shuffle_index) == 0
    with pytest.raises(bf.PlanError, match="no tokens"):
        bf.megatron_order([5, 5], 4, 1, 0, documents=range(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seq_len": 0}, "seq_len is 0"),
        ({"seq_len": 2**31}, "seq_len is 2147483648"),
        ({"seq_len": 4.0}, "seq_len is 4.0"),
        ({"num_samples": -1}, "num_samples is -1"),
        ({"num_samples": 2**70}, "more than 2\\*\\*62"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"lengths": [3, -1]}, "lengths has -1"),
        ({"lengths": np.array([3, -1], np.int32)}, "lengths has -1"),
        ({"documents": range(3)}, "numbered from 0"),
        ({"documents": [-1]}, "numbers from -1"),
        ({"documents": [0.5]}, "dtype float64"),
    ],
)
def test_what_cannot_be(change: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"lengths": [3, 4], "seq_len": 2, "num_samples": 3, "seed": 0}
    with pytest.raises(bf.PlanError, match=message):
        bf.megatron_order(**settings | change)


def test_the_core_reads_no_length_that_is_not_there() -> None:
    from brimful import _core

    lengths = np.array([5, 5], np.int32)
    for order in ([0, 7], [0, -1]):
        with pytest.raises(bf.PlanError, match="numbered from 0"):
            _core.sample_index(lengths, np.array(order, np.int32), 3, 2, True, wide=False)


@given(st.sampled_from(["969,30,1", "99,1", "1", "0.2,0.3,0.5", "0,1,0", "1, 1, 1", "8/1/1"]),
       st.integers(0, 5000))  # fmt: skip
def test_splits(split: str, n: int) -> None:
    expected = [
        None if ends is None else range(round(ends[0] * float(n)), round(ends[1] * float(n)))
        for ends in megatron_core.split_ends(split)
    ]
    assert list(bf.megatron_split(split, n)) == expected


@pytest.mark.parametrize("split", ["", "0,0,0", "1,2,3,4", "1.2.3", 5, "a"])
def test_splits_that_cannot_be(split: Any) -> None:
    with pytest.raises(bf.PlanError, match="969,30,1"):
        bf.megatron_split(split, 10)


WEIGHTS = st.one_of(
    st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=40),
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 0.1, 0.7]), min_size=1, max_size=150),  # ties
)


@given(weights=WEIGHTS, size=st.integers(0, 3000))
@settings(deadline=None)
def test_blends(weights: list[float], size: int) -> None:
    sets, numbers = megatron_core.blend(weights, size)
    found = bf.megatron_blend(weights, size)
    assert_same(found.dataset_index, sets)
    assert_same(found.dataset_sample_index, numbers)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60))
@settings(deadline=None)
def test_blends_that_take_everything(sizes: list[int]) -> None:
    sets, numbers = megatron_core.blend(sizes, None)
    found = bf.megatron_blend(sizes, None)
    assert_same(found.dataset_index, sets)
    assert_same(found.dataset_sample_index, numbers)


@given(weights=WEIGHTS, num_samples=st.integers(0, 10**9), surplus=st.sampled_from([0, 0.005, 1]))
def test_sizes_of_blends(weights: list[float], num_samples: int, surplus: float) -> None:
    found = bf.megatron_blend_sizes(weights, num_samples, surplus=surplus)
    assert found.weights == megatron_core.normalize(weights)
    assert found.size == sum(megatron_core.samples_of_blend(weights, num_samples))
    assert found.asked == megatron_core.samples_of_blend(weights, num_samples, surplus)


@pytest.mark.parametrize("weights", [[], [1, 0], [1, -1], [float("nan")], [float("inf")], ["a"]])
def test_weights_that_cannot_be(weights: list[Any]) -> None:
    with pytest.raises(bf.PlanError, match="weights are"):
        bf.megatron_blend(weights, 3)
    with pytest.raises(bf.PlanError, match="weights are"):
        bf.megatron_blend_sizes(weights, 3)


def test_blends_without_a_size_take_whole_numbers() -> None:
    with pytest.raises(bf.PlanError, match="whole numbers"):
        bf.megatron_blend([1.5, 2], None)
    assert bf.megatron_blend([1.0, 2.0], None).dataset_index.tolist() == [1, 0, 1]
