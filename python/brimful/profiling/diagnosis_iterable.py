"""The diagnosis of an iterable that only hands out batches: what a profile of it tells."""

from __future__ import annotations

from brimful.profiling.diagnosis import AREAS, Answers, Diagnosis, joined
from brimful.profiling.diagnosis_files import profiled_stall
from brimful.profiling.diagnosis_system import system
from brimful.profiling.diagnosis_tokens import profiled_tokens
from brimful.profiling.figures import Profile
from brimful.profiling.ranks import RankReport

_SILENT = {
    "data": "Are documents there twice?",
    "sampler": "Does an epoch draw every document once?",
    "batch structure": "Do batches of a step hold as many labels?",
    "checkpoint": "Would a resumed run be equal?",
}


def diagnose_iterable(profile: Profile | None, ranks: RankReport | None) -> Diagnosis:
    """As `diagnose` says."""
    told = {
        "effective tokens": profiled_tokens(profile, "Pack documents instead of padding them."),
        "data path": Answers("data path"),
        "system": system(ranks, None, "maker"),
    }
    profiled_stall(told["data path"], profile)
    for area, question in _SILENT.items():
        told[area] = Answers(area)
        told[area].missing(question, "an iterable does not tell")
    return joined(told[area] for area in AREAS)
