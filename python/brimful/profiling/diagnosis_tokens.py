"""The first questions of a diagnosis: how many slots hold a token, and how many tokens a label."""

from __future__ import annotations

from brimful.profiling.diagnosis import Answers
from brimful.profiling.figures import Profile, ProfileStats
from brimful.telemetry import Stats
from brimful.wording import count, counted, percent

_FILLED = 0.95
_LABELLED = 0.5
_SPLIT = 0.1  # of the documents; what is longer than a row must be


def padding(answers: Answers, slots: int | None, tokens: int | None, advice: str) -> None:
    """Whether slots are filled."""
    question = "Do slots hold tokens?"
    if slots is None or tokens is None:
        answers.missing(question, "batches were not looked into", advice)
    elif not slots:
        answers.missing(question, "no batch was delivered yet", "Draw some and ask again.")
    else:
        figure = f"{percent(tokens / slots)} of {counted(slots, 'slot')}"
        answers.add(question, tokens >= _FILLED * slots, figure, advice)


def labels(answers: Answers, tokens: int | None, effective: int | None) -> None:
    """Whether tokens carry labels."""
    question = "Do tokens carry a label?"
    if tokens is None or effective is None:
        answers.missing(question, "no labels were seen in batches")
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


def native_tokens(stats: Stats, packing: str) -> Answers:
    """All of the area for brimful's own loader."""
    answers = Answers("effective tokens")
    if packing in ("pad", "bucket"):
        advice = f'packing="best_fit_decreasing" puts several documents in a row ({packing!r} now).'
    else:
        advice = "A larger window= packs better; so do seq_len= and documents that fit each other."
    padding(answers, stats.slots, stats.tokens, advice)
    labels(answers, stats.tokens, stats.effective_tokens)
    _losses(answers, stats)
    _pieces(answers, stats)
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


def _pieces(answers: Answers, stats: Stats) -> None:
    question = "Do documents stay whole?"
    if not stats.documents:
        answers.missing(question, "no document was delivered yet")
        return
    answers.add(
        question,
        stats.split_documents <= _SPLIT * stats.documents,
        f"{count(stats.split_documents)} of {counted(stats.documents, 'document')} split",
        'Only documents longer than seq_len need to be: packing="concat" cuts others too, and a '
        "longer seq_len cuts fewer.",
    )


def profiled_tokens(profile: Profile | None, advice: str) -> Answers:
    """What a profile tells of the area, of any loader."""
    answers = Answers("effective tokens")
    stats = ProfileStats() if profile is None else profile.stats
    padding(answers, stats.slots, stats.tokens, advice)
    labels(answers, stats.tokens, stats.effective_tokens)
    return answers
