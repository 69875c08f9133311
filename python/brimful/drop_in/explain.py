"""What a loader tells of its path: which one, why, and what became of each argument of torch's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from brimful.drop_in.path import Path
from brimful.drop_in.torch_arguments import TORCH_ARGUMENTS
from brimful.wording import filled


@dataclass(frozen=True)
class Explanation:
    """What `explain()` returns; `str()` of it is a text for people.

    Attributes:
        path: "native", brimful's own loader, or "torch", torch's own underneath.
        reason: why, a clause.
        arguments: name of each of torch's arguments -> what becomes of it on this path.
    """

    path: Literal["native", "torch"]
    reason: str
    arguments: dict[str, str]

    def __str__(self) -> str:
        wide = max(map(len, self.arguments))
        lines = [filled(f"{self.path} path: {self.reason}")]
        lines += [
            filled(f"  {name:{wide}}  {text}", wide + 4) for name, text in self.arguments.items()
        ]
        return "\n".join(lines)


def explanation(path: Path) -> Explanation:
    """The explanation of a loader that took `path`."""
    return Explanation(
        path="native" if path.native else "torch",
        reason=path.reason,
        arguments={
            argument.name: argument.native if path.native else argument.delegated
            for argument in TORCH_ARGUMENTS
        },
    )
