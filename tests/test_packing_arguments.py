"""What pack() takes for lengths and capacity, what it refuses in which words, and its report."""

from typing import Any

import numpy as np
import pytest

import brimful as bf
from brimful.packing import Overlong
from test_packing import FITS, bins_of

LENGTHS = [5, 3, 0, 8, 2, 8, 1]


@pytest.mark.parametrize(
    "lengths",
    [
        LENGTHS,
        tuple(LENGTHS),
        *(np.array(LENGTHS, dtype) for dtype in "bBhHiIqQ"),
        np.array(LENGTHS, ">i8"),
        np.repeat(LENGTHS, 2)[::2],
        np.array(LENGTHS[::-1])[::-1],
    ],
    ids=lambda lengths: getattr(lengths, "dtype", type(lengths)).__class__.__name__,
)
def test_integers_of_any_kind_are_lengths(lengths: Any) -> None:
    assert bins_of(bf.pack(lengths, 8)) == bins_of(bf.pack(np.array(LENGTHS, np.int64), 8))


def test_the_given_lengths_stay_as_they_are() -> None:
    lengths = np.array(LENGTHS, np.int64)
    lengths.flags.writeable = False
    bf.pack(lengths, 3)
    assert lengths.tolist() == LENGTHS


@pytest.mark.parametrize(
    ("lengths", "error", "words"),
    [
        ([3, -5], bf.PlanError, "document 1 has a length of -5 tokens"),
        ([-(2**63)], bf.PlanError, "document 0 has a length of -9223372036854775808 tokens"),
        ([1.0, 2.0], TypeError, "dtype float64; integers are expected"),
        ([float("nan")], TypeError, "dtype float64; integers are expected"),
        ([True], TypeError, "dtype bool"),
        (["12"], TypeError, "integers are expected"),
        ([None], TypeError, "dtype object"),
        ([2**70], TypeError, "dtype object"),
        (np.ma.masked_array([1, 2], [0, 1]), TypeError, "lengths is a masked array"),
        ([1, 2**63], (bf.PlanError, TypeError), "."),
        (np.array([1, 2**63], np.uint64), bf.PlanError, "document 1 has a length of 9223372036854"),
        ([[1, 2], [3, 4]], bf.PlanError, r"shape \(2, 2\)"),
        ([[1], [2, 3]], bf.PlanError, "no array of one number a document"),
        (5, bf.PlanError, r"shape \(\)"),
        ("5", bf.PlanError, r"shape \(\)"),
    ],
)
def test_other_lengths_are_refused(lengths: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        bf.pack(lengths, 8)


@pytest.mark.parametrize("capacity", [0, -1, 2**31, 2**40, 2**63, -(2**63) - 1, 2**100])
def test_a_capacity_out_of_range_is_refused(capacity: int) -> None:
    with pytest.raises(
        bf.PlanError, match=f"is {capacity} tokens; it must be from 1 to 2147483647"
    ):
        bf.pack([1], capacity)


@pytest.mark.parametrize("capacity", [8.0, "8", None, [8], True, np.True_])
def test_a_capacity_that_is_no_whole_number_is_refused(capacity: Any) -> None:
    with pytest.raises(TypeError, match="a whole number of tokens is expected"):
        bf.pack([1], capacity)


def test_a_numpy_integer_is_a_capacity_and_a_buffer() -> None:
    assert bf.pack([3, 5], np.int16(8)).num_bins == 1
    assert bf.pack([3, 5], 8, strategy="streaming", buffer=np.uint8(2)).num_bins == 1


@pytest.mark.parametrize("buffer", [0, -1, 2**16 + 1, 2**40, -(2**63) - 1, 2**100])
def test_a_buffer_out_of_range_is_refused(buffer: int) -> None:
    with pytest.raises(bf.PlanError, match=f"is {buffer} documents; it must be from 1 to 65536"):
        bf.pack([1], 8, strategy="streaming", buffer=buffer)


@pytest.mark.parametrize("buffer", [8.0, "8", None, [8], True, np.True_])
def test_a_buffer_that_is_no_whole_number_is_refused(buffer: Any) -> None:
    with pytest.raises(TypeError, match="a whole number of documents is expected"):
        bf.pack([1], 8, buffer=buffer)


def test_time_has_no_upper_limit_and_is_not_negative() -> None:
    assert bf.pack([1], 8, time_limit=10**400).num_bins == 1
    for seconds in (-1, -(10**400), float("nan")):
        with pytest.raises(bf.PlanError, match=r"time_limit is .* seconds; it must be from 0"):
            bf.pack([1], 8, time_limit=seconds)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        bf.PlanError, match='strategy="bfd" is unknown: choose "concat", "first_fit'
    ):
        bf.pack([1], 8, strategy="bfd")  # type: ignore[arg-type]
    with pytest.raises(bf.PlanError, match='overlong="cut" is unknown: choose "split", "truncate"'):
        bf.pack([1], 8, overlong="cut")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, ["concat"], ("split",), 1, b"concat", np.array("pad"), ""])
def test_what_is_no_name_is_refused_with_the_known_ones(value: Any) -> None:
    with pytest.raises(bf.PlanError, match=r'strategy=.* choose "concat", .* or "pad"'):
        bf.pack([1], 8, strategy=value)
    with pytest.raises(bf.PlanError, match=r'overlong=.* choose "split", .* or "error"'):
        bf.pack([1], 8, overlong=value)


@pytest.mark.parametrize("strategy", FITS)
def test_an_overlong_document_is_an_error_where_the_rule_says_so(strategy: Any) -> None:
    with pytest.raises(
        bf.PlanError,
        match='document 2 has 9 tokens, more than the capacity of 8: choose overlong="split", '
        '"truncate" or "drop"',
    ):
        bf.pack([3, 8, 9, 10], 8, strategy=strategy, overlong="error")
    assert bf.pack([3, 8], 8, strategy=strategy, overlong="error").num_bins == 2


@pytest.mark.parametrize("overlong", ["split", "truncate", "drop", "error"])
def test_concat_cuts_anywhere_whatever_the_rule(overlong: Overlong) -> None:
    plan = bf.pack([3, 9], 8, strategy="concat", overlong=overlong)
    assert bins_of(plan) == [[(0, 0, 3), (1, 0, 5)], [(1, 5, 4)]]
    assert plan.dropped_tokens == plan.truncated_documents == 0
    assert plan.split_documents == 1


def test_a_report_says_how_good_the_plan_is() -> None:
    optimal = bf.pack([5, 3, 8, 0], 8).report()
    assert "4 documents into bins of 8 tokens" in optimal
    assert "100.000 %" in optimal
    assert "2, optimal" in optimal
    assert "16 placed, none lost" in optimal
    assert "3 whole, 1 empty" in optimal
    assert "1 to 2, 1.5 on average" in optimal


def test_a_report_never_flatters() -> None:
    # 1,000 bins, where 999 could do as far as the bound knows: 0.1001 % are 0.11 %.
    plan = bf.pack([4, 4, 3, 3, 3, 3] + [10] * 997, 10)
    assert (plan.num_bins, plan.lower_bound) == (1000, 999)
    assert "within 0.11 % of optimal" in plan.report()
    nearly = bf.pack([1_000_000] * 99 + [999_999], 1_000_000)
    assert "99.999 %" in nearly.report()


def test_a_report_of_nothing() -> None:
    assert "0 documents" in bf.pack([], 8).report()
    assert "none: no bin" in bf.pack([], 8).report()


def test_a_report_tells_cuts_and_losses() -> None:
    lengths = [20, 3, 9]
    assert "1 whole, 2 split" in bf.pack(lengths, 8).report()
    assert "1 whole, 2 truncated" in bf.pack(lengths, 8, overlong="truncate").report()
    dropped = bf.pack(lengths, 8, overlong="drop").report()
    assert "1 whole, 2 dropped" in dropped
    assert "29 lost (90.6 %, overlong='drop')" in dropped
