"""Profiles of ranks side by side: made-up ones, and those of processes that gather them."""

from __future__ import annotations

import json

import pytest

import brimful as bf
from brimful.profiling.ranks import RankFigures, RankReport, gather, rank_figures
from pipeline_model import profile_of
from run_ranks import run_ranks


def figures(rank: int, **changes: float | None) -> RankFigures:
    values: dict[str, float | None] = {
        "wait": 0.0,
        "step": 0.1,
        "load": 0.02,
        "blocked": 0.0,
        "starved": None,
        "first_batch": 1.0,
        "slots": 100.0,
        "tokens": 90.0,
        "attention_work": 500.0,
    }
    return RankFigures(rank=rank, batches=50, **values | changes)  # type: ignore[arg-type]


def test_even_ranks_are_told_to_be_even() -> None:
    report = RankReport(ranks=(figures(0), figures(1, step=0.101), figures(2, wait=0.001)))
    assert not report.drifts
    assert report.slowest is None
    assert report.advice == ""
    assert "3 ranks keep one pace" in report.summary()


def test_the_rank_whose_data_all_wait_for_is_the_slowest() -> None:
    slow = figures(1, wait=0.05, step=0.06, load=0.11, blocked=0.099)
    report = RankReport(ranks=(figures(0, step=0.11), slow, figures(2, step=0.11)))
    assert report.slowest == 1
    assert report.stall_spread == pytest.approx(0.05 / 0.11)
    assert report.step_spread == pytest.approx(0.0)
    text = report.summary()
    assert "rank 1 is slowest: it waits 50 ms for a batch, others 0 us" in text
    assert "110 ms there, 20 ms elsewhere, 90 % of it waiting for storage" in text
    assert report.advice


def test_ranks_that_do_not_wait_for_each_other_differ_in_their_steps() -> None:
    report = RankReport(ranks=(figures(0), figures(1, step=0.15)))
    assert report.slowest == 1
    assert "a batch takes it 150 ms, others 100 ms" in report.summary()


def test_a_small_difference_of_waits_beside_a_large_one_of_steps_is_no_reason() -> None:
    report = RankReport(ranks=(figures(0, wait=0.01), figures(1, wait=0.03, step=0.2)))
    assert report.slowest == 1
    assert "a batch takes it 230 ms, others 110 ms" in report.summary()
    alone = RankReport(ranks=(figures(0), figures(1, wait=0.03, step=0.102)))  # and none waits
    assert "it waits 30 ms for a batch" in alone.summary()


def test_uneven_work_is_named_where_times_are_even() -> None:
    report = RankReport(ranks=(figures(0, attention_work=800.0), figures(1)))
    assert report.slowest == 0
    assert report.work_spread == pytest.approx(300 / 650)
    assert "balance" in report.advice
    unknown = RankReport(ranks=(figures(0, attention_work=None), figures(1)))
    assert unknown.work_spread is None
    assert not unknown.drifts


def test_a_report_is_a_table_and_json() -> None:
    report = RankReport(ranks=(figures(0), figures(1, wait=0.05, load=None)))
    lines = str(report).splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:3] == ["rank", "batches", "wait"]
    assert lines[2].split()[:4] == ["1", "50", "50", "ms"]
    assert json.loads(json.dumps(report.as_dict()))["slowest"] == 1


def test_figures_are_means_of_the_profile() -> None:
    profile = profile_of([0.02] * 100, [0.01] * 100, workers=0, slots=10, tokens=7)
    mine = rank_figures(profile, 3)
    assert (mine.rank, mine.batches) == (3, 100)
    assert (mine.wait, mine.step) == pytest.approx((0.02, 0.01))
    assert (mine.slots, mine.tokens, mine.attention_work) == (10, 7, None)
    assert gather(profile) == RankReport(ranks=(rank_figures(profile, 0),))


def test_nothing_drawn_is_even() -> None:
    report = bf.profile([]).run().gather()
    assert not report.drifts
    assert str(report)


@pytest.mark.parametrize(
    "world_size",
    [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)],
)
def test_ranks_gather_and_find_the_one_with_slow_storage(world_size: int) -> None:
    run_ranks("rank_profiles", world_size)
