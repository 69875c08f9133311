"""max_segments: cu_seqlens has as many entries in every batch, for graphs of fixed shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, check, corpus_of, listed, token_counts


def test_c19_cu_seqlens_is_padded_with_the_total() -> None:
    how = {"seq_len": 12, "packing": "best_fit", "num_workers": 0}
    (batch,) = bf.DataLoader(corpus_of([3, 2, 4]), max_segments=6, layout="varlen", **how)
    assert listed(batch.cu_seqlens) == [0, 3, 5, 9, 9, 9, 9]
    assert (batch.num_segments, batch.max_seqlen) == (3, 4)
    assert batch["input_ids"].shape == (1, 9)  # there are no rows 9..11 to be read
    (batch,) = bf.DataLoader(
        corpus_of([3, 2, 4]), max_segments=6, layout="varlen", tail="keep", **how
    )
    assert listed(batch.cu_seqlens) == [0, 3, 5, 9, 12, 12, 12, 12]  # 6 documents and a tail
    assert batch.num_segments == 4
    # Room for two: the packer opens a second bin, and nothing is cut off.
    first, second = bf.DataLoader(corpus_of([3, 2, 4]), max_segments=2, layout="varlen", **how)
    assert listed(first.cu_seqlens) == [0, 3, 5]
    assert listed(second.cu_seqlens) == [0, 4, 4]


def test_c20_the_count_of_segments_travels_with_the_batch() -> None:
    for max_segments, entries in ((None, 3), (2, 3), (4, 5)):
        (batch,) = bf.DataLoader(
            corpus_of([3, 2]), seq_len=8, max_segments=max_segments, layout="varlen",
            packing="best_fit",
        )  # fmt: skip
        assert len(batch.cu_seqlens) == entries
        assert batch.num_segments == len(batch.documents) == len(batch.lengths) == 2
        assert listed(batch.cu_seqlens)[: batch.num_segments + 1] == [0, 3, 5]
        assert listed(batch.to("cpu").cu_seqlens) == listed(batch.cu_seqlens)
        assert batch.to("cpu").num_segments == 2


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=40),
    max_segments=st.one_of(st.integers(1, 6), st.just(10**12)),
    seq_len=st.integers(1, 16),
    batch_size=st.integers(1, 4),
    world_size=st.integers(1, 3),
    layout=st.sampled_from(["rows", "varlen"]),
    keep=st.booleans(),
    packing=st.sampled_from(["streaming", "best_fit", "best_fit_decreasing", "pad", "bucket"]),
    align=st.sampled_from([1, 2]),
)
def test_the_shape_never_changes(
    lengths, max_segments, seq_len, batch_size, world_size, layout, keep, packing, align
):
    shapes = set()
    found = []
    for rank in range(world_size):
        loader = bf.DataLoader(
            corpus_of(lengths), batch_size=batch_size, seq_len=seq_len * align, layout=layout,
            tail="keep" if keep or layout == "rows" else "drop", max_segments=max_segments,
            packing=packing, align=align, num_workers=0, world_size=world_size, rank=rank,
        )  # fmt: skip
        for batch in loader:
            check(batch, loader)
            shapes.add(batch.cu_seqlens.shape)
            assert (np.diff(batch.cu_seqlens) >= 0).all()
        found += all_pieces(loader)
    assert len(shapes) <= 1
    assert set(token_counts(found).values()) <= {1}


def test_exact_sizes_without_it() -> None:
    for batch in bf.DataLoader(corpus_of([3, 2, 4, 1]), seq_len=6, layout="varlen"):
        assert len(batch.cu_seqlens) == batch.num_segments + 1
        assert (np.diff(batch.cu_seqlens) > 0).all()


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(bf.PlanError, match="max_segments is 0"):
        bf.DataLoader(corpus_of([3]), seq_len=4, max_segments=0)
