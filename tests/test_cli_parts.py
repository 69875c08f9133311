"""The parts of the command line: histogram, text, padded rows, meter, toy transformer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import brimful as bf
from brimful.cli.histogram import MAX_ROWS, length_histogram, length_summary
from brimful.cli.meter import measure, simulated_step
from brimful.cli.padding import PaddedRows, padded_loader
from brimful.cli.text import (
    brief,
    count,
    duration,
    make_console,
    percent,
    print_filled,
    print_path,
    print_table,
)
from brimful.cli.toy import ToyConfig, document_mask, fold_vocabulary, next_token_loss, train

some_lengths = st.lists(st.integers(0, 700), max_size=40).map(lambda x: np.array(x, np.int64))


class Documents:
    """A corpus whose token says where it is: document * 10,000 + place."""

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        self.lengths = lengths

    def __getitem__(self, index: int) -> NDArray[Any]:
        return index * 10_000 + np.arange(self.lengths[index], dtype=np.int32)


@given(some_lengths)
def test_histogram_holds_each_document_in_one_bucket(lengths: NDArray[np.int64]) -> None:
    buckets = length_histogram(lengths)
    assert len(buckets) <= MAX_ROWS
    assert sum(b.documents for b in buckets) == len(lengths)
    assert sum(b.tokens for b in buckets) == lengths.sum()
    for b in buckets:
        inside = lengths[(lengths >= b.low) & (lengths <= b.high)]
        assert (b.documents, b.tokens) == (len(inside), inside.sum())
    for before, after in itertools.pairwise(buckets):
        assert after.low == before.high + 1


def test_histogram_joins_the_shortest_so_that_few_rows_remain() -> None:
    buckets = length_histogram(np.array([0, 1, 3, 2**40, 2**40 + 5]))
    assert [(b.low, b.documents) for b in buckets if b.documents] == [(0, 3), (2**40, 2)]


def test_summary_names_lengths_that_occur() -> None:
    lengths = np.arange(101)
    assert length_summary(lengths)["p50"] == 50
    assert length_summary(lengths)["max"] == 100
    assert length_summary(lengths[:0]) == {}


def test_numbers_read_alike() -> None:
    assert count(1234567) == "1,234,567"
    assert [percent(x) for x in (None, 0.999999, 1.0)] == ["-", "99.99 %", "100.00 %"]
    assert [duration(x) for x in (0, 2.5e-4, 0.0123, 4.0)] == ["0 us", "250 us", "12.3 ms", "4 s"]
    assert [brief(x) for x in (999, 12_345, 7.8e6, 2e9)] == ["999", "12.3 k", "7.8 M", "2 G"]


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    name = "runs[bold]/a:x:b [red]:smile:"
    console = make_console()
    print_path(console, "in ", name)
    print_filled(console, name)
    print_table(console, [name], [[name]])
    assert capsys.readouterr().out.count(name) == 4


@pytest.mark.parametrize(("width", "gap"), [(80, "  "), (11, " ")])
def test_tables_close_up_where_the_terminal_is_narrow(
    width: int, gap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console = make_console()
    console.width = width
    print_table(console, ["abcd", "number"], [["x", "1"]])
    assert capsys.readouterr().out.splitlines()[0].rstrip() == f"abcd{gap}number"


@settings(deadline=None)  # arrays of many rows take their time on a busy machine
@given(some_lengths, st.integers(1, 700))
def test_padded_rows_hold_every_token_once(lengths: NDArray[np.int64], seq_len: int) -> None:
    corpus = Documents(lengths)
    dataset = PaddedRows(corpus, seq_len)
    rows = [dataset[i] for i in range(len(dataset))]
    assert all(0 < len(row) <= seq_len for row in rows)
    whole = [corpus[i] for i in range(len(lengths))]
    empty = np.empty(0, np.int32)
    assert np.array_equal(np.concatenate([empty, *rows]), np.concatenate([empty, *whole]))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_padded_batches_pad_to_the_longest_and_carry_their_counts(num_workers: int) -> None:
    loader = padded_loader(
        Documents(np.array([3, 0, 7])),
        batch_size=2,
        seq_len=5,
        num_workers=num_workers,
        shuffle=False,
        seed=0,
    )
    first, second = loader
    assert first["input_ids"].tolist() == [
        [0, 1, 2, 0, 0],
        [20000, 20001, 20002, 20003, 20004],
    ]
    assert first["labels"].tolist()[0] == [0, 1, 2, -100, -100]
    assert first["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert (first["num_tokens"], first["num_items"]) == (8, 6)
    assert second["input_ids"].tolist() == [[20005, 20006]]


def make_batches(n: int) -> list[dict[str, Any]]:
    ids = torch.zeros(2, 5, dtype=torch.int64)
    return [{"input_ids": ids, "num_tokens": 7, "num_items": 5} for _ in range(n)]


def test_meter_counts_what_came_after_the_first_batch() -> None:
    slots: list[int] = []
    measured = measure("four", make_batches(4), seconds=None, step=slots.append)
    assert (measured.batches, measured.slots) == (3, 30)
    assert (measured.tokens, measured.effective_tokens) == (21, 15)
    assert measured.utilization == 0.7
    assert slots == [10] * 4
    assert 0 <= measured.stall_seconds <= measured.seconds


def test_meter_goes_on_for_as_many_epochs_as_the_time_takes() -> None:
    measured = measure("two", make_batches(2), seconds=0.01, step=simulated_step(1e-5))
    assert measured.batches > 2
    assert measured.stall_share < 1
    assert measured.as_dict()["effective_tokens_per_second"] > 0


@pytest.mark.parametrize("seconds", [None, 0.01])
@pytest.mark.parametrize("batches", [0, 1])
def test_meter_refuses_what_leaves_nothing_to_measure(batches: int, seconds: float | None) -> None:
    with pytest.raises(bf.PlanError, match="fewer than two batches"):
        measure("few", make_batches(batches), seconds=seconds)


def test_folded_vocabulary_keeps_the_most_frequent_tokens() -> None:
    classes, share = fold_vocabulary(np.array([5, 0, 9, 1, 7]), 3)
    assert classes.tolist() == [0, 0, 1, 0, 2]
    assert share == 16 / 22


def test_mask_keeps_documents_apart_and_unused_ends_to_themselves() -> None:
    mask = document_mask(torch.tensor([[0, 0, 1, -1]]))
    assert mask.int().tolist() == [[[[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]]


def test_loss_sums_over_labels_only() -> None:
    logits = torch.zeros(1, 4, 8)
    labels = torch.tensor([[-100, 3, -100, 5]])
    assert next_token_loss(logits, labels).item() == pytest.approx(2 * np.log(8))


def test_toy_learns_a_fixed_batch() -> None:
    ids = torch.arange(64).reshape(2, 32) % 16
    batch = {
        "input_ids": ids,
        "labels": ids,
        "position_ids": torch.arange(32).expand(2, -1),
        "document_ids": torch.zeros(2, 32, dtype=torch.int32),
    }
    config = ToyConfig(classes=16, seq_len=32, width=32, heads=2, layers=1)
    result = train([batch] * 30, torch.arange(16), config, steps=20, seed=1)
    assert len(result.losses) == 20
    assert result.losses[-1] < 0.5 * result.losses[0]
    assert result.tokens == 20 * 64
