"""The order= of a loader: whose order its rows come in, and what that leaves of other settings."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brimful._core import PlanError
from brimful.megatron_order import SPLITS, megatron_split

if TYPE_CHECKING:
    from brimful.config import LoaderConfig


@dataclass(frozen=True, kw_only=True)
class MegatronOrder:
    """Megatron's sample order, with the settings of Megatron's that it depends on.

    Attributes:
        split: shares of train, valid and test, as in "969,30,1", of each source; None takes all.
        part: the split to deliver, "train", "valid" or "test".
        extra_token: Megatron's `add_extra_token_to_sequence`.
        surplus: Megatron's `mid_level_dataset_surplus`, for mixtures.
    """

    split: str | None = None
    part: str = "train"
    extra_token: bool = True
    surplus: float = 0.005

    def __post_init__(self) -> None:
        if self.part not in SPLITS:
            raise PlanError(f"part is {self.part!r}; choose one of {', '.join(map(repr, SPLITS))}")
        if self.split is None and self.part != SPLITS[0]:
            raise PlanError(f'part is {self.part!r}, of no split; give one, as in split="969,30,1"')
        if self.split is not None:
            megatron_split(self.split, 0)
        if not isinstance(self.extra_token, bool):
            raise PlanError(f"extra_token is {self.extra_token!r}; it must be True or False")
        number = isinstance(self.surplus, (int, float)) and not isinstance(self.surplus, bool)
        if not number or not 0 <= self.surplus < math.inf:
            raise PlanError(f"surplus is {self.surplus!r}; it must be a number from 0")

    def settings(self) -> list[list[Any]]:
        """Names and values, as a state holds them: its dicts have the same keys always."""
        return [list(setting) for setting in dataclasses.asdict(self).items()]


def checked_order(order: object) -> MegatronOrder | None:
    """The order that order= asks for; None for brimful's own."""
    if order is None or isinstance(order, MegatronOrder):
        return order
    if isinstance(order, str) and order == "megatron":
        return MegatronOrder()
    raise PlanError(f'order is {order!r}; give "megatron", a brimful.MegatronOrder or None')


def check_settings(config: LoaderConfig) -> None:
    """Throws PlanError for settings that have no place in Megatron's order."""
    unused: dict[str, object] = {
        "overlong": "split",
        "shuffle": False,
        "balance": None,
        "align": 1,
        "max_segments": None,
    }
    for name, usual in unused.items():
        found = getattr(config, name)
        if found != usual:
            raise PlanError(
                f'{name} is {found!r}, and order="megatron" says itself which tokens share a row '
                f"and how rows are shuffled; leave {name} out"
            )
    if config.packing not in ("streaming", "concat"):
        raise PlanError(
            f'packing is {config.packing!r}, and order="megatron" lays documents end to end, as '
            f'"concat" does; leave packing out'
        )
