"""Questions about the machine and the job: cores, memory, and whether ranks keep one pace."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from brimful.process_memory import process_memory
from brimful.profiling.diagnosis import Answers
from brimful.wording import brief, counted

if TYPE_CHECKING:
    from brimful.profiling.ranks import RankReport


def system(ranks: RankReport | None, workers: int | None, made_by: str) -> Answers:
    """All of the area; `made_by` names one of the loader's workers."""
    answers = Answers("system")
    _drift(answers, ranks)
    _cores(answers, workers, made_by)
    memory = process_memory()
    answers.add(
        "What does the process hold?",
        True,
        f"{brief(memory.anonymous)}B of its own; {brief(memory.file_backed)}B are pages of files, "
        "which the system takes back",
    )
    return answers


def _drift(answers: Answers, ranks: RankReport | None) -> None:
    question = "Do ranks keep the same pace?"
    if ranks is None:
        answers.missing(
            question,
            "ranks were not asked",
            "Give ranks=profiler.gather(), which all ranks call together.",
        )
        return
    answers.add(question, not ranks.drifts, ranks.summary(), ranks.advice)


def _cores(answers: Answers, workers: int | None, made_by: str) -> None:
    question = "Is there a core for each maker of batches?"
    if workers is None:
        answers.missing(question, "the loader does not say who makes its batches")
        return
    cores = len(os.sched_getaffinity(0))
    answers.add(
        question,
        workers <= cores,
        f"{counted(workers, made_by)} on {counted(cores, 'core')}",
        "More than cores take turns; they help only where they wait for storage.",
    )
