"""What users log beside a loader's batches: losses, learning rates and the like, by their step."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brimful._core import PlanError

_MOST = 30_000  # calls of log(); of the steps that a timeline keeps, three each


@dataclass(frozen=True)
class Note:
    """One call of `log()`.

    Attributes:
        batch: number of the newest batch then.
        step: the step that the user named; None: that of the batch.
        numbers: by name.
    """

    batch: int
    step: int | None
    numbers: Mapping[str, float]


class Notes:
    """Keeps the last calls. Numbers on a device are copied there, and fetched when asked for."""

    def __init__(self) -> None:
        self._notes: deque[tuple[int, int | None, dict[str, Any]]] = deque(maxlen=_MOST)
        self._newest: dict[str, Any] = {}

    def add(self, batch: int, step: int | None, numbers: Mapping[str, Any]) -> None:
        """Raises PlanError for what is no number."""
        kept = {name: _kept(name, value) for name, value in numbers.items()}
        self._notes.append((batch, step, kept))
        self._newest |= kept

    def newest(self) -> dict[str, float]:
        """The last number of each name; waits for devices that hold one."""
        return {name: float(value) for name, value in dict(self._newest).items()}

    def read(self) -> list[Note]:
        """All that are kept, in order; waits for devices that hold numbers."""
        read = []
        for batch, step, numbers in list(self._notes):
            numbers.update({name: float(value) for name, value in numbers.items()})
            read.append(Note(batch, step, dict(numbers)))
        return read


def _kept(name: str, value: Any) -> Any:
    """A float, or a tensor of one number of our own: the loop may add to its tensor later."""
    where = getattr(getattr(value, "device", None), "type", "cpu")
    if hasattr(value, "detach") and where != "cpu":
        if value.numel() == 1 and where != "meta" and not value.is_complex():
            return value.detach().clone()
    elif not isinstance(value, (str, bytes)):
        try:
            return float(value.detach() if hasattr(value, "detach") else value)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise PlanError(f"log: {name} is {_short(value)}; give a number, or a tensor of one number")


def _short(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return repr(value)[:60] if shape is None else f"of shape {list(shape)}"
