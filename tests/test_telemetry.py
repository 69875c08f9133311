"""Counts and waits: three counts with three names, and what was lost is visible."""

import numpy as np
import pytest

import brimful as bf
from truth import corpus_of, document


def test_c91_slots_tokens_and_effective_tokens_are_three_counts():
    docs = [
        {"input_ids": document(i, n), "loss_mask": [0] * prompt + [1] * (n - prompt)}
        for i, (n, prompt) in enumerate([(5, 2), (3, 1)])
    ]
    loader = bf.DataLoader(bf.open(docs), seq_len=10)
    list(loader)
    stats = loader.stats()
    assert (stats.slots, stats.tokens, stats.effective_tokens) == (10, 8, 5)
    assert stats.utilization == 0.8
    resumed = bf.DataLoader(bf.open(docs), seq_len=10)
    resumed.load_state_dict(loader.state_dict())
    list(resumed)
    totals = resumed.stats().all_ranks
    assert (totals.slots, totals.tokens, totals.effective_tokens) == (20, 16, 10)
    assert resumed.stats().slots == 10, "this rank's count speaks of this process"


def test_c94_losses_are_visible():
    loader = bf.DataLoader(corpus_of([12, 3, 9]), seq_len=8, overlong="drop")
    with pytest.warns(UserWarning, match="21 tokens were dropped"):
        batches = list(loader)
    assert [batch.num_tokens for batch in batches] == [3]
    stats = loader.stats()
    assert (stats.documents, stats.tokens) == (1, 3)
    assert (stats.dropped_documents, stats.dropped_tokens) == (2, 21)
    assert list(stats.dropped.values()) == [{"documents": 2, "tokens": 21}]
    assert "2 documents dropped, 21 tokens dropped" in stats.summary()


def test_c95_a_cut_is_at_seq_len_and_nowhere_else():
    loader = bf.DataLoader(corpus_of([3000]), seq_len=2048, overlong="truncate")
    with pytest.warns(UserWarning, match="952 tokens were dropped"):
        (batch,) = loader
    assert batch.num_tokens == 2048
    assert (loader.stats().truncated_documents, loader.stats().dropped_tokens) == (1, 952)
    settings = loader.config.as_dict()
    assert (settings["seq_len"], settings["overlong"]) == (2048, "truncate")
    assert loader.state_dict()["fingerprint"]["overlong"] == "truncate"


def test_a_lap_counts_from_the_last_one():
    loader = bf.DataLoader(corpus_of([8] * 10), seq_len=8)
    iterator = iter(loader)
    next(iterator)
    assert loader.stats(lap=True).batches == 1
    next(iterator), next(iterator)
    lap = loader.stats(lap=True)
    assert (lap.batches, lap.tokens, lap.utilization) == (2, 16, 1.0)
    assert loader.stats(lap=True).utilization is None
    assert loader.stats().batches == 3


def test_times_are_counted_and_kept_over_epochs():
    loader = bf.DataLoader(corpus_of([50] * 400), seq_len=64, num_workers=1, depth=1)
    list(loader)
    first = loader.stats()
    assert first.first_batch_seconds > 0
    assert first.fill_seconds > 0
    assert first.plan_seconds > 0
    assert first.starvation_seconds is None
    list(loader)
    second = loader.stats()
    assert second.first_batch_seconds > first.first_batch_seconds
    assert second.fill_seconds > first.fill_seconds
    as_dict = second.as_dict()
    assert as_dict["all_ranks"]["tokens"] == second.tokens == 2 * 50 * 400
    assert isinstance(as_dict["stall_seconds"], float)


def test_split_documents_are_counted_once():
    loader = bf.DataLoader(corpus_of([30, 4, 17]), seq_len=8)
    list(loader)
    stats = loader.stats()
    assert (stats.split_documents, stats.documents, stats.tokens) == (2, 3, 51)
    assert stats.effective_tokens == 51 - (4 + 1 + 3)
    assert np.isclose(stats.utilization, 51 / stats.slots)
