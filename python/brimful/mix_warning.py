"""A warning about sources of a mixture that have a weight and give nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from brimful.corpus import SourceInfo
from brimful.mix_rule import MixRule

_FEWEST_DRAWS = 100  # an epoch of fewer cannot be expected to show all shares


def warn_of_absent_sources(info: Sequence[SourceInfo], rule: MixRule) -> None:
    """Names the sources that hold nothing, or that an epoch draws less than once.

    By the same sums as in the core. An epoch is as many draws as there are documents, with
    when_dry="stop" as many as the first source to run dry lasts, and with epoch_tokens as many as
    hold these. "drop" draws everything. Epochs of a schedule differ: only what is always absent
    from one of its stretches is named.
    """
    if sum(source.documents for source in info) < _FEWEST_DRAWS or not rule.schedule:
        return
    absent: dict[str, None] = {}
    for _, weights in rule.schedule:
        for source in info:
            if weights[source.name] > 0 and not _holds(source, rule):
                what = f"{source.name!r} has weight {weights[source.name]:g} and no {rule.unit}"
                absent[what] = None
    if len(rule.schedule) == 1 and rule.when_dry != "drop":
        absent |= dict.fromkeys(_seldom_drawn(info, rule))
    if absent:
        warnings.warn(
            f"mix: {'; '.join(absent)}. Epochs without a source hold more of the others: raise its "
            "weight, or leave it out",
            stacklevel=3,
        )


def _holds(source: SourceInfo, rule: MixRule) -> bool:
    return source.documents > 0 and (source.tokens > 0 or rule.unit == "documents")


def _seldom_drawn(info: Sequence[SourceInfo], rule: MixRule) -> list[str]:
    weights = rule.schedule[0][1]
    held = [s for s in info if weights[s.name] > 0 and _holds(s, rule)]
    if not held:
        return []
    shares = np.array([weights[s.name] for s in held])
    documents = np.array([s.documents for s in held], np.float64)
    means = np.array([s.tokens for s in held]) / documents
    if rule.unit == "tokens":
        shares /= means
    shares /= shares.sum()
    total = float(documents.sum())
    if rule.when_dry == "stop":
        total = float(min(documents / shares))
    elif rule.epoch_tokens is not None and (shares @ means) > 0:
        total = rule.epoch_tokens / float(shares @ means)
    return [
        f"{s.name!r} with weight {weights[s.name]:g} is drawn once in about "
        f"{1 / draws:,.1f} epochs of {total:,.0f} draws"
        for s, draws in zip(held, shares * total, strict=True)
        if draws < 0.999  # rounding is none of the user's business
    ]
