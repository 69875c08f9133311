"""What a profile counts in batches of every make, against numbers counted by hand."""

from __future__ import annotations

import dataclasses
from collections import UserDict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful.profiling.counting import figures_of
from brimful.profiling.figures import BatchFigures

IDS = [[5, 6, 7, 8, 0, 0], [9, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]]
MASK = [[1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]
LABELS = [[-100, 6, 7, 8, -100, -100], [-100] * 6, [1, 2, 3, 4, 5, 6]]
PADDED = BatchFigures(
    slots=18,
    tokens=11,
    effective_tokens=3 + 0 + 5,  # a row's first token is predicted by none
    documents=3,
    attention_work=16 + 1 + 36,
    num_bytes=3 * 18 * 8,
    lengths=(4, 1, 6),
)


@dataclasses.dataclass
class Fields:
    input_ids: Any
    attention_mask: Any
    labels: Any


Named = namedtuple("Named", ["input_ids", "attention_mask", "labels"])


class Attributes:
    def __init__(self, input_ids: Any, attention_mask: Any, labels: Any) -> None:
        self.input_ids, self.attention_mask, self.labels = input_ids, attention_mask, labels


def columns(make: Any = np.array) -> dict[str, Any]:
    return {"input_ids": make(IDS), "attention_mask": make(MASK), "labels": make(LABELS)}


@pytest.mark.parametrize("make", [np.array, torch.tensor])
@pytest.mark.parametrize(
    "hold",
    [
        lambda **c: c,
        lambda **c: UserDict(c),
        lambda **c: Fields(**c),
        lambda **c: Named(**c),
        lambda **c: (c, 3),
        lambda **c: ["text", c],
        lambda **c: {"student": c, "weight": np.zeros(0)},
        lambda **c: {"deep": ({"inputs": c},)},
    ],
)
def test_padded_rows_are_counted_in_whatever_holds_them(make: Any, hold: Any) -> None:
    assert figures_of(hold(**columns(make))) == PADDED


def test_attributes_of_an_object_are_columns() -> None:
    found = figures_of(Attributes(**columns()))
    assert dataclasses.replace(found, num_bytes=PADDED.num_bytes) == PADDED


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int32, torch.float32, torch.bfloat16, torch.uint8]
)
def test_a_mask_of_any_dtype(dtype: torch.dtype) -> None:
    batch = columns(torch.tensor)
    batch["attention_mask"] = batch["attention_mask"].to(dtype)
    found = figures_of(batch)
    assert (found.tokens, found.lengths) == (11, (4, 1, 6))


def test_lists_of_numbers_are_counted_without_arrays() -> None:
    found = figures_of(columns(list))
    assert (found.slots, found.tokens, found.effective_tokens) == (18, 11, 8)
    one = figures_of({"input_ids": IDS[0], "attention_mask": MASK[0], "labels": LABELS[0]})
    assert (one.slots, one.tokens, one.effective_tokens) == (6, 4, 3)


def test_items_that_nobody_collated_add_up() -> None:
    items = [
        {name: torch.tensor(rows[i]) for name, rows in columns(list).items()} for i in range(3)
    ]
    assert figures_of(items) == PADDED


@pytest.mark.parametrize("name", ["cu_seqlens", "cu_seq_lens_q"])
def test_boundaries_say_where_segments_end(name: str) -> None:
    batch = {
        "input_ids": torch.arange(10)[None],
        name: torch.tensor([0, 4, 10, 10], dtype=torch.int32),
    }
    found = figures_of(batch)
    assert (found.slots, found.tokens, found.lengths) == (10, 10, (4, 6))


def test_boundaries_of_something_else_are_left_alone() -> None:
    patches = {"cu_seqlens": torch.tensor([0, 256, 1 << 40])}
    assert figures_of({"input_ids": torch.arange(10)[None]} | patches).tokens is None
    found = figures_of(columns(torch.tensor) | patches)
    assert (found.tokens, found.lengths) == (11, (4, 1, 6))


def test_positions_that_begin_again_say_where_segments_begin() -> None:
    batch = {
        "input_ids": np.zeros((2, 6), np.int64),
        "position_ids": np.array([[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5]]),
    }
    found = figures_of(batch)
    assert (found.tokens, found.lengths) == (12, (3, 2, 1, 6))
    batch["attention_mask"] = np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0]])
    found = figures_of(batch)
    assert (found.tokens, found.lengths) == (9, (3, 2, 4))


def test_a_mask_that_numbers_documents_has_a_segment_a_number() -> None:
    batch = {
        "input_ids": np.zeros((2, 6), np.int64),
        "attention_mask": np.array([[1, 1, 2, 2, 2, 0], [1, 2, 3, 3, 0, 0]]),
    }
    assert figures_of(batch).lengths == (2, 3, 1, 1, 2)


def test_a_mask_of_four_dimensions_says_nothing_about_padding() -> None:
    found = figures_of(
        {"input_ids": np.zeros((1, 4), np.int64), "attention_mask": np.ones((1, 1, 4, 4))}
    )
    assert (found.slots, found.tokens) == (4, None)


def test_ids_alone_and_a_pair_of_ids_and_labels() -> None:
    ids = torch.arange(8).view(2, 4)
    assert figures_of(ids).slots == figures_of([ids]).slots == 8
    pair = figures_of((ids, torch.where(ids % 4 == 3, -100, ids)))
    assert (pair.slots, pair.tokens, pair.effective_tokens) == (8, None, 6)


@pytest.mark.parametrize("make", [np.array, torch.tensor, list])
@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ([[5, 6, 7], [8, -100, -100]], 2),
        ([[-100, -100, 7], [-100, 9, 1]], 3),  # padded on the left
        ([[5, 6, 7], [8, 9, 1]], 4),
        ([1, 0], 2),  # classes of rows
        ([[1, 2], [-100, 4]], 3),  # of a decoder
    ],
)
def test_effective_tokens_are_the_labels_that_a_loss_is_made_of(
    make: Any, labels: Any, count: int
) -> None:
    ids = make([[1, 2, 3], [4, 5, 6]])
    assert figures_of({"input_ids": ids, "labels": make(labels)}).effective_tokens == count
    shifted = figures_of({"input_ids": ids, "labels": ids, "shift_labels": make(labels)})
    assert shifted.effective_tokens == int(np.sum(np.array(labels) != -100))


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=4))
def test_effective_tokens_are_what_transformers_counts(rows: list[list[bool]]) -> None:
    width = max(map(len, rows))
    labels = torch.tensor(
        [[7 if kept else -100 for kept in row + [False] * width][:width] for row in rows]
    )
    counted = figures_of({"input_ids": torch.ones_like(labels), "labels": labels})
    assert counted.effective_tokens == int((labels[..., 1:] != -100).sum())


@pytest.mark.parametrize("batch", [None, 3, "text", [], {}, (), torch.zeros(3), [[]], object()])
def test_what_has_no_ids_is_only_weighed(batch: Any) -> None:
    found = figures_of(batch)
    assert (found.slots, found.tokens, found.documents, found.lengths) == (None,) * 4
    assert found.num_bytes == (12 if isinstance(batch, torch.Tensor) else 0)


class Hostile(UserDict):  # type: ignore[type-arg]
    def __getitem__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_a_batch_that_cannot_be_read_breaks_no_loop() -> None:
    assert figures_of(Hostile(input_ids=1)) == BatchFigures()


def test_tensors_on_a_device_are_not_waited_for() -> None:
    batch = {name: column.to("meta") for name, column in columns(torch.tensor).items()}
    found = figures_of(batch)
    assert found == BatchFigures(slots=18, num_bytes=3 * 18 * 8)


@given(
    st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=4), min_size=1, max_size=4),
    st.sampled_from(["rows", "varlen"]),
)
def test_a_batch_of_brimful_and_its_columns_alone_are_counted_alike(
    bins: list[list[int]], layout: str
) -> None:
    documents = [np.arange(length) for lengths in bins for length in lengths]
    loader = bf.DataLoader(
        documents, batch_size=2, seq_len=16, layout=layout, tail="keep", num_workers=0
    )
    for batch in loader:
        whole = figures_of(batch)
        assert whole.slots == batch["input_ids"].numel()
        assert whole.attention_work == sum(length**2 for length in whole.lengths or ())
        assert sum(whole.lengths or ()) == whole.tokens == batch.num_tokens
        mask = (batch["input_ids"] >= 0) & (
            torch.from_numpy(np.repeat(batch.documents, np.diff(batch.cu_seqlens_host)) >= 0)
        ).view(batch["input_ids"].shape)
        alone = figures_of(dict(batch) | {"attention_mask": mask})
        assert (alone.tokens, alone.lengths, alone.effective_tokens) == (
            whole.tokens,
            whole.lengths,
            whole.effective_tokens,
        )
