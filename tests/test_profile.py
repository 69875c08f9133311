"""`bf.profile`: what was waited for, what was done with batches and what they held."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import brimful as bf

# A sleep takes longer than it was asked to, never shorter; a busy machine adds to it.
TOLERANCE = 0.005


def batches(count: int, seconds: float, first: float = 0.0) -> Iterator[dict[str, Any]]:
    """Made in `next()`, each in the same time; the first takes longer."""
    time.sleep(first)
    for _ in range(count):
        time.sleep(seconds)
        yield {"input_ids": np.ones((2, 8), np.int64)}


def test_waits_and_steps_of_a_generator_are_what_they_took() -> None:
    with bf.profile(batches(10, 0.01, first=0.1)) as p:
        slept = 0.0
        for _ in p:
            before = time.perf_counter()
            time.sleep(0.004)
            slept += time.perf_counter() - before
    stats = p.stats()
    assert (stats.batches, stats.first_batches) == (10, 1)
    assert stats.first_batch_seconds >= 0.11
    assert stats.stall_seconds >= 9 * 0.01
    assert slept <= stats.step_seconds
    assert stats.wall_seconds == pytest.approx(
        stats.first_batch_seconds + stats.stall_seconds + stats.end_seconds + stats.step_seconds,
        abs=TOLERANCE,
    )


def test_a_snapshot_has_a_row_for_each_batch_and_the_last_step_is_open() -> None:
    with bf.profile(batches(3, 0.0)) as p:
        iterator = iter(p)
        next(iterator)
        next(iterator)
        first, second = p.profile().batches
        assert (first.number, first.first, second.number, second.first) == (0, True, 1, False)
        assert first.step is not None
        assert second.step is None
        assert first.entered < second.entered


def test_run_draws_over_passes_and_sleeps_for_steps() -> None:
    p = bf.profile([0, 1, 2], steps=7, step_seconds=0.002).run()
    stats = p.stats()
    assert (stats.batches, stats.first_batches) == (7, 3)
    assert stats.step_seconds >= 7 * 0.002
    assert p.facts.simulated_step == 0.002
    assert all(batch.step is not None for batch in p.profile().batches)


def test_run_ends_where_the_loader_has_no_more() -> None:
    assert bf.profile(batches(3, 0.0), steps=5).run().stats().batches == 3
    assert bf.profile([], steps=5).run().stats().batches == 0


def test_a_profile_is_iterated_in_its_block_alone() -> None:
    p = bf.profile([1])
    with pytest.raises(RuntimeError, match="inside of its block"):
        iter(p)


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"steps": 2.5}, {"step_seconds": -1.0}, {"step_seconds": float("nan")}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(bf.PlanError):
        bf.profile([1], **wrong)


def test_a_native_loader_tells_of_its_threads() -> None:
    loader = bf.DataLoader([np.arange(5)] * 40, seq_len=10, batch_size=2, num_workers=2)
    with bf.profile(loader) as p:
        for _ in range(2):
            for _ in p:
                pass
    profile = p.profile()
    assert profile.facts.kind == "brimful"
    assert (profile.facts.workers, len(p)) == (2, 10)
    assert [batch.first for batch in profile.batches] == ([True] + [False] * 9) * 2
    records = loader.records()
    assert [batch.load for batch in profile.batches] == [
        record.plan_seconds + record.read_seconds + record.fill_seconds for record in records
    ]
    assert profile.stats.loaded_batches == 18
    assert profile.stats.tokens == loader.stats().tokens == 400
    assert profile.stats.threads is not None
    assert sum(profile.stats.length_counts) == profile.stats.documents == 80
