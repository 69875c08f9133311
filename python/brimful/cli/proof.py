"""The proof behind `brimful verify`: what a run promises, put to the test on given data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

import brimful as bf
from brimful.cli.trial import Make, Piece, Run, Split, Turn, deliver, splits_of
from brimful.state import cursor_dict
from brimful.wording import counted

FEWEST_STEPS = 3  # of a run: the last may be half done, and one of one step shows little


@dataclass(frozen=True)
class Check:
    """One claim that was put to the test; `detail` says what was compared, or what differs."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Stretch:
    """A part of the run that is put to the test: from a state on, so many batches a rank."""

    name: str
    start: dict[str, Any] | None
    batches: int


def stretches(make: Make, given: Split, batches: int) -> list[Stretch]:
    """The beginning of the run, and a part around the end of its first epoch."""
    loader = make(given, 0)
    state = loader.state_dict()
    steps = loader._steps
    in_epoch = steps.before(1)
    around = max(1, batches // 4 // given.accumulate)  # steps on either side of the end
    first = max(0, in_epoch - around)
    state["cursor"] = cursor_dict(steps.begin(first)) if in_epoch else state["cursor"]
    state["step"] = first
    half = max(FEWEST_STEPS * given.accumulate, batches // 2)
    return [
        Stretch("beginning", None, half),
        Stretch("end of the epoch", state, max(half, 2 * around * given.accumulate)),
    ]


def prove(make: Make, given: Split, stretch: Stretch) -> list[Check]:
    """All checks of one stretch, against its run without an interruption."""
    whole = deliver(make, [Turn(given, stretch.batches)], start=stretch.start)
    return [
        _threads(make, given, stretch, whole),
        _resume(make, given, stretch, whole),
        _other_splits(make, given, stretch, whole),
        _audit(make, given, whole),
        _accounts(make, given, stretch, whole),
    ]


def _threads(make: Make, given: Split, stretch: Stretch, whole: Run) -> Check:
    """Other threads, other depth: the same batches."""
    settings: tuple[dict[str, Any], ...] = (
        {"num_workers": 0},
        {"num_workers": 1, "depth": 1},
        {"num_workers": 4, "depth": 9},
    )
    for made in settings:
        other = deliver(make, [Turn(given, stretch.batches, made)], start=stretch.start)
        if other.batches != whole.batches or other.state != whole.state:
            return Check("threads", False, f"{_first(other, whole)} with {made}")
    return Check("threads", True, "0, 1 and 4 threads, depth 1 to 9: the same batches")


def _resume(make: Make, given: Split, stretch: Stretch, whole: Run) -> Check:
    """A chain of saves: before the first batch, after one, in the middle, at an epoch's end."""
    end = min(whole.epochs[min(whole.epochs)], stretch.batches)
    stops = sorted({0, 1, stretch.batches // 3, end - 1, end, stretch.batches})
    ended = end < stretch.batches
    turns = [Turn(given, 0)]
    for begin, stop in pairwise(stops):
        turns.append(Turn(given, stop - begin, {"num_workers": len(turns) % 3}))
    for notice in (False, True):
        chain = [
            replace(turn, notice_end=notice and ended and stop == end)
            for turn, stop in zip(turns, stops, strict=True)
        ]
        resumed = deliver(make, chain, start=stretch.start)
        if resumed.batches != whole.batches:
            return Check("resume", False, _first(resumed, whole))
        if resumed.state != whole.state:
            return Check("resume", False, _difference(resumed.state, whole.state))
    at_end = ", at the end of an epoch" if ended else ""
    saves = f"{len(stops)} saves in a chain (the first before any batch{at_end})"
    return Check("resume", True, f"{saves}: the same batches, counts and state")


def _other_splits(make: Make, given: Split, stretch: Stretch, whole: Run) -> Check:
    """The same global batch on other ranks, changed in the middle of a step where there is one."""
    splits = splits_of(given)
    steps = max(1, stretch.batches // given.accumulate // len(splits))
    turns = [
        Turn(split, steps * split.accumulate + split.accumulate // 2)
        for split in (*splits[1:], given)
    ]
    other = deliver(make, turns, start=stretch.start)
    both = sorted(whole.steps.keys() & other.steps.keys())[:-1]  # the last one may be half done
    for step in both:
        if sorted(whole.steps[step]) != sorted(other.steps[step]):
            return Check("world size", False, f"step {step} holds other pieces")
    ranks = sorted({split.world_size for split in splits})
    detail = (
        f"{counted(len(both), 'step')} the same on {', '.join(map(str, ranks))} ranks, in "
        f"{counted(len(splits), 'split')} of the global batch"
    )
    return Check("world size", bool(both), detail)


def _audit(make: Make, given: Split, whole: Run) -> Check:
    """documents(step) against what was delivered; only bad documents may be missing."""
    loader = make(given, 0)
    asked = sorted(whole.steps)[:-1][:8]
    for step in asked:
        told = loader.documents(step)
        columns = (told.documents, told.starts, told.lengths)
        planned = Counter(zip(*(column.tolist() for column in columns), strict=True))
        delivered = Counter(piece[:3] for piece in whole.steps[step])
        missing = sum(length for _, _, length in (planned - delivered).elements())
        if delivered - planned or missing != whole.bad[step]:
            return Check("audit", False, f"step {step} holds other documents than the plan says")
    detail = f"documents(step) is right for {counted(len(asked), 'step')}"
    return Check("audit", bool(asked), detail)


def _accounts(make: Make, given: Split, stretch: Stretch, whole: Run) -> Check:
    """Counts that add up, over all and by source; and where every epoch is every document once, no
    token twice in an epoch, and all of them in a whole one."""
    loader = make(given, 0)
    by_epoch: dict[int, list[Piece]] = {}
    for step, pieces in whole.steps.items():
        by_epoch.setdefault(whole.epoch_of[step], []).extend(pieces)
    begins_whole = stretch.start is None
    whole_epochs = [epoch for epoch in by_epoch if begins_whole and epoch + 1 in by_epoch]
    once = loader.corpus.rule is None
    for epoch, pieces in by_epoch.items() if once else ():
        for (d, start, length, _), (other, begin, _, _) in pairwise(sorted(pieces)):
            if d == other and begin < start + length:
                return Check("accounts", False, f"token {begin} of document {d} came twice")
        if epoch in whole_epochs:
            bad = sum(whole.bad[step] for step in whole.steps if whole.epoch_of[step] == epoch)
            wrong = _incomplete(loader, pieces, bad)
            if wrong is not None:
                return Check("accounts", False, wrong)
    before = {} if stretch.start is None else stretch.start["all_ranks"]
    counts = {name: n - before.get(name, 0) for name, n in whole.state["all_ranks"].items()}
    all_pieces = [piece for pieces in by_epoch.values() for piece in pieces]
    tokens = sum(length for _, _, length, _ in all_pieces)
    begun = sum(start == 0 for _, start, _, _ in all_pieces)
    if counts["tokens"] != tokens + whole.bad_tokens:
        return Check("accounts", False, f"{counts['tokens']:,} tokens counted, {tokens:,} came")
    wrong = _other_exposure(loader, all_pieces, whole)
    if wrong is not None:
        return Check("accounts", False, wrong)
    detail = f"{counted(begun, 'document')} begun, {counted(tokens, 'token')}"
    if once:
        detail += ", none twice in an epoch"
    if len(whole.exposure) > 1:
        detail += f", counted right for {counted(len(whole.exposure), 'source')}"
    if once and whole_epochs:
        epochs = counted(len(whole_epochs), "whole epoch")
        detail += f"; {epochs} with every document, cut by rule or whole"
    if whole.bad_tokens:
        detail += f"; {counted(whole.bad_tokens, 'token')} of bad documents put aside"
    return Check("accounts", True, detail)


def _other_exposure(loader: bf.DataLoader, pieces: list[Piece], whole: Run) -> str | None:
    """The first source that is not counted as it came; of bad tokens the source is not known."""
    ends = np.cumsum([source.documents for source in loader.corpus.info])
    came = np.zeros(len(ends), np.int64)
    documents, lengths = (np.array([piece[i] for piece in pieces], np.int64) for i in (0, 2))
    np.add.at(came, np.searchsorted(ends, documents, side="right"), lengths)
    for name, found in zip(loader.corpus.sources, came.tolist(), strict=True):
        counted_tokens = whole.exposure[name]
        if not found <= counted_tokens <= found + whole.bad_tokens:
            return f"{counted_tokens:,} tokens of source {name!r} counted, {found:,} came"
    return None


def _incomplete(loader: bf.DataLoader, pieces: list[Piece], bad_tokens: int) -> str | None:
    """The first document of a whole epoch that did not come as the rule for its length says, unless
    bad documents make up for all that is missing."""
    config = loader.config
    wanted = loader.corpus.lengths.copy()
    if config.packing != "concat" and config.overlong == "truncate":
        wanted = np.minimum(wanted, config.capacity)
    if config.packing != "concat" and config.overlong == "drop":
        wanted[wanted > config.capacity] = 0
    found = np.zeros_like(wanted)
    for document, _, length, _ in pieces:
        found[document] += length
    if int((wanted - found).sum()) == bad_tokens and (found <= wanted).all():
        return None
    document = int(np.flatnonzero(found != wanted)[0])
    return f"{found[document]} of {wanted[document]} tokens of document {document} came"


def _first(other: Run, whole: Run) -> str:
    """Where two runs of one split part."""
    for rank, (ours, theirs) in enumerate(zip(other.batches, whole.batches, strict=True)):
        for number, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            if a != b:
                return f"batch {number} of rank {rank} is another one"
        if len(ours) != len(theirs):
            return f"rank {rank} got {len(ours)} batches, not {len(theirs)}"
    return _difference(other.state, whole.state)


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    names = [name for name in wanted if found.get(name) != wanted[name]]
    return f"the state differs in {', '.join(names)}"
