"""A report's page as its elements and texts, and made-up profiles to write one of."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np

from brimful.profiling.figures import (
    BatchFigures,
    Finding,
    LoaderFacts,
    Profile,
    ProfiledBatch,
    ProfileStats,
    Verdict,
)
from brimful.profiling.timeline_rows import TimelineStep

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
FEW = profile_of((batch(0), batch(1)))
MANY = profile_of(tuple(batch(i, wait=0.01 * (i % 7), lengths=(30, 10, 25)) for i in range(500)))


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
