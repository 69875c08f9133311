"""What packing does to documents: sums that add up, facts counted by hand, and words."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful.distribution import DocumentGroup
from brimful.packing import Overlong, Strategy
from test_packing import RULES, STRATEGIES

COUNTS = [field.name for field in dataclasses.fields(DocumentGroup) if "context" not in field.name]
# Lengths of one, two, three and four digits of 16 bits, on which the sort goes by turns.
length_lists = st.lists(
    st.one_of(st.integers(0, 40), st.sampled_from([2**16 - 1, 2**16, 2**16 + 1, 3 * 2**16])),
    max_size=45,
)


def counts(group: DocumentGroup) -> dict[str, int]:
    return {name: getattr(group, name) for name in COUNTS}


def added(groups: tuple[DocumentGroup, ...]) -> dict[str, int]:
    return {name: sum(getattr(group, name) for group in groups) for name in COUNTS}


def check_group(group: DocumentGroup, plan: bf.PackPlan, members: np.ndarray) -> None:
    """Everything that a group says, counted one document after the other."""
    lengths = plan.document_lengths
    expected = dict.fromkeys(COUNTS, 0)
    for document in members.tolist():
        mine = plan.documents == document
        placed = int(plan.lengths[mine].sum())
        pieces = int(np.count_nonzero(mine))
        length = int(lengths[document])
        if placed == length:
            fate = ("empty", "whole", "split")[min(pieces, 2)]
        else:
            fate = "truncated" if placed else "dropped"
        expected["documents"] += 1
        expected["tokens"] += length
        expected[f"{fate}_documents"] += 1
        expected["placed_tokens"] += placed
        expected["pieces"] += pieces
        expected["tokens_after_cut"] += int(plan.lengths[mine & (plan.starts > 0)].sum())
    assert counts(group) == expected


@given(
    length_lists,
    st.sampled_from([1, 5, 16, 2**15, 2**17]),
    st.sampled_from(STRATEGIES),
    st.sampled_from(RULES),
    st.integers(1, 4),
)
def test_groups_say_what_became_of_each_document(
    lengths: list[int], capacity: int, strategy: Strategy, overlong: Overlong, num_sources: int
) -> None:
    if capacity == 1:
        lengths = [length % 41 for length in lengths]
    plan = bf.pack(lengths, capacity, strategy=strategy, overlong=overlong)
    sources = np.arange(len(lengths)) * 7 % num_sources
    distribution = plan.distribution(sources)
    check_group(distribution.total, plan, np.arange(len(lengths)))
    assert added(distribution.by_length) == counts(distribution.total)
    assert added(distribution.by_source) == counts(distribution.total)

    order = np.argsort(np.array(lengths, np.int64), kind="stable")
    first = 0
    for group in distribution.by_length:
        members = order[first : first + group.documents]
        first += group.documents
        check_group(group, plan, members)
        assert group.shortest == plan.document_lengths[members[0]]
        assert group.longest == plan.document_lengths[members[-1]]
    assert [group.source for group in distribution.by_source] == list(dict.fromkeys(sources))
    for by_source in distribution.by_source:
        check_group(by_source, plan, np.flatnonzero(sources == by_source.source))


@given(
    length_lists, st.sampled_from([7, 2**15]), st.sampled_from(STRATEGIES), st.sampled_from(RULES)
)
def test_the_total_says_what_the_plan_says(
    lengths: list[int], capacity: int, strategy: Strategy, overlong: Overlong
) -> None:
    plan = bf.pack(lengths, capacity, strategy=strategy, overlong=overlong)
    total = plan.distribution().total
    assert total.documents == len(lengths)
    assert total.tokens == sum(lengths)
    assert total.placed_tokens == plan.num_tokens
    assert total.tokens == total.placed_tokens + total.dropped_tokens
    assert total.documents == (
        total.placed_documents + total.dropped_documents + total.empty_documents
    )
    for name in (
        "dropped_tokens",
        "dropped_documents",
        "truncated_documents",
        "split_documents",
        "empty_documents",
    ):
        assert getattr(total, name) == getattr(plan, name), name
    assert total.pieces == len(plan.documents)
    assert total.labels == sum(max(length - 1, 0) for length in lengths)
    assert total.placed_labels == int((plan.lengths - 1).sum())
    assert total.labels - total.placed_labels == (
        total.labels_lost_to_cuts + sum_of_lost_labels(plan)
    )


@given(
    st.lists(st.integers(0, 40), max_size=40),
    st.sampled_from(["split", "truncate", "drop"]),
    st.sampled_from([s for s in STRATEGIES if s != "concat"]),
    st.fixed_dictionaries(
        {},
        optional={
            "align": st.sampled_from([1, 2, 4]),
            "start_token": st.booleans(),
            "max_segments": st.integers(1, 4),
            "seed": st.integers(0, 9),
        },
    ),
    st.sampled_from(["pairs", "resource", "least piece", "none"]),
)
def test_constraints_change_nothing_in_what_is_told(
    lengths: list[int], overlong: Overlong, strategy: Strategy, given_: dict[str, Any], more: str
) -> None:
    n = len(lengths)
    if more == "pairs":
        overlong = "drop"
        given_ = {**given_, "groups": np.arange(n) // 2}
    elif more == "resource":
        overlong = "drop"
        given_ = {**given_, "resource": np.arange(n) % 5, "resource_capacity": 3}
    elif more == "least piece":
        given_ = {**given_, "min_piece": 5}
    plan = bf.pack(lengths, 16, strategy=strategy, overlong=overlong, **given_)
    distribution = plan.distribution()
    check_group(distribution.total, plan, np.arange(n))
    assert added(distribution.by_length) == counts(distribution.total)
    assert distribution.total.dropped_documents == plan.dropped_documents
    assert distribution.total.split_documents == plan.split_documents
    assert distribution.total.dropped_tokens == plan.dropped_tokens
    assert plan.report()


def sum_of_lost_labels(plan: bf.PackPlan) -> int:
    """Labels of lost tokens: all of a dropped document's, each token of a truncated one's end."""
    return plan.dropped_tokens - plan.dropped_documents


@given(length_lists, st.sampled_from([7, 2**15]), st.sampled_from(STRATEGIES))
def test_pieces_are_counted_by_bin_and_by_document(
    lengths: list[int], capacity: int, strategy: Strategy
) -> None:
    plan = bf.pack(lengths, capacity, strategy=strategy)
    distribution = plan.distribution()
    for counted in (distribution.bins_by_pieces, distribution.documents_by_pieces):
        assert counted @ np.arange(len(counted)) == len(plan.documents)
    assert distribution.bins_by_pieces.sum() == plan.num_bins
    assert distribution.documents_by_pieces.sum() == distribution.total.placed_documents


def test_context_is_the_mean_of_earlier_tokens_seen() -> None:
    # A document of 5 sees 0 + 1 + 2 + 3 + 4 earlier tokens; cut at 3, it sees 0 + 1 + 2 and 0 + 1.
    total = bf.pack([5], 3).distribution().total
    assert total.given_context == 10 / 5
    assert total.placed_context == 4 / 5
    assert total.tokens_after_cut == 2
    assert total.labels_lost_to_cuts == 1


def test_dropping_long_documents_shows_in_their_tenth() -> None:
    plan = bf.pack(np.arange(1, 101), 90, overlong="drop")
    *shorter, longest = plan.distribution().by_length
    assert (longest.shortest, longest.longest) == (91, 100)
    assert longest.dropped_documents == 10
    assert longest.dropped_tokens == longest.tokens == sum(range(91, 101))
    assert [group.documents for group in shorter] == [10] * 9
    assert sum(group.dropped_tokens for group in shorter) == 0


def test_few_documents_are_a_group_each() -> None:
    groups = bf.pack([5, 3, 9], 10).distribution().by_length
    assert [(group.shortest, group.documents) for group in groups] == [(3, 1), (5, 1), (9, 1)]


@pytest.mark.parametrize("lengths", [[], [0, 0]], ids=["none", "empty"])
def test_nothing_has_a_distribution_too(lengths: list[int]) -> None:
    distribution = bf.pack(lengths, 8).distribution(["a"] * len(lengths))
    assert distribution.total.documents == distribution.total.empty_documents == len(lengths)
    assert distribution.total.placed_context == distribution.total.given_context == 0
    assert len(distribution.by_length) == len(lengths)
    assert len(distribution.by_source) == min(len(lengths), 1)
    assert bf.pack(lengths, 8).report()


def test_sources_may_be_names_and_are_told_in_their_order() -> None:
    plan = bf.pack([5, 3, 9, 4], 6, overlong="drop")
    for names in (["web", "code", "web", "code"], np.array(["web", "web", "code", "code"])):
        web, code = plan.distribution(names).by_source
        assert (web.source, code.source) == ("web", "code")
    assert (web.tokens, web.placed_tokens) == (8, 8)
    assert (code.tokens, code.placed_tokens, code.dropped_documents) == (13, 4, 1)


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ([1], "shape [1]"),
        ([[1, 2, 3]], "shape [1, 3]"),
        (3, "shape []"),
        ([0.5, 1.0, 2.0], "float64"),
        ([1, "a", None], "mixes"),
    ],
)
def test_sources_that_name_none_are_refused(sources: Any, words: str) -> None:
    with pytest.raises(bf.PlanError) as error:
        bf.pack([1, 2, 3], 4).distribution(sources)
    assert words in str(error.value)


def test_the_plan_keeps_the_lengths_that_it_was_given_and_nobody_writes_to_them() -> None:
    given_lengths = np.array([5, 3, 9], np.int64)
    plan = bf.pack(given_lengths, 10)
    assert np.shares_memory(plan.document_lengths, given_lengths)
    assert not plan.document_lengths.flags.writeable
    assert given_lengths.flags.writeable
    narrow = bf.pack(given_lengths.astype(np.uint8), 10)
    assert narrow.document_lengths.dtype == np.int64
    assert narrow.document_lengths.tolist() == [5, 3, 9]


def test_the_report_tells_who_loses_what() -> None:
    lengths = [8] * 18 + [20, 30]
    names = ["code"] * 18 + ["web"] * 2
    report = bf.pack(lengths, 16, overlong="drop").report(names)
    assert "50 lost" in report
    tenths = report.split("Tenths of the documents, by length:\n")[1].splitlines()[2:12]
    assert tenths[0].split() == ["8", "-", "8", "8.25", "%", "11.11", "%", "2", "0", "0", "0"]
    assert tenths[9].split() == ["20", "-", "30", "25.77", "%", "0", "0", "0", "2", "-"]
    (web,) = (line.split() for line in report.splitlines() if line.startswith("  web"))
    assert web == ["web", "25.77", "%", "0", "0", "0", "2", "-"]

    split = bf.pack(lengths, 16).report()
    # 20 = 16 + 4 and 30 = 16 + 14: 18 tokens after a cut, and two labels less.
    assert "18 tokens (9.28 % of those placed) come after a cut" in " ".join(split.split())
    assert "172 placed, 2 lost at cuts" in split
    assert "pieces/document 1 to 2, 1.1 on average" in split
    assert "sees all earlier ones" in bf.pack(lengths, 32).report()
    started = " ".join(bf.pack(lengths, 16, start_token=True).report().split())
    # 20 = 15 + 5 and 30 = 15 + 15.
    assert "every placed token has one: 22 start tokens" in started


def test_the_report_shows_the_largest_of_many_sources() -> None:
    report = bf.pack(np.arange(1, 51), 64).report([f"source {i}" for i in range(50)])
    assert "source 49" in report
    assert "source 30" in report
    assert "source 29" not in report
    assert "and 30 more" in report


@pytest.mark.parametrize("capacity", [4096, 2**31 - 1])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_report_fits_eighty_columns(strategy: Strategy, capacity: int) -> None:
    lengths = np.concatenate(
        [np.arange(1, 40_001), [10**9] * 2_000 if capacity > 4096 else [10**6]]
    )
    report = bf.pack(lengths, capacity, strategy=strategy).report(np.full(len(lengths), "x" * 99))
    assert max(map(len, report.splitlines())) <= 80


def test_plans_and_distributions_say_in_a_line_what_they_are() -> None:
    plan = bf.pack([5, 3, 9, 4] * 500, 6, max_segments=2)
    assert repr(plan).startswith("<brimful.PackPlan: best_fit_decreasing, 2,000 documents in ")
    assert repr(plan).endswith(" % full, max_segments 2>")
    assert len(repr(plan)) < 120
    assert repr(bf.pack([], 8)) == (
        "<brimful.PackPlan: best_fit_decreasing, 0 documents in 0 bins of 8 tokens>"
    )
    assert repr(plan.distribution()) == (
        "<brimful.Distribution: 2,000 documents, 1,500 whole, 500 cut, 0 dropped, 0 empty; "
        "10 groups by length, 0 sources>"
    )


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"max_segments": 3}, "max_segments 3"),
        ({"align": 2, "min_piece": 4}, "align 2, min_piece 4"),
        ({"start_token": True}, "start_token"),
        ({"groups": [0, 0, 1]}, "groups"),
        (
            {"resource": [1, 0, 1], "resource_capacity": 0, "overlong": "drop"},
            "resource_capacity 0",
        ),
    ],
)
def test_the_report_names_the_constraints_in_force(given_: dict[str, Any], told: str) -> None:
    plan = bf.pack([5, 3, 9], 16, **given_)
    (line,) = (line for line in plan.report().splitlines() if "constraints" in line)
    assert line == f"  constraints     {told}"
    assert told in repr(plan)
    assert "constraints" not in bf.pack([5, 3, 9], 16).report()


def test_far_from_the_bound_is_no_share_of_the_best() -> None:
    far = bf.pack([1] * 7, 2, strategy="pad").report()
    assert "7, 75.00 % more bins than the bound of 4" in far
    assert "within" not in far
    near = dataclasses.replace(bf.pack([10] * 11, 11), lower_bound=10)
    assert "11, within 10.00 % of optimal" in near.report()
