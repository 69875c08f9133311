"""Context parallelism: the shares of a group's ranks are cut zigzag out of one batch."""

from __future__ import annotations

import itertools
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.config import FIELDS
from truth import check, corpus_of, document, listed, pieces, same

ALL = list(FIELDS)


def share(begin: int, end: int, size: int, rank: int) -> list[int]:
    """Slots of a unit that a rank holds, in the order in which it holds them."""
    n = (end - begin) // size
    return [begin + x + n // 2 * (rank if x < n // 2 else 2 * (size - 1) - rank) for x in range(n)]


def shares(batch: bf.Batch, by: str, layout: str, size: int, rank: int) -> list[int]:
    """Slots of a whole batch that a rank holds, by the form that TransformerEngine computes."""
    cu = listed(batch.cu_seqlens)[: batch.num_segments + 1]
    width = cu[-1] // (next(iter(batch.values())).shape[0] if layout == "rows" else 1)
    bounds = cu if by == "document" else list(range(0, cu[-1] + 1, width))
    return [
        slot for begin, end in itertools.pairwise(bounds) for slot in share(begin, end, size, rank)
    ]


def loaders(corpus: Any, size: int, **settings: Any) -> tuple[bf.DataLoader, list[bf.DataLoader]]:
    """A loader of whole batches, and those of the ranks of a group."""
    settings = {"num_workers": 0, "fields": ALL, **settings}
    whole = bf.DataLoader(corpus, **{k: v for k, v in settings.items() if k != "cp_split"})
    return whole, [
        bf.DataLoader(corpus, cp_size=size, cp_rank=rank, **settings) for rank in range(size)
    ]


def test_two_ranks_share_documents() -> None:
    _, ranks = loaders(
        corpus_of([3, 8]), 2, seq_len=12, align=4, layout="varlen", packing="best_fit"
    )
    first, second = (next(iter(loader)) for loader in ranks)
    assert listed(first["input_ids"] % (1 << 20)) == [[0, 0, 0, 1, 6, 7]]  # pad token: 0
    assert listed(second["input_ids"] % (1 << 20)) == [[1, 2, 2, 3, 4, 5]]
    assert listed(first["position_ids"]) == [[0, 3, 0, 1, 6, 7]]
    assert listed(first["document_ids"]) == [[0, -1, 1, 1, 1, 1]]
    for rank, batch in enumerate((first, second)):
        assert listed(batch.cu_seqlens) == [0, 4, 12]
        assert (batch.max_seqlen, batch.num_tokens, batch.num_items) == (8, 11, 9)
        assert (batch.cp_size, batch.cp_rank) == (2, rank)


def test_two_ranks_share_rows() -> None:
    _, ranks = loaders(corpus_of([3, 4]), 2, seq_len=8, packing="best_fit", batch_size=1)
    first, second = (next(iter(loader)) for loader in ranks)
    assert listed(first["position_ids"]) == [[0, 1, 3, 0]]
    assert listed(second["position_ids"]) == [[2, 0, 1, 2]]
    assert listed(first["document_ids"]) == [[0, 0, 1, -1]]
    assert listed(first.cu_seqlens) == listed(second.cu_seqlens) == [0, 3, 7, 8]


def test_labels_are_made_before_the_batch_is_cut() -> None:
    _, ranks = loaders(corpus_of([8]), 2, seq_len=8)
    first, second = (next(iter(loader)) for loader in ranks)
    # The next token of slot 1 is on the other rank.
    assert listed(first["shift_labels"]) == [[1, 2, 7, -100]]
    assert listed(second["shift_labels"]) == [[3, 4, 5, 6]]
    assert listed(second["labels"]) == [[2, 3, 4, 5]]


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=20),
    size=st.sampled_from([1, 2, 3, 4]),
    more=st.integers(1, 2),
    chunks=st.integers(1, 3),
    batch_size=st.integers(1, 3),
    layout=st.sampled_from(["rows", "varlen"]),
    split=st.sampled_from(["document", "sequence", None]),
    tail=st.sampled_from(["keep", None]),
    packing=st.sampled_from(["streaming", "concat", "best_fit_decreasing", "bucket"]),
    positions=st.sampled_from(["restart", "continue"]),
    fields=st.lists(st.sampled_from(ALL), min_size=1, unique=True),
    carry=st.booleans(),
    masked=st.booleans(),
    data=st.data(),
)
def test_the_shares_of_all_ranks_are_the_whole_batch(
    lengths, size, more, chunks, batch_size, layout, split, tail, packing, positions, fields,
    carry, masked, data,
):  # fmt: skip
    docs: list[Any] = [document(i, n) for i, n in enumerate(lengths)]
    if masked:
        bits = st.lists(st.booleans(), min_size=60, max_size=60)
        docs = [{"input_ids": d, "loss_mask": data.draw(bits)[: len(d)]} for d in docs]
    by = split or ("document" if layout == "varlen" else "sequence")
    aligned = by == "document" or (tail is None and layout == "varlen") or packing == "bucket"
    align = 2 * size * more if aligned else 1
    whole, ranks = loaders(
        docs, size, batch_size=batch_size, seq_len=2 * size * more * chunks, layout=layout,
        cp_split=split, tail=tail, packing=packing, positions=positions, fields=fields,
        align=align, carry_label=carry and "shift_labels" in fields and "labels" not in fields,
        pad_token_id=77, bad_documents="skip",
    )  # fmt: skip
    streams = [list(quiet(loader)) for loader in ranks]
    for b, batch in enumerate(quiet(whole)):
        held = np.zeros(int(batch.cu_seqlens[batch.num_segments]), int)
        for rank in range(size):
            mine = streams[rank][b]
            slots = shares(batch, by, layout, size, rank)
            held[slots] += 1
            for name in fields:
                column = np.asarray(mine[name])
                assert column.shape[0] == batch[name].shape[0]
                np.testing.assert_array_equal(
                    column.ravel(), np.asarray(batch[name]).ravel()[slots], err_msg=name
                )
            assert np.array_equal(mine.cu_seqlens, batch.cu_seqlens)
            assert pieces(mine) == pieces(batch)
            for name in ("max_seqlen", "num_tokens", "num_items", "num_items_step_global", "step"):
                assert getattr(mine, name) == getattr(batch, name)
        assert (held == 1).all()
    assert len({len(stream) for stream in streams}) == 1
    for loader in ranks:
        ours, theirs = loader.stats(), whole.stats()
        for name in ("tokens", "slots", "effective_tokens", "exposure"):
            assert getattr(ours, name) == getattr(theirs, name)


def quiet(loader: bf.DataLoader) -> list[bf.Batch]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(loader)


@pytest.mark.parametrize("layout", ["rows", "varlen"])
def test_ranks_of_a_group_have_equal_shapes_also_in_dummy_rows(layout: str) -> None:
    for rank in range(2):
        loader = bf.DataLoader(
            corpus_of([4]), seq_len=16, align=8, layout=layout, rank=1, world_size=2,
            cp_size=2, cp_rank=rank, fields=ALL,
        )  # fmt: skip
        (batch,) = loader
        assert batch.num_tokens == 0
        total = int(batch.cu_seqlens[-1])
        assert batch["input_ids"].shape == (1, total // 2)
        assert total % 4 == 0


def test_what_the_group_cannot_share_is_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"cp_size": 2}, "cp_size is 2 and cp_rank is missing"),
        ({"cp_size": 2, "cp_rank": 2}, "cp_rank is 2"),
        ({"cp_size": 2, "cp_rank": -1}, "cp_rank is -1"),
        ({"cp_size": 0, "cp_rank": 0}, "cp_size is 0"),
        ({"cp_size": 1, "cp_rank": 1}, "cp_rank is 1"),
        ({"cp_size": 2, "cp_rank": 0, "seq_len": 10}, "seq_len must be a multiple of 2 x cp_size"),
        ({"cp_size": 2, "cp_rank": 0, "layout": "varlen"}, "set align=4"),
        ({"cp_size": 2, "cp_rank": 0, "layout": "varlen", "align": 2}, "align is 2"),
        ({"cp_size": 2, "cp_rank": 0, "cp_split": "document"}, "set align=4"),
        ({"cp_size": 2, "cp_rank": 0, "cp_split": "sequence", "layout": "varlen"}, "set align=4"),
        ({"cp_size": 2, "cp_rank": 0, "packing": "bucket"}, "set align=4"),
        ({"cp_size": 2, "cp_rank": 0, "cp_split": "rows"}, "cp_split is 'rows'"),
    ]
    for wrong, message in refused:
        with pytest.raises(bf.PlanError, match=message):
            bf.DataLoader(corpus_of([4]), **{"seq_len": 16, **wrong})


def test_a_state_goes_on_under_any_group() -> None:
    lengths = [1 + i * 37 % 61 for i in range(40)]

    def make(**cp: Any) -> bf.DataLoader:
        return bf.DataLoader(
            corpus_of(lengths), batch_size=2, seq_len=64, align=8, shuffle=True, fields=ALL, **cp
        )

    iterator = iter(loader := make(cp_size=4, cp_rank=3))
    for _ in range(5):
        next(iterator)
    state = loader.state_dict()
    assert state == make_state_of(make(cp_size=2, cp_rank=0), 5)
    whole = make()
    rest = list(whole)[5:]
    again = make()
    again.load_state_dict(state)
    for got, want in zip(again, rest, strict=True):
        check(got, again)
        assert same(got, want)


def make_state_of(loader: bf.DataLoader, batches: int) -> dict[str, Any]:
    iterator = iter(loader)
    for _ in range(batches):
        next(iterator)
    return loader.state_dict()


def test_torchs_ranks_are_no_data_parallel_coordinates_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    monkeypatch.setattr(
        torch,
        "distributed",
        types.SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            get_rank=lambda: 1,
            get_world_size=lambda: 2,
        ),
    )
    assert "torch" in sys.modules
    how: dict[str, Any] = {"seq_len": 8, "cp_size": 2, "cp_rank": 1}
    with pytest.warns(UserWarning, match=r"cp_size=2.*rank=.*world_size="):
        loader = bf.DataLoader(corpus_of([4]), **how)
    assert loader.config.world_size == 2
    bf.DataLoader(corpus_of([4]), rank=0, world_size=1, **how)  # said: no warning
    bf.DataLoader(corpus_of([4]), seq_len=8)
