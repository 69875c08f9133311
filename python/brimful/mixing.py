"""Mixtures: several corpora under names, with or without weights."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from brimful import _core
from brimful._core import PlanError
from brimful.corpus import Corpus, MixRule, SourceInfo, join_info

_FEWEST_DRAWS = 100  # an epoch of fewer cannot be expected to show all shares


def mix(
    corpora: Mapping[str, Corpus],
    *,
    weights: Mapping[str, float] | None = None,
    unit: Literal["tokens", "documents"] = "tokens",
    when_dry: Literal["repeat", "drop", "stop", "error"] = "repeat",
) -> Corpus:
    """Join corpora as named sources of one corpus.

    Args:
        corpora: name -> corpus. Names are kept in states and in the exposure of `stats()`. A corpus
            that is a mixture without weights becomes one source.
        weights: name -> share of what is drawn, relative to the others and not negative. None draws
            by document count, so that an epoch is every document once.
        unit: what the shares are shares of.
        when_dry: what happens when a source has given all its documents in an epoch: "repeat" them
            in another order, "drop" it and go on with the others, "stop" the epoch, or "error".

    Raises:
        PlanError: names, weights or settings that cannot be used.
        TypeError: what is given is not {name: corpus}.

    Warns (UserWarning), in mixtures of 100 documents and more, of sources with a weight that give
    nothing in some or all epochs: those that hold nothing, and those that an epoch draws less than
    once.

    The documents of the result are numbered source after source.
    """
    if not isinstance(corpora, Mapping):
        raise TypeError(
            f"mix: {type(corpora).__name__} given; expected {{name: corpus}}, as in "
            'mix({"web": a, "code": b}): states and stats() know sources by their names'
        )
    if not corpora:
        raise PlanError("mix: no corpora; give at least one as {name: corpus}")
    for name, corpus in corpora.items():
        if not isinstance(name, str) or not name:
            raise PlanError(f"mix: {name!r} is no name; a source is named by a non-empty string")
        if not isinstance(corpus, Corpus):
            raise TypeError(f"mix: {name!r} is a {type(corpus).__name__}; expected a Corpus")
    parts = tuple(_one_source(name, corpus) for name, corpus in corpora.items())
    shares = _checked_weights(corpora, weights)
    native = _core.Corpus(list(parts), list(shares.values()), unit, when_dry)
    info = tuple(join_info(name, corpus.info) for name, corpus in corpora.items())
    rule = None if weights is None else MixRule(shares, unit, when_dry)
    if rule is not None:
        _warn_of_absent_sources(info, rule)
    return Corpus(native, parts, info, rule)


def _warn_of_absent_sources(info: Sequence[SourceInfo], rule: MixRule) -> None:
    """By the same sums as in the core, where an epoch is as many draws as there are documents, or
    with when_dry="stop" as many as the first source to run dry lasts. "drop" draws everything.
    """
    if sum(source.documents for source in info) < _FEWEST_DRAWS:
        return
    weighted = [source for source in info if rule.weights[source.name] > 0]

    def holds(source: SourceInfo) -> bool:
        return source.documents > 0 and (source.tokens > 0 or rule.unit == "documents")

    held = [source for source in weighted if holds(source)]
    absent = [
        f"{s.name!r} has weight {rule.weights[s.name]:g} and no {rule.unit}"
        for s in weighted
        if not holds(s)
    ]
    shares = np.array([rule.weights[s.name] for s in held])
    documents = np.array([s.documents for s in held], np.float64)
    if rule.unit == "tokens":
        shares *= documents / np.array([s.tokens for s in held])
    if len(held) and rule.when_dry != "drop":
        shares /= shares.sum()
        total = float(min(documents / shares) if rule.when_dry == "stop" else documents.sum())
        absent += [
            f"{s.name!r} with weight {rule.weights[s.name]:g} is drawn once in about "
            f"{1 / draws:,.1f} epochs of {total:,.0f} draws"
            for s, draws in zip(held, shares * total, strict=True)
            if draws < 0.999  # rounding is none of the user's business
        ]
    if absent:
        warnings.warn(
            f"mix: {'; '.join(absent)}. Epochs without a source hold more of the others: raise its "
            "weight, or leave it out",
            stacklevel=3,
        )


def _checked_weights(
    corpora: Mapping[str, Corpus], weights: Mapping[str, float] | None
) -> dict[str, float]:
    """One weight a source, in source order; the core checks their values."""
    if weights is None:
        return {}
    if not isinstance(weights, Mapping) or set(weights) != set(corpora):
        raise PlanError(
            f"mix: weights={weights!r}; expected {{name: weight}} for exactly {', '.join(corpora)}"
        )
    return {name: _as_weight(name, weights[name]) for name in corpora}


def _as_weight(name: str, weight: Any) -> float:
    """A number of Python or numpy, or an array of no dimension that holds one."""
    number = weight[()] if isinstance(weight, np.ndarray) and weight.ndim == 0 else weight
    if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
        raise PlanError(f"mix: {name!r} has weight {weight!r}, which is no number")
    try:
        return float(number)
    except OverflowError:
        raise PlanError(
            f"mix: {name!r} has a weight above {sys.float_info.max}; weights are relative to each "
            "other, so divide all of them"
        ) from None


def _one_source(name: str, corpus: Corpus) -> _core.Source:
    """All documents of a corpus, in its order, as a single source."""
    if corpus.rule is not None:
        raise PlanError(
            f"mix: {name!r} is itself a mixture with weights; give its sources to one mix, with "
            "the weights multiplied"
        )
    stores = [store for part in corpus._parts for store in part.stores]
    if all(part.rows is None for part in corpus._parts):
        return _core.Source(name, stores)
    rows = []
    first = 0
    for part in corpus._parts:
        units = sum(map(len, part.stores))
        rows.append(first + (np.arange(units) if part.rows is None else part.rows))
        first += units
    return _core.Source(name, stores, np.concatenate(rows))
