"""Exposure of steps, spikes, and what stood out beside a step."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful.profiling.beside import Series, changes, score_of
from brimful.profiling.timeline import Timeline
from brimful.profiling.timeline_rows import TimelineStep
from brimful.records import BatchStarvation
from truth import corpus_of, mixed, pieces


def two_sources(**how: Any) -> bf.DataLoader:
    rng = np.random.default_rng(3)
    web, code = ([int(n) for n in rng.integers(3, 60, 400)] for _ in range(2))
    corpus = mixed({"web": web, "code": code}, **how.pop("mix", {}))
    return bf.DataLoader(corpus, **{"seq_len": 64, "batch_size": 4, "shuffle": True} | how)


@pytest.mark.parametrize("world_size", [1, 2])
def test_exposure_of_steps_adds_up_to_that_of_the_run(world_size: int):
    ranks = [two_sources(rank=rank, world_size=world_size) for rank in range(world_size)]
    batches = [list(loader) for loader in ranks]
    total: dict[str, dict[str, int]] = {
        name: {"documents": 0, "tokens": 0} for name in ("web", "code")
    }
    timeline = ranks[0].timeline
    for row in timeline:
        of_step = timeline.exposure(row.step)
        for source, counts in of_step.items():
            for name, count in counts.items():
                total[source][name] += count
        held = [p for rank in batches for b in rank if b.step == row.step for p in pieces(b)]
        assert sum(counts["tokens"] for counts in of_step.values()) == sum(p[2] for p in held)
        documents = timeline.documents(row.step)
        assert sorted(documents.documents.tolist()) == sorted(p[0] for p in held)
    stats = ranks[0].stats()
    for source, counts in total.items():
        assert counts.items() <= stats.exposure[source].items()


def test_what_changed_beside_a_step_comes_first():
    loader = two_sources(mix={"weights": [(0, {"web": 0.5, "code": 0.5})]})
    for batch in loader:
        spike = batch.step == 40
        loader.log(
            loss=9.0 if spike else 2 + 0.01 * (batch.step % 3),
            lr=1e-3 if batch.step < 39 else 2e-3,
            steady=1.0,
        )
    timeline = loader.timeline
    assert timeline.spikes() == [40]
    found = timeline.beside(40)
    assert found.steps == (37, 38, 39, 40)
    assert found.usual == 37
    by_name = {change.name: change for change in found.changes}
    assert {change.name for change in found.changes[:2]} == {"loss", "lr"}
    assert (by_name["loss"].step, by_name["loss"].value) == (40, 9.0)
    assert by_name["loss"].usual == pytest.approx(2.01)
    assert (by_name["lr"].step, by_name["lr"].score) == (39, pytest.approx(1000))
    assert by_name["steady"].score == 0
    assert {"stall seconds", "utilization", "share of web", "longest piece"} <= by_name.keys()
    assert "starvation seconds" not in by_name, "without a device nothing was measured"
    text = str(found)
    assert text.startswith(f"step 40: of {len(found.changes)} figures {len(found.standing_out)} ")
    assert "lr 0.002 at step 39, usually 0.001 (score +1000.0)" in text
    assert "steady" not in text


def test_a_shift_of_the_mix_is_seen():
    tokens = 40 * 4 * 64
    mix = {"weights": [(0, {"web": 0.9, "code": 0.1}), (tokens, {"web": 0.1, "code": 0.9})]}
    loader = two_sources(mix=mix, window=64, packing="streaming")
    list(loader)
    timeline = loader.timeline
    shares = {
        row.step: timeline.exposure(row.step).get("code", {"tokens": 0})["tokens"] / row.tokens
        for row in timeline
    }
    shifted = next(step for step, share in shares.items() if step >= 12 and share > 0.6)
    found = timeline.beside(shifted)
    assert found.changes[0].name in ("share of web", "share of code")
    assert found.standing_out


def test_a_step_without_a_past_says_so():
    loader = two_sources()
    list(itertools.islice(loader, 12))
    with pytest.raises(bf.PlanError, match=r"step 10 has 7 steps before it .* takes 8"):
        loader.timeline.beside(10)
    assert loader.timeline.beside(11).usual == 8
    with pytest.raises(bf.PlanError, match="step 12 is not in the timeline"):
        loader.timeline.beside(12)


def test_a_spike_is_named_once_and_a_loss_that_is_no_number_is_one():
    loader = bf.DataLoader(corpus_of([8] * 60), seq_len=8)
    losses = [2.0 + 0.001 * (n % 5) for n in range(60)]
    losses[3] = 50.0  # too early to say
    losses[20:22] = [7.0, 8.0]
    losses[40] = math.nan
    losses[50] = 0.1  # down is no spike
    for batch, loss in zip(loader, losses, strict=True):
        if batch.step != 30:
            loader.log(loss=loss)
    assert loader.timeline.spikes("loss") == [20, 40]
    assert loader.timeline.spikes("absent") == []


finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, min_size=8, max_size=40), finite, st.floats(0.5, 100), finite)
def test_scores_do_not_depend_on_unit_or_origin(
    before: list[float], value: float, unit: float, origin: float
):
    spread = float(np.median(np.abs(np.array(before) - np.median(before))))
    found = score_of(value, before, 0.0)
    assert found is not None
    usual, score = found
    assert usual == pytest.approx(float(np.median(before)))
    if spread > 1e-3:
        moved = score_of(unit * value + origin, [unit * x + origin for x in before], 0.0)
        assert moved is not None
        assert moved[1] == pytest.approx(score, rel=1e-3, abs=1e-3)
    floored = score_of(value, before, 10.0)
    assert floored is not None
    assert abs(floored[1]) <= abs(score)
    assert math.copysign(1, floored[1]) == math.copysign(1, score) or score == 0


def test_scores_of_figures_that_never_changed_or_were_not_measured():
    assert score_of(1.0, [1.0] * 8, 0.0) == (1.0, 0.0)
    assert score_of(2.0, [1.0] * 8, 0.0) == (1.0, math.inf)
    assert score_of(-math.inf, [1.0] * 8, 0.0) == (1.0, -math.inf)
    assert score_of(1.0, [None, math.nan, *[1.0] * 7], 0.0) is None
    assert changes([Series("x", [1.0] * 8 + [None], 0.1)], [8]) == ()
    assert score_of(1.1, [1.0] * 8, 0.1, relative=True) == (1.0, pytest.approx(1.0))


def test_torchs_path_scores_what_it_has():
    loader = bf.DataLoader(list(range(40)), batch_size=1)
    for step, _ in enumerate(loader):
        loader.log(loss=5.0 if step == 30 else 1.0)
    (spike,) = loader.timeline.spikes()
    found = loader.timeline.beside(spike)
    assert found.changes[0].name == "loss"
    assert {change.name for change in found.changes} == {"loss", "stall seconds"}


def step(number: int, **figures: Any) -> TimelineStep:
    """A step of a tenth of a second."""
    usual = {"stall_seconds": 0.001, "load_seconds": 0.02, "slots": 100, "tokens": 90}
    return TimelineStep(
        step=number,
        epoch=0,
        batches=1,
        first=number == 0,
        entered=0.1 * number,
        taken=0.1 * number + 0.01,
        seconds=0.1,
        **{**usual, "effective_tokens": 80, "attention_work": 500} | figures,
    )


def starved(seconds: float) -> BatchStarvation:
    return BatchStarvation(seconds, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "figures", "value"),
    [
        ("stall seconds", {"stall_seconds": 0.5}, 0.5),
        ("starvation seconds", {"starvation": starved(0.3)}, 0.3),
        ("seconds of making", {"load_seconds": 2.0}, 2.0),
        ("utilization", {"tokens": 20, "effective_tokens": 18}, 0.2),
        ("share of tokens with a label", {"effective_tokens": 9}, 0.1),
        ("attention work", {"attention_work": 9000}, 9000),
        ("lr", {"logged": {"lr": 0.5}}, 0.5),
    ],
)
@pytest.mark.parametrize("before", [0, 3])
def test_whatever_it_is_that_changed_comes_first(
    name: str, figures: dict[str, Any], value: float, before: int
):
    rows = [step(n, starvation=starved(0.002), logged={"lr": 0.1}) for n in range(40)]
    changed = {"starvation": starved(0.002), "logged": {"lr": 0.1}, **figures}
    rows[30 - before] = step(30 - before, **changed)
    found = Timeline(rows).beside(30)
    assert [change.name for change in found.standing_out] == [name]
    assert (found.changes[0].step, found.changes[0].value) == (30 - before, value)
    assert Timeline(rows).beside(26).standing_out == ()
    assert "nothing stands out" in str(Timeline(rows).beside(26))
