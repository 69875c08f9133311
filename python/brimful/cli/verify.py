"""`brimful verify`: proves on the user's own data that a run can be interrupted anywhere."""

from __future__ import annotations

import json as jsonlib
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import brimful as bf
from brimful._core import PlanError
from brimful.cli.proof import Check, prove, stretches
from brimful.cli.source import Source
from brimful.cli.text import count, make_console, print_filled, print_path
from brimful.cli.trial import Split, VerificationFailed
from brimful.wording import counted


def run(
    sources: Sequence[Source],
    *,
    weights: str | None,
    given: Split,
    batches: int,
    settings: dict[str, Any],
    json: bool,
) -> bool:
    """Prints what was checked, as text or JSON, and says whether all of it holds."""
    corpus = _opened(sources, weights)

    def make(split: Split, rank: int, **how: Any) -> bf.DataLoader:
        return bf.DataLoader(corpus, rank=rank, **asdict(split), **settings, **how)

    found: dict[str, list[Check]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # losses and bad documents are told below
        config = make(given, 0).config
        for stretch in stretches(make, given, batches):
            try:
                found[stretch.name] = prove(make, given, stretch)
            except (VerificationFailed, bf.StateError) as error:
                found[stretch.name] = [Check("run", False, str(error))]
    passed = all(check.passed for checks in found.values() for check in checks)
    if json:
        report = {
            "data": [source.data for source in sources],
            "documents": len(corpus),
            "tokens": corpus.num_tokens,
            "settings": config.as_dict(),
            "checks": {name: [asdict(c) for c in checks] for name, checks in found.items()},
            "passed": passed,
        }
        print(jsonlib.dumps(report, indent=2, default=str))
        return passed
    console = make_console()
    for source in sources:
        print_path(console, "", source.data)
    order = "shuffled" if config.shuffle else "in order"
    print_filled(
        console,
        f"{counted(len(corpus), 'document')}, {counted(corpus.num_tokens, 'token')}\n"
        f"{config.packing}, {order}, seed {config.seed}; rows of {count(config.capacity)}; a step "
        f"is {counted(given.accumulate, 'micro-batch', 'micro-batches')} of "
        f"{counted(given.batch_size, 'row')} on {counted(given.world_size, 'rank')}",
    )
    for name, checks in found.items():
        console.print(f"\n{name}")
        for check in checks:
            mark = "ok  " if check.passed else "FAIL"
            print_filled(console, f"{mark} {check.name}: {check.detail}")
    verdict = "the run is exact" if passed else "the run is NOT exact"
    print_filled(console, f"\nverdict: {verdict}")
    return passed


def _opened(sources: Sequence[Source], weights: str | None) -> bf.Corpus:
    """The corpus; of several sources a mixture, under their names on the command line."""
    shares = None if weights is None else _numbers(weights)
    if shares is not None and len(shares) != len(sources):
        raise PlanError(f"weights={weights!r} for {counted(len(sources), 'DATA', 'DATA')}")
    if len(sources) == 1 and shares is None:
        return sources[0].open()
    names = [source.data for source in sources]
    if len(set(names)) < len(names):
        raise PlanError("DATA is named twice; sources are told apart by their names")
    return bf.mix(
        {source.data: source.open() for source in sources},
        weights=None if shares is None else dict(zip(names, shares, strict=True)),
    )


def _numbers(weights: str) -> list[float]:
    try:
        return [float(number) for number in weights.split(",")]
    except ValueError:
        raise PlanError(f"weights={weights!r}; expected numbers, as in 0.7,0.3") from None
