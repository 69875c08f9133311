"""The HTML report: it says what was measured, needs nothing from elsewhere, and text stays text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields, replace
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.profiling.diagnosis import Diagnosis, Line
from brimful.profiling.figures import (
    BatchFigures,
    Finding,
    LoaderFacts,
    Profile,
    ProfiledBatch,
    ProfileStats,
    Verdict,
)
from brimful.profiling.ranks import RankFigures, RankReport
from brimful.profiling.report import Sources, html, sources_of, write_html
from brimful.profiling.report.axis import ticks
from brimful.profiling.report.elements import element, strip
from brimful.profiling.report.fullness import STRATEGIES
from brimful.profiling.timeline import Timeline
from brimful.profiling.timeline_rows import TimelineStep
from brimful.starvation import Starvation
from brimful.times import ThreadTimes
from brimful.wording import duration, percent
from truth import mixed

VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """A page as its elements, the text of each, and what is not closed as it was opened."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)
        self.close()
        assert not self.open, "elements that are never closed"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append((self.open[-1], data))

    @property
    def words(self) -> str:
        words = "\n".join(data for _, data in self.texts)
        return words.replace("\N{NO-BREAK SPACE}", " ")

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def batch(number: int, *, wait: float = 0.02, lengths: tuple[int, ...] = (30, 10)) -> ProfiledBatch:
    slots = len(lengths) * max(lengths)
    return ProfiledBatch(
        number=number,
        first=number == 0,
        entered=0.1 * number,
        wait=wait,
        step=0.08,
        load=0.05,
        blocked=0.03,
        collate=0.005,
        queue_depth=1,
        figures=BatchFigures(
            slots=slots, tokens=sum(lengths), effective_tokens=sum(lengths), lengths=lengths
        ),
    )


def profile_of(batches: tuple[ProfiledBatch, ...], **changes: Any) -> Profile:
    lengths = [n for b in batches for n in b.figures.lengths or ()]
    powers = np.bincount(np.log2(lengths).astype(int)) if lengths else np.zeros(0, int)
    stats = ProfileStats(
        batches=len(batches),
        first_batches=1,
        wall_seconds=sum(b.wait + (b.step or 0) for b in batches),
        first_batch_seconds=sum(b.wait for b in batches if b.first),
        stall_seconds=sum(b.wait for b in batches if not b.first),
        step_seconds=sum(b.step or 0 for b in batches),
        slots=sum(b.figures.slots or 0 for b in batches),
        tokens=sum(b.figures.tokens or 0 for b in batches),
        length_counts=tuple(powers.tolist()),
    )
    facts = LoaderFacts(kind="torch", name="torch.DataLoader", workers=2, settings={"seq_len": 64})
    return Profile(facts=facts, stats=replace(stats, **changes), batches=batches)


FINDING = Finding(cause="storage", seconds=1.5, figure="blocked for 1.5 s", advice="read ahead")
VERDICT = Verdict(
    headline="It waits.",
    findings=(FINDING,),
    step_seconds=0.1,
    without_stall=0.08,
    without_padding=0.075,
    without_both=0.05,
)
MANY = profile_of(tuple(batch(i, wait=0.01 * (i % 7), lengths=(30, 10, 25)) for i in range(500)))


def test_it_says_what_was_measured():
    page = Page(html(MANY, VERDICT))
    assert ("h1", "It waits.") in page.texts
    for told in ("blocked for 1.5 s", "read ahead", percent(MANY.stats.utilization), "500 batches"):
        assert told in page.words
    assert percent(MANY.stats.stall_fraction) in page.words
    assert "1.25 times as fast" in page.words
    assert "2.00 times as fast" in page.words


def test_it_needs_nothing_from_elsewhere():
    source = html(MANY, VERDICT)
    page = Page(source)
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "img", "iframe", "object"})
    assert [link["href"] for link in page.all("link")] == ["data:,"]
    assert not re.search(r"https?:|//[a-z]|@import|@font-face|\bsrc=", source)
    assert set(re.findall(r"url\(([^)]*)\)", source)) == {"#hatch-padding", "#hatch-blocked"}
    assert any("default-src 'none'" in meta.get("content", "") for meta in page.all("meta"))


HOSTILE = '<script>alert(\'x\')</script>"><b onload="x">&amp;'


def test_text_stays_text():
    facts = LoaderFacts(kind="iterable", name=HOSTILE, settings={HOSTILE: HOSTILE, "io": HOSTILE})
    finding = replace(FINDING, cause=HOSTILE, figure=HOSTILE, advice=HOSTILE)
    line = Line(area=HOSTILE, question=HOSTILE, status="look here", figure=HOSTILE, advice=HOSTILE)
    source = html(
        replace(MANY, facts=facts),
        replace(VERDICT, headline=HOSTILE, findings=(finding,)),
        sources=Sources(counts={HOSTILE: {"documents": 1, "tokens": 2}}, meant={HOSTILE: 1.0}),
        diagnosis=Diagnosis(lines=(line,)),
        title=HOSTILE,
    )
    page = Page(source)
    assert "<script" not in source
    assert not any("onload" in attributes for _, attributes in page.elements)
    assert page.words.count(HOSTILE) >= 12


def test_charts_are_named_for_those_who_hear_them():
    page = Page(html(MANY, VERDICT))
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(ids.values()) == {1}
    charts = [svg for svg in page.all("svg") if svg.get("role") == "img"]
    assert len(charts) >= 7
    for svg in charts:
        title, description = svg["aria-labelledby"].split()
        assert title in ids
        assert description in ids
    others = [svg for svg in page.all("svg") if svg.get("role") != "img"]
    assert all(svg.get("aria-hidden") == "true" for svg in others)


def test_strategies_are_what_pack_gives():
    words = Page(html(MANY, VERDICT)).words
    lengths = [n for b in MANY.batches for n in b.figures.lengths or ()]
    for strategy in STRATEGIES:
        plan = bf.pack(lengths, 64, strategy=strategy)
        told = words[words.index(f"\n{strategy}\n") :].split("\n")[1:5]
        assert percent(plan.utilization) in told
        assert any(part.startswith(f"{plan.num_bins:,} row") for part in told)


def test_only_the_last_of_many_segments_are_packed():
    batches = tuple(batch(i, lengths=(1 + i // 90,) * 800) for i in range(100))
    words = Page(html(profile_of(batches), VERDICT)).words
    assert "What bf.pack makes of the last 65,536 segments" in words
    assert "80,000 segments" in words, "the histogram is of all"


def test_what_was_not_measured_is_left_out():
    bare = Profile(facts=LoaderFacts(kind="iterable", name="list"), stats=ProfileStats())
    nothing = Verdict(
        headline="No batch was drawn.",
        findings=(),
        step_seconds=None,
        without_stall=None,
        without_padding=None,
        without_both=None,
    )
    page = Page(html(bare, nothing))
    titles = [data for tag, data in page.texts if tag == "h2"]
    assert titles == ["Where the time went", "What to change", "Everything"]
    assert "not measured" in page.words
    assert not any(data.strip() == "None" for _, data in page.texts)


def test_a_simulated_accelerator_is_named():
    facts = replace(MANY.facts, simulated_step=0.08)
    assert "The accelerator is simulated" in html(replace(MANY, facts=facts), VERDICT)
    assert "The accelerator is simulated" not in html(MANY, VERDICT)


def test_every_sum_of_a_profile_is_in_its_table():
    shown = [f for f in fields(ProfileStats) if f.name not in ("threads", "length_counts")]
    starved = Starvation(**{f.name: 0.0 for f in fields(Starvation)})  # type: ignore[arg-type]
    for i, field in enumerate(shown):
        value = {"int": 7000 + i, "float": 700.5 + i}.get(field.type.removesuffix(" | None"))
        stats = ProfileStats(**{field.name: starved if value is None else value})
        table = Page(html(Profile(facts=MANY.facts, stats=stats), VERDICT)).words
        told = {
            None: "starvation: ring",
            "num_bytes": f"{value} B",
            "queue_depth": f"{value:.2f}" if value else "",
        }.get(None if value is None else field.name)
        if told is None and isinstance(value, int):
            told = f"{value} B" if field.name.endswith("_bytes") else f"{value:,}"
        assert (told or duration(value)) in table[table.index("\nEverything\n") :], field.name


def test_stall_and_starvation_stay_apart():
    starved = Starvation(
        batches=9,
        elapsed_seconds=10.0,
        seconds=0.5,
        load_seconds=0.4,
        ring_seconds=0.05,
        copy_seconds=0.04,
        handoff_seconds=0.01,
        fraction=0.05,
        headroom_seconds=0.002,
        pinned_bytes=4096,
    )
    words = Page(html(replace(MANY, stats=replace(MANY.stats, starvation=starved)), VERDICT)).words
    assert "Starvation\n5.00 %" in words
    assert f"Stall\n{percent(MANY.stats.stall_fraction)}" in words
    assert "starvation: copy\n40 ms" in words


def test_threads_and_sources_are_shown():
    threads = (ThreadTimes(0.5, 0.0, 1.0, 2.0), ThreadTimes(0.1, 0.2, 0.3, 0.4))
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


def test_ranks_are_shown_side_by_side():
    def figures(rank: int, wait: float) -> RankFigures:
        return RankFigures(
            rank=rank, batches=9, wait=wait, step=0.1, load=0.02, blocked=0.01, starved=None,
            first_batch=0.1, slots=64, tokens=60, attention_work=600,
        )  # fmt: skip

    report = RankReport(ranks=(figures(0, 0.001), figures(1, 0.05)))
    page = Page(html(MANY, VERDICT, ranks=report))
    assert report.summary()[1:] in page.words
    assert report.advice in page.words
    assert "rank 1\nwait\nstep\n150 ms" in page.words
    assert (
        "\nRanks\n"
        not in Page(html(MANY, VERDICT, ranks=RankReport(ranks=(figures(0, 1.0),)))).words
    )


def step_of(number: int, logged: dict[str, float], stall: float = 0.0) -> TimelineStep:
    return TimelineStep(
        step=number,
        epoch=0,
        batches=1,
        first=number == 0,
        entered=number * 0.1,
        taken=number * 0.1,
        seconds=0.1,
        stall_seconds=stall,
        logged=logged,
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


times = st.just(0.0) | st.floats(1e-9, 1e4)
counts = st.integers(0, 1 << 40)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    batches = []
    for number in range(draw(st.integers(0, 6))):
        slots = draw(st.none() | st.integers(0, 1 << 20))
        tokens = None if slots is None else draw(st.none() | st.integers(0, slots))
        lengths = draw(st.none() | st.lists(st.integers(0, 1 << 16), max_size=5).map(tuple))
        batches.append(
            ProfiledBatch(
                number=number,
                first=draw(st.booleans()),
                entered=draw(times),
                wait=draw(times),
                step=draw(st.none() | times),
                load=draw(st.none() | times),
                blocked=draw(st.none() | times),
                collate=draw(st.none() | times),
                starvation=draw(st.none() | times),
                figures=BatchFigures(slots=slots, tokens=tokens, lengths=lengths),
            )
        )
    slots = draw(st.none() | counts)
    stats = ProfileStats(
        batches=len(batches),
        wall_seconds=draw(times),
        first_batch_seconds=draw(times),
        first_batches=draw(st.integers(0, 3)),
        stall_seconds=draw(times),
        step_seconds=draw(times),
        load_seconds=draw(st.none() | times),
        slots=slots,
        tokens=draw(st.none() | st.integers(0, slots or 0)),
        effective_tokens=draw(st.none() | counts),
        num_bytes=draw(counts),
        threads=draw(
            st.none() | st.lists(st.builds(ThreadTimes, times, times, times, times)).map(tuple)
        ),
        length_counts=draw(st.lists(counts, max_size=20).map(tuple)),
    )
    facts = LoaderFacts(
        kind="torch", name=draw(st.text()), settings=draw(st.dictionaries(st.text(), st.text()))
    )
    return Profile(facts=facts, stats=stats, batches=tuple(batches))


@settings(deadline=None, max_examples=60)
@given(profiles(), st.lists(st.tuples(st.text(), times), max_size=3), st.text())
def test_any_profile_makes_a_page_that_keeps_to_its_frame(profile, found, headline):
    findings = tuple(Finding(cause=c, seconds=s, figure=c, advice=c) for c, s in found)
    verdict = replace(VERDICT, headline=headline, findings=findings)
    source = html(profile, verdict)
    assert source == html(profile, verdict)
    page = Page(source)
    assert not re.search(r"\b(nan|inf)\b", " ".join(str(a) for _, a in page.elements))
    for rect in page.all("rect"):
        if rect.get("width", "").endswith("%"):
            left, width = float(rect["x"][:-1]), float(rect["width"][:-1])
            assert left >= 0
            assert width >= 0
            assert left + width <= 101
            assert float(rect["height"]) >= 0


def test_every_colour_of_a_page_is_in_its_style():
    style = resources.files("brimful.profiling.report").joinpath("style.css").read_text()
    page = Page(html(MANY, VERDICT))
    used = {c for rect in page.all("rect") for c in rect.get("class", "").split()}
    assert used
    assert all(re.search(rf"\.{name}\b", style) for name in used)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read(theme):
    style = resources.files("brimful.profiling.report").joinpath("style.css").read_text()
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[theme]
    colours = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for ink in ("ink", "soft"):
        for ground in ("paper", "card"):
            high, low = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)


@given(st.floats(1e-9, 1e12), st.integers(1, 8))
def test_ticks_reach_over_what_they_measure(most, wanted):
    scale = ticks(most, wanted)
    assert scale[0] == 0
    assert scale[-1] >= most * (1 - 1e-6)
    assert 2 <= len(scale) <= wanted + 1


def test_elements_escape_what_is_no_markup():
    assert element("p", "a < b & c", class_="x") == '<p class="x">a &lt; b &amp; c</p>'
    assert element("p", element("b", '"'), title='"') == '<p title="&quot;"><b>&quot;</b></p>'
    assert strip([(0.0, "work", ""), (0.5, "stall", "")]).count("<rect") == 1


def test_it_is_written_where_it_was_asked_for(tmp_path):
    write_html(tmp_path / "page.html", MANY, VERDICT, title="Naïve ✓")
    assert (tmp_path / "page.html").read_bytes().decode() == html(MANY, VERDICT, title="Naïve ✓")
    with pytest.raises(FileNotFoundError):
        write_html(tmp_path / "absent" / "page.html", MANY, VERDICT)
