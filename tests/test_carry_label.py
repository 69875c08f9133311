"""carry_label: the last token of a cut piece has the document's next one for a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import IGNORE, check, corpus_of, document, listed

SHIFTED = ["input_ids", "shift_labels", "loss_weights"]


def batches_of(corpus: Any, **settings: Any) -> list[bf.Batch]:
    loader = bf.DataLoader(corpus, **{"fields": SHIFTED, "num_workers": 0, **settings})
    batches = list(loader)
    for batch in batches:
        check(batch, loader)
    return batches


def test_a_cut_loses_no_label() -> None:
    corpus = bf.open([np.arange(1, 11)])
    (batch,) = batches_of(corpus, batch_size=3, seq_len=4, carry_label=True)
    assert listed(batch["shift_labels"]) == [[2, 3, 4, 5], [6, 7, 8, 9], [10, *[IGNORE] * 3]]
    assert listed(batch["loss_weights"]) == [[1] * 4, [1] * 4, [1, 0, 0, 0]]
    assert batch.num_items == batch.num_items_step == batch.num_items_step_global == 9
    (batch,) = batches_of(corpus, batch_size=3, seq_len=4)
    assert batch.num_items == batch.num_items_step == 7


def test_the_carried_token_is_trained_where_its_mask_says_so() -> None:
    for trained in (0, 1):
        mask = [1, 1, 1, 1, trained, 1]
        docs = [{"input_ids": [1, 2, 3, 4, 5, 6], "loss_mask": mask}]
        loader = bf.DataLoader(
            docs, batch_size=2, seq_len=4, fields=SHIFTED, carry_label=True, num_workers=0
        )
        (batch,) = loader
        check(batch, loader, {0: mask})
        carried = 5 if trained else IGNORE
        assert listed(batch["shift_labels"])[0] == [2, 3, 4, carried]
        assert batch.num_items == batch.num_items_step == 4 + trained
        assert loader.stats().effective_tokens == 4 + trained


def test_what_a_rule_took_away_is_no_label() -> None:
    loader = bf.DataLoader(
        corpus_of([6]), seq_len=4, overlong="truncate", fields=SHIFTED, carry_label=True
    )
    with pytest.warns(UserWarning, match="dropped"):
        (batch,) = loader
    check(batch, loader)
    assert listed(batch["shift_labels"]) == [[1, 2, 3, IGNORE]]


def test_a_carried_token_that_is_bad_is_no_label() -> None:
    docs = [np.array([1, 2, 3, 4, 999, 6]), np.array([7])]
    loader = bf.DataLoader(
        docs, seq_len=4, vocab_size=100, fields=SHIFTED, carry_label=True, packing="concat"
    )
    with pytest.warns(UserWarning, match="document 0 .* token 999 at place 4"):
        first, second = loader
    assert listed(first["shift_labels"]) == [[2, 3, 4, IGNORE]]
    assert listed(first["loss_weights"]) == [[1, 1, 1, 0]]
    assert (first.num_items, first.num_items_step) == (3, 4)
    assert (second.num_items, second.num_items_step) == (0, 1)
    stats = loader.stats()
    assert (stats.effective_tokens, stats.bad_documents, stats.bad_tokens) == (3, 1, 2)


def test_io_modes_carry_the_same(tmp_path: Any) -> None:
    with bf.ShardWriter(tmp_path / "s", dtype="int32") as writer:
        for i, n in enumerate([50, 3, 91, 64, 17]):
            mask = np.arange(n) % 3 > 0
            writer.add(document(i, n, np.int32, 1000), loss_mask=mask.astype(np.uint8))
    streams = [
        [
            listed(batch["shift_labels"])
            for batch in bf.DataLoader(
                bf.open(tmp_path / "s"), seq_len=16, fields=SHIFTED, carry_label=True, io=io,
                verify="checksum",
            )
        ]
        for io in ("mmap", "pread")
    ]  # fmt: skip
    assert streams[0] == streams[1]


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=15),
    seq_len=st.integers(1, 20),
    batch_size=st.integers(1, 3),
    layout=st.sampled_from(["rows", "varlen"]),
    packing=st.sampled_from(["concat", "streaming", "best_fit_decreasing", "bucket"]),
    align=st.integers(1, 3),
    masked=st.booleans(),
    data=st.data(),
)
def test_every_token_but_a_documents_first_is_a_label_once(
    lengths, seq_len, batch_size, layout, packing, align, masked, data
):
    masks = None
    docs: list[Any] = [document(i, n) for i, n in enumerate(lengths)]
    if masked:
        bits = st.lists(st.booleans(), min_size=50, max_size=50)
        masks = {i: [*data.draw(bits)[: n - 1], True] for i, n in enumerate(lengths)}
        docs = [{"input_ids": d, "loss_mask": masks[i]} for i, d in enumerate(docs)]
    loader = bf.DataLoader(
        docs, batch_size=batch_size, seq_len=seq_len * align, layout=layout, packing=packing,
        align=align, fields=["shift_labels"], carry_label=True, num_workers=0,
    )  # fmt: skip
    labels: list[int] = []
    planned = 0
    for batch in loader:
        check(batch, loader, masks)
        labels += [x for x in np.asarray(batch["shift_labels"]).ravel().tolist() if x != IGNORE]
        planned += batch.num_items_step
    want = [
        token
        for i, n in enumerate(lengths)
        for p, token in enumerate(document(i, n).tolist())
        if p > 0 and (masks is None or masks[i][p])
    ]
    assert sorted(labels) == sorted(want)
    stats = loader.stats()
    assert stats.effective_tokens == len(want) == planned
    assert sum(source["effective_tokens"] for source in stats.exposure.values()) == len(want)


def test_it_needs_shift_labels_alone() -> None:
    for fields in (None, ["shift_labels", "labels"], ["input_ids"]):
        with pytest.raises(bf.PlanError, match=r"carry_label=True .* shift_labels"):
            bf.DataLoader(corpus_of([4]), seq_len=4, fields=fields, carry_label=True)
    with pytest.raises(bf.PlanError, match="carry_label is 1"):
        bf.DataLoader(corpus_of([4]), seq_len=4, fields=SHIFTED, carry_label=1)


def test_its_counts_are_part_of_a_state() -> None:
    def make(carry: bool) -> bf.DataLoader:
        return bf.DataLoader(corpus_of([9, 9]), seq_len=4, fields=SHIFTED, carry_label=carry)

    whole = [listed(batch["shift_labels"]) for batch in make(True)]
    loader = make(True)
    iterator = iter(loader)
    begun = [listed(next(iterator)["shift_labels"]) for _ in range(2)]
    state = loader.state_dict()
    again = make(True)
    again.load_state_dict(state)
    assert begun + [listed(batch["shift_labels"]) for batch in again] == whole
    assert again.stats().exposure == exposure_of(make(True))
    with pytest.raises(bf.StateError, match="carry_label: True in the state, False here"):
        make(False).load_state_dict(state)


def exposure_of(loader: bf.DataLoader) -> Any:
    for _ in loader:
        pass
    return loader.stats().exposure
