"""Bad documents: put aside in their place and counted, or refused; the plan never changes."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.config import FIELDS
from truth import IGNORE, listed

VOCAB = 100


def quiet(loader: bf.DataLoader) -> list[bf.Batch]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(loader)


def test_a_bad_document_leaves_its_place_to_pad_tokens() -> None:
    docs = [np.array([1, 2, 3]), np.array([4, VOCAB]), np.array([5, 6])]
    for layout in ("rows", "varlen"):
        loader = bf.DataLoader(
            docs,
            seq_len=8,
            packing="best_fit",
            vocab_size=VOCAB,
            pad_token_id=9,
            fields=FIELDS,
            layout=layout,
        )
        with pytest.warns(UserWarning, match="document 1 of source .* token 100 at place 1"):
            (batch,) = loader
        end = 8 if layout == "rows" else 7
        assert listed(batch.cu_seqlens) == [0, 3, 5, 7, 8][: 5 if layout == "rows" else 4]
        assert listed(batch["input_ids"]) == [[1, 2, 3, 9, 9, 5, 6, 9][:end]]
        no = IGNORE
        assert listed(batch["labels"]) == [[no, 2, 3, no, no, no, 6, no][:end]]
        assert listed(batch["shift_labels"]) == [[2, 3, no, no, no, 6, no, no][:end]]
        assert listed(batch["position_ids"]) == [[0, 1, 2, 0, 1, 0, 1, 0][:end]]
        assert listed(batch["document_ids"]) == [[0, 0, 0, -1, -1, 2, 2, -1][:end]]
        assert listed(batch["loss_weights"]) == [[0, 1, 1, 0, 0, 0, 1, 0][:end]]
        assert batch.documents.tolist() == [0, -1, 2, -1][: 4 if layout == "rows" else 3]
        assert (batch.num_tokens, batch.num_items, batch.num_items_step) == (5, 3, 4)
        stats = loader.stats()
        assert (stats.bad_documents, stats.bad_tokens, stats.tokens) == (1, 2, 5)
        assert (stats.documents, stats.effective_tokens) == (2, 3)
        assert "1 document bad" in stats.summary()


def test_c47_the_rule_error_names_the_first_bad_token() -> None:
    corpus = bf.open([np.array([1, 2, 3]), np.array([1, 70000, 80000])])
    with pytest.raises(bf.FormatError, match=r"document 1 has token 70000 at place 1"):
        list(bf.DataLoader(corpus, seq_len=4, vocab_size=50257, bad_documents="error"))
    negative = bf.open([np.array([1, 2, -1])])
    for vocab_size in (10, None):
        with pytest.raises(bf.FormatError, match=r"token -1 at place 2"):
            list(bf.DataLoader(negative, seq_len=4, vocab_size=vocab_size, bad_documents="error"))
    assert len(list(bf.DataLoader(corpus, seq_len=4, vocab_size=80001, bad_documents="error"))) == 2
    masked = bf.open([{"input_ids": [1, 2, 3], "loss_mask": [1, 0, 0]}])
    with pytest.raises(bf.FormatError, match="document 0 has a loss mask that leaves no label"):
        list(bf.DataLoader(masked, seq_len=4, bad_documents="error"))
    with pytest.raises(bf.PlanError, match="bad_documents is 'drop'; choose one of"):
        bf.DataLoader(corpus, seq_len=4, bad_documents="drop")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_a_negative_token_needs_no_vocabulary_to_be_bad(dtype: str) -> None:
    lowest = int(np.iinfo(dtype).min)
    docs = [np.array([1, lowest], dtype), np.array([3, 4], dtype)]
    loader = bf.DataLoader(docs, seq_len=4, packing="best_fit")
    (batch,) = quiet(loader)
    assert listed(batch["input_ids"]) == [[0, 0, 3, 4]]
    (bad,) = loader.bad_documents
    assert (bad.document, bad.reason, bad.place, bad.token) == (0, "token", 1, lowest)


def test_a_document_without_a_label_is_bad_and_a_piece_without_one_is_not() -> None:
    docs: list[dict[str, Any]] = [
        {"input_ids": [1, 2, 3, 4, 5, 6], "loss_mask": [0, 0, 0, 0, 1, 1]},
        {"input_ids": [11, 12, 13, 14, 15, 16], "loss_mask": [1, 0, 0, 0, 0, 0]},
        {"input_ids": [21], "loss_mask": [1]},
        {"input_ids": [31], "loss_mask": [0]},
    ]
    loader = bf.DataLoader(docs, seq_len=3, packing="concat", num_workers=0)
    rows = [listed(batch["input_ids"])[0] for batch in quiet(loader)]
    assert rows == [[1, 2, 3], [4, 5, 6], [0, 0, 0], [0, 0, 0], [21, 0, 0]]
    assert [(bad.document, bad.reason) for bad in loader.bad_documents] == [
        (1, "masked"),
        (3, "masked"),
    ]
    stats = loader.stats()
    assert (stats.documents, stats.tokens, stats.bad_documents, stats.bad_tokens) == (2, 7, 2, 7)


def test_a_split_document_counts_once_and_each_of_its_bad_pieces_is_put_aside() -> None:
    tokens = np.arange(20)
    tokens[[6, 7, 17]] = VOCAB
    loader = bf.DataLoader([tokens], seq_len=4, vocab_size=VOCAB)
    rows = [listed(batch["input_ids"])[0] for batch in quiet(loader)]
    assert rows == [[0, 1, 2, 3], [0] * 4, [8, 9, 10, 11], [12, 13, 14, 15], [0] * 4]
    stats = loader.stats()
    assert (stats.bad_documents, stats.bad_tokens, stats.documents) == (1, 8, 1)
    assert [(bad.document, bad.place) for bad in loader.bad_documents] == [(0, 6)]


@pytest.mark.parametrize("mask", [[0] * 12, [1] + [0] * 11])
@pytest.mark.parametrize("place", [1, 6, 10])
def test_a_document_counts_once_that_is_bad_in_two_ways(mask: list[int], place: int) -> None:
    """It has no label, and a bad token in one of its pieces."""
    tokens = np.arange(12)
    tokens[place] = VOCAB
    docs = [{"input_ids": tokens, "loss_mask": mask}, {"input_ids": [1, 2], "loss_mask": [1, 1]}]
    loader = bf.DataLoader(docs, seq_len=4, vocab_size=VOCAB)
    for passes in (1, 2):
        quiet(loader)
        stats = loader.stats()
        assert (stats.bad_documents, stats.bad_tokens) == (passes, 12 * passes)
        assert [bad.document for bad in loader.bad_documents] == [0] * passes


def test_names_are_those_of_the_corpus_and_the_list_is_bounded() -> None:
    web = bf.open([np.arange(3)] * 4)
    code = bf.open([np.array([VOCAB, 1])] * 1200)
    loader = bf.DataLoader(bf.mix({"web": web, "code": code}), seq_len=8, vocab_size=VOCAB)
    quiet(loader)
    found = loader.bad_documents
    assert len(found) == 1000
    assert {bad.source for bad in found} == {"code"}
    assert all(bad.document >= 4 for bad in found)
    assert loader.stats().bad_documents == 1200
    assert loader.stats().all_ranks.documents == 1204  # the plan's


def test_one_warning_at_the_first_bad_document() -> None:
    loader = bf.DataLoader([np.array([-1, 1])] * 50, seq_len=2)
    with pytest.warns(UserWarning, match="a bad document was put aside, document 0") as told:
        batches = [*loader, *loader]
    assert {batch.num_tokens for batch in batches} == {0}
    assert len(told) == 1
    assert loader.stats(lap=True).bad_documents == 100
    quiet(loader)
    assert loader.stats(lap=True).bad_documents == 50
    assert len(loader.bad_documents) == 150


documents = st.lists(
    st.tuples(st.integers(1, 9), st.sets(st.integers(0, 8))), min_size=1, max_size=20
)


@settings(max_examples=60)
@given(
    documents,
    st.integers(1, 8),
    st.sampled_from(["streaming", "concat", "best_fit"]),
    st.sampled_from(["split", "truncate"]),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_bad_tokens_change_their_pieces_and_nothing_else(
    docs: list[tuple[int, set[int]]],
    seq_len: int,
    packing: str,
    overlong: str,
    world_size: int,
    shuffle: bool,
) -> None:
    """Against the same corpus without bad tokens: same places, and all counts add up."""
    clean = [np.arange(n) + 10 * d for d, (n, _) in enumerate(docs)]
    dirty = [tokens.copy() for tokens in clean]
    for tokens, (_, bad) in zip(dirty, docs, strict=True):
        tokens[[place for place in bad if place < len(tokens)]] = 10_000
    totals: Counter[str] = Counter()
    for rank in range(world_size):
        loaders = [
            bf.DataLoader(
                corpus,
                seq_len=seq_len,
                packing=packing,
                overlong=overlong,
                rank=rank,
                world_size=world_size,
                vocab_size=5_000,
                pad_token_id=777,
                shuffle=shuffle,
                num_workers=0,
            )
            for corpus in (clean, dirty)
        ]
        for want, got in zip(*map(quiet, loaders), strict=True):
            np.testing.assert_array_equal(want.cu_seqlens, got.cu_seqlens)
            assert want.num_items_step_global == got.num_items_step_global
            cu = np.asarray(want.cu_seqlens)
            for s, (d, begin) in enumerate(zip(want.documents, want.starts, strict=True)):
                span = slice(cu[s], cu[s + 1])
                stored = dirty[d][begin : begin + cu[s + 1] - cu[s]] if d >= 0 else None
                ids, labels = (np.asarray(got[f]).ravel()[span] for f in ("input_ids", "labels"))
                if stored is not None and stored.max() < 5_000:
                    assert ids.tolist() == stored.tolist()
                    assert labels.tolist() == [IGNORE, *stored[1:]]
                    assert (got.documents[s], got.starts[s]) == (d, begin)
                else:
                    assert set(ids) == {777}
                    assert set(labels) == {IGNORE}
                    assert got.documents[s] == -1
        want_stats, got_stats = (loader.stats() for loader in loaders)
        assert got_stats.all_ranks == want_stats.all_ranks
        assert got_stats.exposure == want_stats.exposure
        assert got_stats.tokens + got_stats.bad_tokens == want_stats.tokens
        assert loaders[0].state_dict()["cursor"] == loaders[1].state_dict()["cursor"]
        totals["bad"] += got_stats.bad_documents
        totals["tokens"] += got_stats.tokens + got_stats.bad_tokens
    cut = seq_len if overlong == "truncate" and packing != "concat" else 9
    assert totals["bad"] == sum(any(p < min(n, cut) for p in bad) for n, bad in docs)
    assert totals["tokens"] == want_stats.all_ranks.tokens
