"""Mixtures: several corpora under names, with or without weights."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from brimful import _core
from brimful._core import PlanError
from brimful.config import whole_number
from brimful.corpus import Corpus, join_info
from brimful.mix_rule import MixRule, Schedule
from brimful.mix_warning import warn_of_absent_sources


def mix(
    corpora: Mapping[str, Corpus],
    *,
    weights: Mapping[str, float] | Sequence[tuple[int, Mapping[str, float]]] | None = None,
    unit: Literal["tokens", "documents"] = "tokens",
    when_dry: Literal["repeat", "drop", "stop", "error"] = "repeat",
    max_passes: float | Mapping[str, float] | None = None,
    epoch_tokens: int | None = None,
) -> Corpus:
    """Join corpora as named sources of one corpus.

    Args:
        corpora: name -> corpus. Names are kept in states and in the exposure of `stats()`. A corpus
            that is a mixture without weights becomes one source.
        weights: name -> share of what is drawn, relative to the others and not negative. None draws
            by document count, so that an epoch is every document once (with max_passes or
            epoch_tokens, sources go on over epochs in these shares). A schedule of weights is a
            list of (position, {name: share}): positions count tokens of the run, of all sources
            together and through all epochs, and the first one is 0. Each source goes on where it
            stood.
        unit: what the shares are shares of: documents, or the tokens that the loader delivers of
            them on average.
        when_dry: what happens when a source has given all its documents in an epoch: "repeat" them
            in another order, "drop" it and go on with the others, "stop" the epoch, or "error".
        max_passes: passes over its documents after which a source leaves, counted over the whole
            run; fractions are allowed. One number for all, or name -> number for some. When all
            have left the run is over: `len(loader)` is 0 and another `iter(loader)` a PlanError.
        epoch_tokens: tokens of an epoch. None makes an epoch as many draws as there are documents
            in sources with a weight. An epoch is what one iteration delivers; with weights, sources
            go on over its end.

    A schedule and max_passes go on over epochs, so they need when_dry="repeat"; epoch_tokens needs
    "repeat" or "error".

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
    rule = MixRule(
        _checked_weights(corpora, weights),
        unit,
        when_dry,
        _checked_passes(corpora, max_passes),
        _checked_epoch_tokens(epoch_tokens),
    )
    rule.native(tuple(corpora))  # refuses what cannot be followed
    for corpus in corpora.values():
        corpus._native.renew_files()  # for an index is read, and may be repaired by now
    parts = tuple(_one_source(name, corpus) for name, corpus in corpora.items())
    info = tuple(join_info(name, corpus.info) for name, corpus in corpora.items())
    warn_of_absent_sources(info, rule)
    mixed = Corpus(_core.Corpus(list(parts)), parts, info, None if rule.is_plain else rule)
    mixed._keep += [thing for corpus in corpora.values() for thing in corpus._keep]
    mixed._made_by = functools.partial(
        mix, dict(corpora), weights=weights, unit=unit, when_dry=when_dry, max_passes=max_passes,
        epoch_tokens=epoch_tokens,
    )  # fmt: skip
    return mixed


def _checked_weights(
    corpora: Mapping[str, Corpus], weights: Any
) -> dict[str, float] | Schedule | None:
    """One weight a source, in source order, or a schedule of them; the core checks their values."""
    if weights is None:
        return None
    if not isinstance(weights, (list, tuple)):
        return _checked_shares(corpora, weights)
    schedule = []
    for entry in weights:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise PlanError(
                f"mix: weights={weights!r}; expected {{name: weight}} for exactly "
                f"{', '.join(corpora)}, or a schedule [(position in tokens, {{name: weight}}), ...]"
            )
        start = whole_number("mix: a position of the schedule of weights", entry[0])
        if not 0 <= start < 2**62:
            raise PlanError(f"mix: the schedule has position {start}; expected 0 to 2**62 - 1")
        schedule.append((start, _checked_shares(corpora, entry[1])))
    if not schedule:
        raise PlanError("mix: the schedule of weights is empty; give [(0, {name: weight}), ...]")
    if len(schedule) == 1 and schedule[0][0] == 0:
        return schedule[0][1]
    return tuple(schedule)


def _checked_shares(corpora: Mapping[str, Corpus], weights: Any) -> dict[str, float]:
    if not isinstance(weights, Mapping) or set(weights) != set(corpora):
        raise PlanError(
            f"mix: weights={weights!r}; expected {{name: weight}} for exactly {', '.join(corpora)}"
        )
    return {name: _as_number(name, "weight", weights[name]) for name in corpora}


def _checked_passes(corpora: Mapping[str, Corpus], passes: Any) -> dict[str, float] | None:
    """A cap a source, infinite for those without one; None where nothing is capped."""
    if passes is None:
        return None
    if not isinstance(passes, Mapping):
        passes = dict.fromkeys(corpora, passes)
    for name in passes:
        if name not in corpora:
            raise PlanError(
                f"mix: max_passes names {name!r}, which is none of {', '.join(corpora)}"
            )
    caps = {name: _as_number(name, "max_passes", passes.get(name, math.inf)) for name in corpora}
    return None if all(map(math.isinf, caps.values())) else caps


def _checked_epoch_tokens(tokens: Any) -> int | None:
    if tokens is None:
        return None
    number = whole_number("mix: epoch_tokens", tokens)
    if not 1 <= number < 2**62:
        raise PlanError(f"mix: epoch_tokens is {number}; expected 1 to 2**62 - 1")
    return number


def _as_number(name: str, what: str, value: Any) -> float:
    """A number of Python or numpy, or an array of no dimension that holds one."""
    number = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
        raise PlanError(f"mix: {name!r} has {what} {value!r}, which is no number")
    try:
        return float(number)
    except OverflowError:
        raise PlanError(
            f"mix: {name!r} has a {what} above {sys.float_info.max}; weights are relative to each "
            "other, so divide all of them"
        ) from None


def _one_source(name: str, corpus: Corpus) -> _core.Source:
    """All documents of a corpus, in its order, as a single source."""
    if corpus.rule is not None:
        raise PlanError(
            f"mix: {name!r} is itself a mixture with weights, passes or epochs of its own; give "
            "its sources to one mix, with the weights multiplied"
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
