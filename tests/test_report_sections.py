"""Sections of the HTML report: threads, sources, diagnosis, ranks, and the run with its spikes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.profiling.diagnosis import Diagnosis, Line
from brimful.profiling.ranks import RankFigures, RankReport
from brimful.profiling.report import Sources, html, sources_of
from brimful.profiling.timeline import Timeline
from brimful.times import ThreadTimes
from report_pages import FEW, MANY, VERDICT, Page, batch, profile_of, step_of
from truth import mixed


def test_threads_and_sources_are_shown():
    threads = (
        ThreadTimes(0.5, 0.0, 1.0, 2.0),
        ThreadTimes(0.1, 0.2, 0.3, 0.4),
        ThreadTimes(0.0, 0.0, 0.7, 0.0),
    )
    page = Page(
        html(
            replace(MANY, stats=replace(MANY.stats, threads=threads)),
            VERDICT,
            sources=Sources(
                counts={
                    "web": {"documents": 7, "tokens": 600},
                    "code": {"documents": 3, "tokens": 400},
                },
                meant={"web": 7, "code": 3},
            ),
        )
    )
    assert "7 documents, 600 tokens; meant 70.00 %" in page.words
    assert "3 documents, 400 tokens; meant 30.00 %" in page.words
    assert "thread 1" in page.words
    assert "plan 500 ms, fill 1 s, backpressure 2 s" in page.words
    assert "fill 700 ms" in page.words
    assert "thread 2" not in page.words, "the last one is the consumer"


def test_a_source_of_which_nothing_came_is_missed():
    counts = {"web": {"documents": 3, "tokens": 10}}
    sources = Sources(counts=counts, meant={"web": 0.5, "code": 0.5})
    words = Page(html(MANY, VERDICT, sources=sources)).words
    assert (
        "code\nmissing from what was meant\n0.00 %\n0 documents, 0 tokens; meant 50.00 %" in words
    )


def test_many_sources_are_summed_up():
    counts = {f"source {i}": {"documents": 1, "tokens": 10} for i in range(40)}
    words = Page(html(MANY, VERDICT, sources=Sources(counts=counts))).words
    assert "28 more sources" in words
    assert words.count("1 document, 10 tokens") == 12


def test_sources_of_a_loader_are_those_of_its_mixture():
    corpus = mixed({"web": [5] * 60, "code": [5] * 60}, weights={"web": 3, "code": 1})
    loader = bf.DataLoader(corpus, seq_len=10)
    list(loader)
    sources = sources_of(loader)
    assert sources is not None
    assert sources.counts == loader.stats().exposure
    assert sources.meant == {"web": 0.75, "code": 0.25}
    words = Page(html(MANY, VERDICT, sources=sources)).words
    assert "meant 75.00 %" in words
    assert sources_of([1, 2]) is None


def test_shares_of_documents_are_counted_in_documents():
    counts = {"web": {"documents": 3, "tokens": 10}, "code": {"documents": 1, "tokens": 90}}
    sources = Sources(counts=counts, meant={"web": 0.5, "code": 0.5}, unit="documents")
    words = Page(html(MANY, VERDICT, sources=sources)).words
    assert "web\nmore than was meant\n75.00 %" in words
    assert "code\nmissing from what was meant\n25.00 %" in words


def test_a_diagnosis_is_shown_by_area():
    lines = [
        ("data", "Are documents there twice?", "ok", "0 of 9", ""),
        ("data", "Do sources get their weights?", "look here", "web is off", "change it"),
        ("system", "Do ranks drift?", "not measured", "one rank", ""),
    ]
    diagnosis = Diagnosis(
        lines=tuple(
            Line(area=a, question=q, status=s, figure=f, advice=d) for a, q, s, f, d in lines
        )
    )
    page = Page(html(MANY, VERDICT, diagnosis=diagnosis))
    assert [data for tag, data in page.texts if tag == "h3"] == ["data", "system"]
    assert "3 questions" in page.words
    assert "1 answer to look at" in page.words
    assert all(part in page.words for line in lines for part in line)


@pytest.mark.parametrize(
    ("kind", "depth", "wait", "begins"),
    [
        ("brimful", 4, 0.01, 0.05),
        ("torch", 4, 0.01, 0.04),
        ("torch", 1, 0.01, 0.05),
        ("torch", 4, 0.004, 0.05),
    ],
    ids=["its own was ready", "another may have been", "all were", "hardly waited for"],
)
def test_a_batch_that_was_ready_is_drawn_before_it_was_asked_for(kind, depth, wait, begins):
    batches = (batch(0), batch(1, wait=wait))
    profile = replace(profile_of(batches), facts=replace(MANY.facts, kind=kind, depth=depth))
    page = Page(html(profile, VERDICT))
    ready = begins == 0.05
    assert ("load 50 ms, ready ahead" in page.words) == ready
    (heading,) = (i for i, (_, a) in enumerate(page.elements) if a.get("id") == "fall-0-title")
    bars = [a for tag, a in page.elements[heading:] if tag == "rect" and a["class"] == "stall"]
    span = 0.05 + 0.08 + (wait if ready else 0.0)
    assert float(bars[0]["x"][:-1]) == pytest.approx(100 * begins / span, abs=0.01)


def test_ranks_are_shown_side_by_side():
    def figures(rank: int, wait: float) -> RankFigures:
        return RankFigures(
            rank=rank, batches=9, wait=wait, step=0.1, load=0.02, blocked=0.01, starved=None,
            first_batch=0.1, slots=64, tokens=60, attention_work=600,
        )  # fmt: skip

    many = RankReport(ranks=tuple(figures(i, 0.001 + 0.2 * (i == 40)) for i in range(64)))
    words = Page(html(FEW, VERDICT, ranks=many)).words
    assert "rank 40\n" in words
    assert words.count("60 tokens a batch") == 16
    assert "Shown are the 16 that take longest." in words
    report = RankReport(ranks=(figures(0, 0.001), figures(1, 0.05)))
    page = Page(html(MANY, VERDICT, ranks=report))
    assert report.summary()[1:] in page.words
    assert report.advice in page.words
    assert "rank 1\nwait\nstep\n150 ms" in page.words
    assert (
        "\nRanks\n"
        not in Page(html(MANY, VERDICT, ranks=RankReport(ranks=(figures(0, 1.0),)))).words
    )


def test_a_spike_is_marked_and_what_came_with_it_is_named():
    losses = [3 + 0.01 * (i % 5) for i in range(60)]
    losses[40] = 9.0
    rows = [step_of(i, {"loss": x, "lr": 0.1}, 0.5 * (i == 39)) for i, x in enumerate(losses)]
    timeline = Timeline(rows)
    page = Page(html(MANY, VERDICT, timeline=timeline))
    assert "Beside the spike of loss at step 40" in page.words
    assert str(timeline.beside(40).standing_out[0]) in page.words
    assert any("stall seconds 0.5 at step 39" in data for _, data in page.texts)
    assert [line for line in page.all("line") if line["class"] == "spike"]
    curves = [curve["points"].split() for curve in page.all("polyline")]
    assert [len(curve) for curve in curves] == [60, 60]
    highest = min(curves[0], key=lambda point: float(point.split(",")[1]))
    assert float(highest.split(",")[0]) == pytest.approx(1000 * 40 / 59, abs=0.1)


def test_a_value_that_is_no_number_breaks_the_curve():
    losses = [1.0, 2.0, float("nan"), 3.0, float("inf"), float("inf"), 2.0]
    page = Page(
        html(
            MANY,
            VERDICT,
            timeline=Timeline([step_of(i, {"loss": x}) for i, x in enumerate(losses)]),
        )
    )
    assert [len(curve["points"].split()) for curve in page.all("polyline")] == [
        2,
        2,
        2,
    ]  # a dot has two ends
    assert page.words.count("no number at step") == 3


def test_a_long_curve_loses_no_spike():
    losses = [1.0] * 9000
    losses[4321] = 50.0
    page = Page(
        html(
            MANY,
            VERDICT,
            timeline=Timeline([step_of(i, {"loss": x}) for i, x in enumerate(losses)]),
        )
    )
    (curve,) = page.all("polyline")
    points = [tuple(map(float, point.split(","))) for point in curve["points"].split()]
    assert len(points) < 1500
    assert min(points, key=lambda point: point[1])[0] == pytest.approx(1000 * 4321 / 8999, abs=0.1)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.dictionaries(st.text(max_size=3), st.floats(), max_size=3), max_size=30))
def test_whatever_is_logged_is_drawn_inside_of_its_frame(logged):
    page = Page(html(FEW, VERDICT, timeline=Timeline([*map(step_of, range(30), logged)])))
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(ids.values()) == {1}
    for svg in page.all("svg"):
        assert all(part in ids for part in svg.get("aria-labelledby", "").split())
    for curve in page.all("polyline"):
        for point in curve["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 1000
            assert 7.9 <= y <= 110.1


def test_numbers_that_are_not_shown_are_counted():
    names = {f"number {i}": 1.0 for i in range(9)}
    page = Page(html(MANY, VERDICT, timeline=Timeline([step_of(i, names) for i in range(3)])))
    assert "3 more numbers not shown." in page.words
    assert len(page.all("polyline")) == 6


def test_the_mix_of_a_run_is_drawn_from_its_plan():
    corpus = mixed({"web": [5] * 60, "code": [5] * 60}, weights={"web": 3, "code": 1})
    loader = bf.DataLoader(corpus, seq_len=10)
    list(loader)
    timeline = loader.timeline
    page = Page(html(MANY, VERDICT, timeline=timeline))
    held = timeline.exposure(3)
    whole = sum(row["tokens"] for row in held.values())
    for name, row in held.items():
        assert f"step 3: {name} {100 * row['tokens'] / whole:.1f} %" in page.words
    assert "\nThe run\n" in page.words
    assert "\nThe run\n" not in Page(html(MANY, VERDICT, timeline=Timeline([]))).words
