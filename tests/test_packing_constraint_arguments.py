"""What pack() takes for its constraints, and what it refuses in which words."""

from typing import Any

import numpy as np
import pytest

import brimful as bf
from test_packing import STRATEGIES, bins_of

LENGTHS = [5, 3, 0, 8, 2, 8, 1]
COUNTS = ["max_segments", "align", "min_piece"]


def constrained(name: str, value: Any, strategy: Any = "best_fit_decreasing") -> bf.PackPlan:
    others: dict[str, Any] = {}
    if name == "resource":
        others["resource_capacity"] = 8
    if name == "resource_capacity":
        others["resource"] = [0] * len(LENGTHS)
    return bf.pack(LENGTHS, 16, strategy=strategy, **{name: value}, **others)


@pytest.mark.parametrize("name", [*COUNTS, "resource_capacity", "seed"])
@pytest.mark.parametrize("value", [2.0, "2", [2], True, np.True_, np.float32(2), b"2", 1j])
def test_what_is_no_whole_number_is_refused(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} is .* expected"):
        constrained(name, value)


@pytest.mark.parametrize("name", ["align", "min_piece"])
def test_none_is_no_number_where_it_means_nothing(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is None; a whole number of tokens is expected"):
        constrained(name, None)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, -(2**63), -(2**63) - 1, -(2**100)])
def test_less_than_one_is_refused(name: str, value: int) -> None:
    with pytest.raises(bf.PlanError, match=f"{name} is {value} "):
        constrained(name, value)


@pytest.mark.parametrize("name", ["align", "min_piece"])
@pytest.mark.parametrize("value", [9, 2**31, 2**32 + 1, 2**63 - 1, 2**63, 2**64 + 1])
def test_more_than_fits_the_capacity_is_refused(name: str, value: int) -> None:
    with pytest.raises(bf.PlanError, match=f"{name} is {value} tokens"):
        constrained(name, value)


def test_messages_say_what_to_do() -> None:
    with pytest.raises(bf.PlanError, match=r"align is 3 tokens; .* divide the capacity of 16"):
        constrained("align", 3)
    with pytest.raises(bf.PlanError, match="min_piece is 9 tokens; it must be from 1 to 8, half"):
        constrained("min_piece", 9)
    with pytest.raises(bf.PlanError, match=r"from 1 to 4, half of what a bin takes .* \(7\)"):
        bf.pack([1], 8, start_token=True, min_piece=5)
    assert constrained("min_piece", 8).num_bins == 2
    assert bf.pack([1], 8, start_token=True, min_piece=4).num_bins == 1


@pytest.mark.parametrize("value", [2**63, 2**64, 10**30])
def test_numbers_beyond_64_bits_are_refused(value: int) -> None:
    with pytest.raises(bf.PlanError, match=f"max_segments is {value} pieces"):
        constrained("max_segments", value)
    with pytest.raises(bf.PlanError, match=f"resource_capacity is {value} "):
        constrained("resource_capacity", value)


@pytest.mark.parametrize("seed", [-(2**63) - 1, 2**64, 10**30])
def test_a_seed_beyond_64_bits_is_refused(seed: int) -> None:
    with pytest.raises(bf.PlanError, match=f"seed is {seed}; an integer of 64 bits is expected"):
        constrained("seed", seed)


@pytest.mark.parametrize("seed", [0, 1, -1, -(2**63), 2**64 - 1, np.int8(-3), np.uint64(2**63)])
def test_any_integer_of_64_bits_is_a_seed(seed: Any) -> None:
    assert constrained("seed", seed).num_bins == 2


@pytest.mark.parametrize("value", [0, 1, None, "True", [True], np.array([True])])
def test_a_start_token_is_there_or_not(value: Any) -> None:
    with pytest.raises(TypeError, match=r"start_token is .*; True or False is expected"):
        constrained("start_token", value)
    assert constrained("start_token", np.True_).start_tokens == 6


def test_numpy_integers_are_counts() -> None:
    plan = bf.pack(
        LENGTHS,
        16,
        max_segments=np.uint64(2),
        align=np.int8(2),
        min_piece=np.uint16(3),
        resource=LENGTHS,
        resource_capacity=np.int64(16),
    )
    assert (plan.max_segments, plan.align, plan.min_piece) == (2, 2, 3)
    assert constrained("max_segments", None).max_segments is None


@pytest.mark.parametrize("name", ["groups", "resource"])
@pytest.mark.parametrize(
    "values",
    [
        [0, 0, 1, 1, 2, 3, 3],
        (0, 0, 1, 1, 2, 3, 3),
        *(np.array([0, 0, 1, 1, 2, 3, 3], dtype) for dtype in "bBhHiIqQ"),
        np.array([0, 0, 1, 1, 2, 3, 3], ">i4"),
        np.repeat([0, 0, 1, 1, 2, 3, 3], 2)[::2],
        np.array([[0, 9], [0, 9], [1, 9], [1, 9], [2, 9], [3, 9], [3, 9]], np.uint8)[:, 0],
    ],
    ids=lambda values: str(getattr(values, "dtype", type(values))),
)
def test_integers_of_any_kind_are_groups_and_amounts(name: str, values: Any) -> None:
    expected = constrained(name, np.array([0, 0, 1, 1, 2, 3, 3]))
    assert bins_of(constrained(name, values)) == bins_of(expected)


@pytest.mark.parametrize("name", ["groups", "resource"])
@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        (["a", "a", "b", "b", "c", "d", "d"], TypeError, "has the dtype <U1; integers"),
        ([0.0] * 7, TypeError, "has the dtype float64; integers"),
        ([True] * 7, TypeError, "has the dtype bool"),
        ([None] * 7, TypeError, "has the dtype object"),
        ([2**70] * 7, TypeError, "has the dtype object"),
        ("0011233", bf.PlanError, r"has the shape \(\)"),
        (3, bf.PlanError, r"has the shape \(\)"),
        ([[0] * 7], bf.PlanError, r"has the shape \(1, 7\)"),
        ([[0], [1, 2]], bf.PlanError, "is no array of one number a document"),
        ([0] * 6, bf.PlanError, "has 6 entries for 7 documents"),
        ([0] * 8, bf.PlanError, "has 8 entries for 7 documents"),
        ([], bf.PlanError, "has 0 entries for 7 documents"),
    ],
)
def test_other_groups_and_amounts_are_refused(
    name: str, values: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"{name} {words}"):
        constrained(name, values)


def test_ids_of_groups_may_be_any_integers() -> None:
    ids = np.array([2**64 - 1, 2**64 - 1, 2**63, 0, 0, 5, 6], np.uint64)
    assert bins_of(constrained("groups", ids)) == bins_of(
        constrained("groups", [-9, -9, 3, 4, 4, 2**63 - 1, -(2**63)])
    )


def test_documents_of_a_group_must_be_neighbours() -> None:
    with pytest.raises(bf.PlanError, match="documents 0 and 3 have group 5 with other groups betw"):
        constrained("groups", [5, 2, 2, 5, 6, 7, 8])
    assert constrained("groups", [5, 2, 2, 9, 6, 7, 8]).num_bins == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, 0, 0, -1, 0, 0, 0], "document 3 has a resource of -1; it cannot be negative"),
        (
            np.array([2**63] + [0] * 6, np.uint64),
            "document 0 has a resource of 92233720368547758",
        ),
    ],
)
@pytest.mark.parametrize("groups", [None, range(7)])
def test_an_amount_that_cannot_be_is_refused(values: Any, words: str, groups: Any) -> None:
    with pytest.raises(bf.PlanError, match=words):
        bf.pack(LENGTHS, 16, resource=values, resource_capacity=8, groups=groups)


def test_a_resource_and_its_capacity_come_together() -> None:
    with pytest.raises(bf.PlanError, match="resource is given without resource_capacity"):
        bf.pack([1], 8, resource=[1])
    with pytest.raises(bf.PlanError, match="resource_capacity is given without resource"):
        bf.pack([1], 8, resource_capacity=1)
    with pytest.raises(bf.PlanError, match="resource_capacity is -1; it cannot be negative"):
        bf.pack([1], 8, resource=[1], resource_capacity=-1)


def test_concat_takes_no_groups() -> None:
    for lengths in ([], [1, 2]):
        with pytest.raises(bf.PlanError, match=r'strategy="concat" .* cannot keep groups together'):
            bf.pack(lengths, 8, strategy="concat", groups=[0] * len(lengths))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_great_numbers_do_not_overflow(strategy: Any) -> None:
    most = 2**63 - 1
    huge: dict[str, Any] = {"resource": [most, most, 0, 1], "resource_capacity": most}
    plan = bf.pack([1, 1, 1, 1], 8, strategy=strategy, **huge)
    assert plan.num_bins == (4 if strategy == "pad" else 3)
    assert plan.lower_bound == 3
    if strategy == "concat":
        return
    plan = bf.pack(
        [2**31 - 1, 2**31 - 1, 2**62, 2**61],
        2**31 - 1,
        strategy=strategy,
        overlong="drop",
        groups=[0, 0, 1, 2],
        **huge,
    )
    assert (plan.num_bins, plan.dropped_documents) == (0, 4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_largest_pieces_are_aligned_and_have_their_start_token(strategy: Any) -> None:
    capacity = 2**31 - 2
    plan = bf.pack(
        [capacity - 1, 1, capacity - 2],
        capacity,
        strategy=strategy,
        align=capacity,
        start_token=True,
    )
    assert [len(pieces) for pieces in bins_of(plan)] == [1, 1, 1]
    assert plan.lower_bound == 3


def test_the_given_arrays_stay_as_they_are() -> None:
    groups = np.array([0, 0, 1])
    resource = np.array([1, 2, 3])
    for array in (groups, resource):
        array.flags.writeable = False
    bf.pack([1, 2, 3], 8, groups=groups, resource=resource, resource_capacity=3)
    assert groups.tolist() == [0, 0, 1]
    assert resource.tolist() == [1, 2, 3]
