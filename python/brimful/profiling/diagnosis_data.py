"""Questions about the data: documents that are there twice, and sources beside their weights."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful.corpus import Corpus
from brimful.profiling.diagnosis import Answers
from brimful.telemetry import Stats
from brimful.wording import counted, percent

# Of documents; a few are in every corpus.
_FEW = 0.005
_MOST_TOKENS = 1 << 24  # read for it
_MOST_LENGTHS = 1 << 22  # looked at; of a larger corpus so many first ones:
_FIRST_LENGTHS = 1 << 17
_FEWEST_DOCUMENTS = 100  # of which shares can be told


def native_data(
    corpus: Corpus, stats: Stats, *, documents: int, window: int, mix_changed: bool
) -> Answers:
    """All of the area; reads up to so many documents."""
    answers = Answers("data")
    _duplicates(answers, corpus, documents)
    _exposure(answers, corpus, stats, window, mix_changed)
    return answers


def _duplicates(answers: Answers, corpus: Corpus, most: int) -> None:
    question = "Are documents there twice?"
    damage = cut_short(corpus)
    if damage:
        answers.add(question, False, f"cannot be read: {damage}", "Repair the file and open again.")
        return
    chosen, everything = sample_by_length(lengths_of(corpus), most, _MOST_TOKENS)
    everything = everything and len(corpus) <= _MOST_LENGTHS
    if not len(chosen):
        answers.missing(question, "no document has a token")
        return
    seen = Counter(
        _core.xxh3(np.ascontiguousarray(corpus[i], np.int64).data) for i in chosen.tolist()
    )
    again = len(chosen) - len(seen)
    of = "all" if everything else "a sample of"
    answers.add(
        question,
        again <= _FEW * len(chosen),
        f"{counted(again, 'copy', 'copies')} in {of} {counted(len(chosen), 'document')}",
        f"Copies are learned by heart; the most frequent document is there "
        f"{max(seen.values()):,} times. Deduplicate the corpus.",
    )


def lengths_of(corpus: Corpus) -> npt.NDArray[np.int64]:
    """Of all documents, or of the first ones of a corpus whose lengths would take much memory."""
    if len(corpus) <= _MOST_LENGTHS:
        return corpus.lengths
    return np.array([len(corpus[i]) for i in range(_FIRST_LENGTHS)], np.int64)


def sample_by_length(
    lengths: npt.NDArray[np.int64], most: int, most_tokens: int
) -> tuple[npt.NDArray[np.int64], bool]:
    """Documents to look for copies among, int64, and whether they are all that have tokens.

    Copies have the same length, so that whole lengths are drawn (in a fixed, scattered order), not
    single documents: both of a pair are in the sample, or neither is.
    """
    values, numbers = np.unique(lengths[lengths > 0], return_counts=True)
    scattered = np.argsort(values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    values, numbers = values[scattered], numbers[scattered]
    fits = (np.cumsum(numbers) <= most) & (np.cumsum(values * numbers) <= most_tokens)
    taken = values[: int(np.argmin(fits))] if not fits.all() else values
    if len(taken) or not len(values):
        chosen = np.flatnonzero((lengths > 0) & np.isin(lengths, taken))
    else:  # one length alone is too much: some documents of it
        chosen = np.flatnonzero(lengths == values[0])[: max(1, min(most, most_tokens // values[0]))]
    return chosen, len(chosen) == int(numbers.sum())


def cut_short(corpus: Corpus) -> str:
    """The first file that lacks bytes of its tokens, in words; empty where none does."""
    for path, size, expected in files(corpus):
        if size is None:
            return f"{path} is gone"
        if size < expected:
            return f"{path} has {counted(size, 'byte')}, its tokens take {expected:,}"
    return ""


def files(corpus: Corpus) -> Iterator[tuple[str, int | None, int]]:
    """Path, size now (None: gone) and bytes of tokens of every file of a corpus, each once."""
    seen = set()
    for part in corpus._parts:
        for store in part.stores:
            if store.in_file and store.name not in seen:
                seen.add(store.name)
                yield (
                    store.name,
                    _size(store.name),
                    store.num_tokens * np.dtype(store.dtype).itemsize,
                )


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _exposure(
    answers: Answers, corpus: Corpus, stats: Stats, window: int, mix_changed: bool
) -> None:
    question = "Do sources get their weights?"
    delivered = sum(counts["documents"] for counts in stats.exposure.values())
    rule = corpus.rule
    if len(corpus.sources) == 1:
        answers.add(question, True, "a single source")
    elif rule is None or rule.weights is None:
        answers.missing(question, "the mixture has no weights: every document comes once an epoch")
    elif mix_changed:
        answers.missing(
            question, "the mix was changed during the run, and counts go back to step 0"
        )
    elif delivered < _FEWEST_DOCUMENTS:
        answers.missing(
            question, f"{counted(delivered, 'document')} delivered, too few to tell shares"
        )
    else:
        unit = rule.unit
        counts = {name: stats.exposure[name][unit] for name in corpus.sources}
        total = sum(counts.values())
        begun = sum(held["tokens"] for held in stats.exposure.values())
        # A window is drawn as a whole: what is delivered of it may be of anywhere in it.
        ahead = int(window * begun / delivered)
        shares = [target_shares(rule.schedule, tokens) for tokens in (begun, begun + ahead)]
        off = {name: _beyond(counts[name] / total, [t[name] for t in shares]) for name in counts}
        worst = max(off, key=off.__getitem__)
        answers.add(
            question,
            off[worst] <= 0.01 + 2 / math.sqrt(delivered),
            f"{worst!r} is farthest off: {percent(counts[worst] / total)} of {unit}, "
            f"weight {percent(shares[0][worst])}",
            "Sources that are empty or ran dry, caps on passes and dropped documents move shares.",
        )


def _beyond(share: float, targets: list[float]) -> float:
    """How far a share lies outside of what its target may be."""
    return max(share - max(targets), min(targets) - share)


def target_shares(
    schedule: tuple[tuple[int, dict[str, float]], ...], tokens: int
) -> dict[str, float]:
    """Shares of sources over the first so many tokens of a run."""
    starts = [start for start, _ in schedule]
    stretches = zip(starts, [*starts[1:], math.inf], strict=True)
    held = [max(min(end, max(tokens, 1)) - start, 0) for start, end in stretches]
    shares = dict.fromkeys(schedule[0][1], 0.0)
    for length, (_, weights) in zip(held, schedule, strict=True):
        for name, weight in weights.items():
            shares[name] += weight / sum(weights.values()) * length / sum(held)
    return shares
