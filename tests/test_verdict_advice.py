"""What verdicts advise can be had, gives what is said, and is about the one who makes batches."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful.profiling.figures import Finding, Profile, Verdict
from brimful.profiling.losses import makers_needed, pace
from brimful.profiling.verdict import describe, verdict
from brimful.wording import duration
from pipeline_model import device, profile_of

N = 400


def found(result: Verdict) -> dict[str, float]:
    return {finding.cause: finding.seconds for finding in result.findings}


def top(result: Verdict) -> Finding:
    return result.findings[0]


@pytest.mark.parametrize(("workers", "late"), [(0, 0.0308), (1, 0.0308 - 0.0087)])
def test_work_that_no_number_of_workers_does_in_time_is_fill(workers: int, late: float) -> None:
    slow = profile_of([0.0308] * N, [0.0087] * N, workers=workers, cores=2)
    result = verdict(slow)
    assert top(result).cause == "fill"
    assert top(result).seconds == pytest.approx(N * late, rel=0.05)
    assert "num_workers=2" in top(result).advice
    best = profile_of([0.0308] * N, [0.0087] * N, workers=2, cores=2)
    assert best.stats.wall_seconds / N == pytest.approx(0.0154, rel=0.01)
    assert "makes one in 15.4 ms, which is not in time yet" in top(result).advice


def oversubscribed(period: float) -> Profile:
    """Four workers that stand in line for two cores: each takes longer than it works."""
    made = profile_of([0.0514] * N, [0.0114] * N, workers=4, cores=2)
    stats = dataclasses.replace(
        made.stats,
        stall_seconds=(period - 0.0114) * (N - 1),
        wall_seconds=N * period,
        step_seconds=0.0114 * N,
    )
    return dataclasses.replace(made, stats=stats)


@pytest.mark.parametrize("period", [0.0129, 0.0154, 0.0200])
def test_four_workers_on_two_cores_are_no_faster_than_two(period: float) -> None:
    result = verdict(oversubscribed(period))
    assert top(result).cause == "fill"
    assert top(result).seconds == pytest.approx((period - 0.0114) * (N - 1))
    assert "num_workers" not in top(result).advice
    assert f"by 4 workers on 2 cores: one in {1e3 * period:.3g} ms" in top(result).figure
    assert "fast enough" not in describe(result, oversubscribed(period))


def test_making_that_is_not_fast_enough_is_never_depth() -> None:
    loads = [0.0514 + 0.01 * (i % 20 == 10) for i in range(N)]
    made = profile_of(loads, [0.0114] * N, workers=4, blocked=[0.05] * N)
    stats = dataclasses.replace(made.stats, stall_seconds=0.004 * N)
    lost = found(verdict(dataclasses.replace(made, stats=stats)))
    assert lost["storage"] == pytest.approx(0.004 * N)
    assert "depth" not in lost


@given(
    load=st.floats(1e-4, 2.0),
    share=st.one_of(st.just(0.0), st.floats(0, 1)),
    step=st.one_of(st.just(0.0), st.floats(0, 0.1)),
    workers=st.integers(0, 8),
    cores=st.integers(1, 16),
)
def test_advised_workers_can_be_had_and_give_what_is_said(
    load: float, share: float, step: float, workers: int, cores: int
) -> None:
    workers = min(workers, cores)
    profile = profile_of(
        [load] * 9, [step] * 9, workers=workers, cores=cores, blocked=[share * load] * 9
    )
    means = pace(profile)
    needed = makers_needed(means)
    assert 1 <= needed <= max(64, cores)
    assert share > 0.09 or needed <= cores
    every = max(load / needed, load * (1 - share) / min(needed, cores))
    assert means.every_with(needed) == pytest.approx(every)
    for advice in (finding.advice for finding in verdict(profile).findings):
        for number in re.findall(r"num_workers=(\d+)", advice):
            assert int(number) == needed > workers
            assert f"makes one in {duration(means.every_with(needed))}" in advice
            assert ("which is in time" in advice) == (means.every_with(needed) <= means.step)


def test_two_findings_never_name_two_numbers_of_workers() -> None:
    idle = profile_of([0.05] * N, [1e-5] * N, workers=0, cores=2, blocked=[0.045] * N)
    result = verdict(idle)
    assert set(found(result)) == {"storage", "fill"}
    assert "num_workers=19 (it is 0) makes one in 2.63 ms" in top(result).advice
    assert "num_workers" not in result.findings[1].advice


def test_more_workers_than_cores_overlap_reads() -> None:
    slow = profile_of([0.3] * N, [0.02] * N, workers=2, cores=2, blocked=[0.29] * N)
    assert "num_workers=16" in top(verdict(slow)).advice
    far = profile_of([6.0] * N, [0.02] * N, workers=2, cores=2, blocked=[5.99] * N)
    assert top(verdict(far)).cause == "storage"
    assert "though even 64 make one in 93.8 ms" in top(verdict(far)).advice


def test_collating_that_takes_most_of_it_is_named() -> None:
    for workers, cores, cause in ((0, 2, "fill"), (1, 8, "threads")):
        slow = profile_of(
            [0.030] * N, [0.010] * N, workers=workers, cores=cores, collate_seconds=0.024 * (N - 1)
        )
        result = verdict(slow)
        assert top(result).cause == cause
        assert "80 % of it in the collate function" in top(result).figure
        assert "ectorize the collate function" in top(result).advice
        assert "tokenize" not in top(result).advice


def test_a_device_is_spoken_of_only_where_there_is_one() -> None:
    for seen, expected in (None, False), (device(N, load_seconds=3.0), True):
        slow = profile_of(
            [0.05] * N, [0.01] * N, workers=2, cores=2, kind="brimful", starvation=seen
        )
        assert top(verdict(slow)).cause == "fill"
        assert ("cuda" in top(verdict(slow)).advice) == expected
    settings = {"device": "cuda"}
    there = dataclasses.replace(slow, facts=dataclasses.replace(slow.facts, settings=settings))
    assert "cuda" not in top(verdict(there)).advice
