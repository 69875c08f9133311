"""Columns of states: what was packed comes back, and nothing else is taken for one."""

import base64
import json
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.source_columns import MOST_LISTED, pack, unpack


@settings(max_examples=100, deadline=None)
@given(
    dtype=st.sampled_from([np.int64, np.uint16, np.float64]),
    count=st.integers(0, 3 * MOST_LISTED),
    data=st.data(),
)
def test_what_is_packed_comes_back(dtype, count, data):
    value = (
        st.floats(0, allow_infinity=True)
        if dtype is np.float64
        else st.integers(0, np.iinfo(dtype).max)
    )
    column = np.array(data.draw(st.lists(value, min_size=count, max_size=count)), dtype)
    text = json.dumps(pack(column), allow_nan=False)
    again = unpack(json.loads(text), dtype, count, "column")
    assert again.dtype == dtype
    np.testing.assert_array_equal(again, column)


def test_small_numbers_are_short():
    assert len(pack(np.arange(40_000) % 300)) < 4 * 40_000
    assert len(pack(np.zeros(40_000, np.int64))) < 2_000


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(
    value=junk, dtype=st.sampled_from([np.int64, np.uint16, np.float64]), count=st.integers(0, 20)
)
def test_anything_else_is_refused(value, dtype, count):
    try:
        column = unpack(value, dtype, count, "column")
    except bf.StateError:
        return
    assert column.shape == (count,)
    assert (column >= 0).all()


@settings(max_examples=300, deadline=None)
@given(data=st.data(), count=st.sampled_from([17, 40]))
def test_spoilt_text_is_refused_or_is_a_column(data, count):
    text = bytearray(pack(np.arange(count)).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 127))
    try:
        column = unpack(text.decode(), np.int64, count, "column")
    except bf.StateError:
        return
    assert column.shape == (count,)


def test_text_that_would_grow_without_end_is_refused():
    bomb = base64.b64encode(zlib.compress(bytes(50_000_000))).decode()
    with pytest.raises(bf.StateError, match="no column of 20 numbers"):
        unpack(bomb, np.int64, 20, "column")
