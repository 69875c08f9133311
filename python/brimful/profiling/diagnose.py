"""Which questions a loader is asked: those of its kind."""

from __future__ import annotations

from typing import Any

from brimful.profiling.diagnosis import Diagnosis
from brimful.profiling.diagnosis_iterable import diagnose_iterable
from brimful.profiling.diagnosis_native import diagnose_native
from brimful.profiling.figures import Profile
from brimful.profiling.makers import is_native_loader, is_torch_loader
from brimful.profiling.ranks import RankReport


def diagnose(
    loader: Any,
    *,
    documents: int = 10_000,
    profile: Profile | None = None,
    ranks: RankReport | None = None,
) -> Diagnosis:
    """Asks a loader what an engineer would, in that order. Takes no batch of it.

    Args:
        loader: a `bf.DataLoader` on either path, any DataLoader of torch's, or another iterable, of
            which only the profile tells.
        documents: read to look for copies, at most.
        profile: of this loader, for what only a profile can tell: stall beside steps, and on
            torch's path padding and labels.
        ranks: what `Profiler.gather()` returned, for the pace of ranks.
    """
    if is_native_loader(loader):
        return diagnose_native(loader, documents=documents, profile=profile, ranks=ranks)
    if is_torch_loader(loader):
        from brimful.profiling.diagnosis_torch import diagnose_torch  # torch is there then

        return diagnose_torch(loader, documents=documents, profile=profile, ranks=ranks)
    return diagnose_iterable(profile, ranks)
