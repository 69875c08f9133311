"""The first questions of a diagnosis: how many slots hold a token, and how many tokens a label."""

from __future__ import annotations

from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.profiling.diagnosis import Answers
from brimful.profiling.diagnosis_data import cut_short, lengths_of
from brimful.profiling.figures import Profile
from brimful.telemetry import Stats
from brimful.wording import count, counted, percent

_FILLED = 0.95
_LABELLED = 0.5
_SPLIT = 0.1  # of the documents, beside those that are longer than a row
_FILLING = "Do slots hold tokens?"
_LABELS = "Do tokens carry a label?"


def padding(answers: Answers, slots: int | None, tokens: int | None, advice: str) -> None:
    """Whether slots are filled."""
    question = _FILLING
    if slots is None or tokens is None:
        answers.missing(
            question,
            "no batch told which of its slots are tokens",
            "A mask or boundaries beside input_ids, in host memory, tell.",
        )
    elif not slots:
        answers.missing(question, "no batch was delivered yet", "Draw some and ask again.")
    else:
        figure = f"{percent(tokens / slots)} of {counted(slots, 'slot')}"
        answers.add(question, tokens >= _FILLED * slots, figure, advice)


def labels(answers: Answers, tokens: int | None, effective: int | None) -> None:
    """Whether tokens carry labels."""
    question = _LABELS
    if effective is None:
        answers.missing(question, "no labels were seen in batches")
    elif tokens is None:
        found = counted(effective, "token")
        answers.missing(question, f"{found} with a label; of how many, no batch told")
    elif not tokens:
        answers.missing(question, "no batch was delivered yet")
    else:
        answers.add(
            question,
            effective >= _LABELLED * tokens,
            f"{percent(effective / tokens)} of {counted(tokens, 'token')}",
            "Most of what is computed has no loss: see that masks are meant so, or documents so "
            "short, and compare runs by effective tokens.",
        )


def native_tokens(stats: Stats, config: LoaderConfig, corpus: Corpus) -> Answers:
    """All of the area for brimful's own loader."""
    answers, packing = Answers("effective tokens"), config.packing
    if packing in ("pad", "bucket"):
        advice = f'packing="best_fit_decreasing" puts several documents in a row ({packing!r} now).'
    else:
        advice = "A larger window= packs better; so do seq_len= and documents that fit each other."
    padding(answers, stats.slots, stats.tokens, advice)
    labels(answers, stats.tokens, stats.effective_tokens)
    _losses(answers, stats)
    _pieces(answers, stats, config, corpus)
    return answers


def _losses(answers: Answers, stats: Stats) -> None:
    question = "Are tokens lost?"
    if not stats.batches and not stats.dropped_tokens:
        answers.missing(question, "no batch was delivered yet")
        return
    parts = [
        f"{counted(number, 'document')} {what}"
        for number, what in (
            (stats.dropped_documents, "dropped"),
            (stats.truncated_documents, "truncated"),
            (stats.bad_documents, "bad"),
        )
        if number
    ]
    lost = stats.dropped_tokens + stats.bad_tokens
    figure = f"{', '.join(parts)}: {counted(lost, 'token')}" if parts else "none"
    answers.add(
        question,
        not parts,
        figure,
        'overlong="split" keeps long documents; bad_documents lists what was put aside, and why.',
    )


def _pieces(answers: Answers, stats: Stats, config: LoaderConfig, corpus: Corpus) -> None:
    """A document that is longer than a row has to be split; only "concat" splits others."""
    question = "Do documents stay whole?"
    if not stats.documents:
        answers.missing(question, "no document was delivered yet")
        return
    split = stats.split_documents
    figure = f"{count(split)} of {counted(stats.documents, 'document')} split"
    if config.packing != "concat":
        answers.add(question, True, f"{figure}, each longer than seq_len" if split else figure)
        return
    if cut_short(corpus):
        answers.missing(question, f"{figure}; lengths cannot be read")
        return
    lengths = lengths_of(corpus)
    longer = round(stats.documents * float((lengths > (config.seq_len or 0)).mean()))
    answers.add(
        question,
        split - longer <= _SPLIT * stats.documents,
        f"{figure}, where about {count(longer)} are longer than seq_len",
        'packing="streaming" splits these only.',
    )


def profiled_tokens(profile: Profile | None, advice: str) -> Answers:
    """What a profile tells of the area, of any loader."""
    answers = Answers("effective tokens")
    if profile is None:
        for question in (_FILLING, _LABELS):
            answers.missing(
                question, "no profile was taken", "brimful.profile(loader) measures it."
            )
        return answers
    stats = profile.stats
    padding(answers, stats.slots, stats.tokens, advice)
    labels(answers, stats.tokens, stats.effective_tokens)
    return answers
