"""Questions about the order: what the plan repeats or leaves out, and where the loader stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from brimful.profiling.diagnosis import Answers
from brimful.telemetry import Stats
from brimful.wording import count, counted, percent

if TYPE_CHECKING:
    from brimful.loader import DataLoader

_MOST_DRAWS = 1 << 22  # looked at, in about a second
_CHUNK = 1 << 18
_MOST_PASSES = 4  # over a source, after which repeating its documents helps little


def native_order(loader: DataLoader, stats: Stats, state: Mapping[str, Any]) -> Answers:
    """All of the area; draws the epoch by the plan, and reads no tokens."""
    answers = Answers("sampler")
    _once(answers, loader, int(state["cursor"]["epoch"]))
    _passes(answers, loader, stats)
    _left_out(answers, stats)
    step = state["step"]
    where = f"epoch {state['cursor']['epoch']}, " + (
        "a step that is counted when it is asked for" if step is None else f"step {count(step)}"
    )
    answers.add("Where would it go on?", True, where)
    return answers


def _once(answers: Answers, loader: DataLoader, epoch: int) -> None:
    question = "Does an epoch draw every document once?"
    if loader.config.megatron is not None:
        answers.missing(question, "rows are Megatron's samples, which its indices name")
        return
    draws, documents = loader._plan.epoch_draws(epoch), len(loader.corpus)
    if max(draws, documents) > _MOST_DRAWS:
        answers.missing(
            question,
            f"epoch {epoch} has {counted(draws, 'draw')} of {counted(documents, 'document')}, "
            "too many to look at",
        )
        return
    times = np.zeros(documents, np.int64)
    for first in range(0, draws, _CHUNK):
        drawn = loader._plan.draws(epoch, first, min(_CHUNK, draws - first))
        times += np.bincount(drawn, minlength=documents)
    never, again = int((times == 0).sum()), int((times > 1).sum())
    rule = loader.corpus.rule
    if rule is None:
        answers.add(
            question,
            not never and not again,
            f"{counted(documents, 'document')} in epoch {epoch}: {count(never)} never, "
            f"{count(again)} repeatedly",
            "The plan is broken: please report it with this corpus's lengths.",
        )
    else:
        answers.add(
            question,
            int(times.max(initial=0)) <= _MOST_PASSES,
            f"by weights, epoch {epoch} draws {count(never)} of {counted(documents, 'document')} "
            f"never and {count(again)} repeatedly, up to {count(int(times.max(initial=0)))} times",
            "Lower the weight of the small sources, or cap their repetition with max_passes=.",
        )


def _passes(answers: Answers, loader: DataLoader, stats: Stats) -> None:
    """Over the whole run, dropped and skipped documents with them."""
    question = "How often was each source gone through?"
    passes = {}
    for info in loader.corpus.info:
        begun = sum(
            counts[info.name]["documents"]
            for counts in (stats.exposure, stats.dropped, stats.skipped)
        )
        if info.documents:
            passes[info.name] = begun / info.documents
    if not any(passes.values()):
        answers.missing(question, "no document was delivered yet")
        return
    most = max(passes, key=passes.__getitem__)
    answers.add(
        question,
        len(passes) == 1 or passes[most] <= _MOST_PASSES,
        f"{most!r} most often: {passes[most]:.2f} times",
        "Documents that come so often are learned by heart: lower its weight, or cap it with "
        "max_passes=.",
    )


def _left_out(answers: Answers, stats: Stats) -> None:
    question = "Are steps left out?"
    if not stats.skipped_steps:
        answers.add(question, True, "none")
        return
    share = stats.skipped_tokens / max(stats.skipped_tokens + stats.tokens, 1)
    answers.add(
        question,
        True,
        f"{counted(stats.skipped_steps, 'step')} by skip=, with "
        f"{counted(stats.skipped_documents, 'document')} of this rank ({percent(share)} of tokens)",
    )
