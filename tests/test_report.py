"""The HTML report: it says what was measured, needs nothing from elsewhere, and text stays text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields, replace

import pytest

import brimful as bf
from brimful.profiling.diagnosis import Diagnosis, Line
from brimful.profiling.figures import (
    BatchFigures,
    LoaderFacts,
    Profile,
    ProfileStats,
    Verdict,
)
from brimful.profiling.report import Sources, html, write_html
from brimful.profiling.report.fullness import STRATEGIES
from brimful.starvation import Starvation
from brimful.wording import duration, percent
from report_pages import FEW, FINDING, MANY, VERDICT, Page, batch, profile_of


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


def test_batches_of_no_tokens_are_drawn_as_time():
    batches = tuple(replace(batch(i), figures=BatchFigures(num_bytes=9)) for i in range(9))
    profile = profile_of(batches, slots=None, tokens=None)
    page = Page(html(profile, replace(VERDICT, without_padding=None, without_both=None)))
    assert "The last 9 batches: 880 ms. Width is time." in page.words
    assert not [rect for rect in page.all("rect") if rect.get("class") == "padding"]


def test_slots_without_known_tokens_are_drawn_plain_and_labels_are_counted():
    figures = BatchFigures(slots=60, effective_tokens=59)
    batches = tuple(replace(batch(i), figures=figures) for i in range(9))
    profile = profile_of(batches, slots=540, tokens=None, effective_tokens=531)
    page = Page(html(profile, replace(VERDICT, without_padding=None, without_both=None)))
    assert "The last 9 batches: 880 ms. Width is time." in page.words
    assert "into tokens" not in page.words
    assert "of the slots" not in page.words
    assert not [rect for rect in page.all("rect") if rect.get("class") == "padding"]
    assert "Effective tokens\n531\nhave a label" in page.words


def test_a_simulated_accelerator_is_named():
    facts = replace(MANY.facts, simulated_step=0.08)
    assert "The accelerator is simulated" in html(replace(MANY, facts=facts), VERDICT)
    assert "The accelerator is simulated" not in html(MANY, VERDICT)


SUMS = [f for f in fields(ProfileStats) if f.type.removesuffix(" | None") in ("int", "float")]


@pytest.mark.parametrize("field", SUMS, ids=lambda field: field.name)
def test_every_sum_of_a_profile_is_in_its_table(field):
    if field.type.startswith("int"):
        value: float = 7003
        told = "7003 B" if field.name.endswith("_bytes") else "7,003"
    else:
        value = 703.5
        told = "703.50" if field.name == "queue_depth" else duration(value)
    words = Page(html(replace(FEW, stats=ProfileStats(**{field.name: value})), VERDICT)).words
    assert told in words[words.index("\nEverything\n") :]


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
    profile = replace(MANY, stats=replace(MANY.stats, starvation=starved))
    words = Page(html(profile, VERDICT)).words
    assert "Starvation\n5.00 %" in words
    assert f"Stall\n{percent(MANY.stats.stall_fraction)}" in words
    assert "waiting for a batch: 500 ms, 5.00 %" in words
    assert "copy" not in words, "from outside nobody can tell what was waited for"
    facts = replace(MANY.facts, kind="brimful", settings={"device": "cuda"})
    native = Page(html(replace(profile, facts=facts), VERDICT)).words
    assert "it was on its way: 40 ms, 0.40 %" in native
    assert "starvation: copy\n40 ms" in native


def test_it_is_written_where_it_was_asked_for(tmp_path):
    write_html(tmp_path / "page.html", MANY, VERDICT, title="Naïve ✓")
    assert (tmp_path / "page.html").read_bytes().decode() == html(MANY, VERDICT, title="Naïve ✓")
    write_html(tmp_path / "page.html", MANY, VERDICT, title="not UTF-8: \udcff")
    assert r"not UTF-8: \udcff" in (tmp_path / "page.html").read_text()
    with pytest.raises(FileNotFoundError):
        write_html(tmp_path / "absent" / "page.html", MANY, VERDICT)
