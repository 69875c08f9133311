"""The rule of a mixture: weights over the run, and when its sources leave and its epochs end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from brimful import _core

# The rules of a run, each with the epoch and window from which it holds; the first from (0, 0).
MixHistory = tuple[tuple["MixRule", int, int], ...]

Schedule = tuple[tuple[int, dict[str, float]], ...]


@dataclass(frozen=True)
class MixRule:
    """How sources are mixed; the arguments of `brimful.mix`, for every source by name.

    Attributes:
        weights: the share of each source; or a schedule of these, each with the position in the
            run, in tokens, from which it holds; or None for shares by document count.
        unit: what weights are shares of, "tokens" or "documents".
        when_dry: "repeat", "drop", "stop" or "error".
        max_passes: passes over a source after which it leaves, infinite where it stays; or None.
        epoch_tokens: length of an epoch, or None for as many draws as there are documents.
    """

    weights: dict[str, float] | Schedule | None
    unit: str = "tokens"
    when_dry: str = "repeat"
    max_passes: dict[str, float] | None = None
    epoch_tokens: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every epoch is simply every document once."""
        return self.weights is None and self.max_passes is None and self.epoch_tokens is None

    @property
    def schedule(self) -> Schedule:
        """The weights with the positions from which they hold; none without weights."""
        if self.weights is None:
            return ()
        return ((0, self.weights),) if isinstance(self.weights, dict) else self.weights

    def native(self, sources: Sequence[str]) -> _core.Mix:
        """As the core takes it. Throws PlanError for a rule that cannot be followed."""
        passes = self.max_passes
        return _core.Mix(
            len(sources),
            schedule=[(start, [w[name] for name in sources]) for start, w in self.schedule],
            unit=self.unit,
            when_dry=self.when_dry,
            max_passes=[] if passes is None else [passes.get(name, math.inf) for name in sources],
            epoch_tokens=self.epoch_tokens or 0,
        )


def unchanged(rule: MixRule | None) -> MixHistory:
    """The history of a run whose mix has not changed; without a rule, every epoch is all once."""
    return ((rule or MixRule(None), 0, 0),)
