"""Laws of the HTML report: whatever was measured, the page keeps to its frame and can be read."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful.profiling.figures import (
    BatchFigures,
    Finding,
    LoaderFacts,
    Profile,
    ProfiledBatch,
    ProfileStats,
)
from brimful.profiling.report import html
from brimful.profiling.report.axis import ticks
from brimful.profiling.report.elements import element, strip
from brimful.times import ThreadTimes
from report_pages import MANY, VERDICT, Page, batch, profile_of

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


def areas(page: Page, first: int) -> dict[str, float]:
    """Share of width times pixels of height by colour, in the drawing of element `first`."""
    found: defaultdict[str, float] = defaultdict(float)
    for tag, attributes in page.elements[first:]:
        if tag == "rect":
            area = float(attributes["width"][:-1]) / 100 * float(attributes["height"])
            found[attributes["class"]] += area
        elif tag in ("svg", "figcaption", "h2") and found:
            return found
    return found


def place_of(page: Page, name: str) -> int:
    return next(i for i, (_, a) in enumerate(page.elements) if a.get("id") == name)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.floats(0.001, 1), st.lists(st.integers(1, 500), min_size=1, max_size=4)),
        min_size=2,
        max_size=40,
    )
)
def test_areas_are_what_was_measured(rows):
    batches = tuple(batch(i, wait=w, lengths=tuple(lengths)) for i, (w, lengths) in enumerate(rows))
    profile = profile_of(batches)
    page = Page(html(profile, VERDICT))
    shown = batches[-36:]
    used = {b.number: b.figures.tokens / b.figures.slots for b in shown}
    whole = sum(b.step + (0 if b.first else b.wait) for b in shown)
    drawn = areas(page, place_of(page, "vessels-title"))
    expected = {
        "work": sum(b.step * used[b.number] for b in shown) / whole,
        "padding": sum(b.step * (1 - used[b.number]) for b in shown) / whole,
        "stall": sum(b.wait for b in shown if not b.first) / whole,
    }
    for colour, share in expected.items():
        assert drawn[colour] / 150 == pytest.approx(share, abs=0.002)

    drawn = areas(page, place_of(page, "lengths-title"))
    assert drawn["work"] == pytest.approx(drawn["good"], rel=0.01), "each is all of its kind"


def test_the_wall_time_is_split_without_rest():
    page = Page(html(MANY, VERDICT))
    stats = MANY.stats
    begin = next(i for i, (_, a) in enumerate(page.elements) if a.get("height") == "44")
    drawn = {colour: area / 44 for colour, area in areas(page, begin + 1).items()}
    spent = stats.step_seconds * stats.utilization
    assert drawn == pytest.approx(
        {
            "work": spent / stats.wall_seconds,
            "padding": (stats.step_seconds - spent) / stats.wall_seconds,
            "stall": stats.stall_seconds / stats.wall_seconds,
        },
        abs=0.001,
    )
