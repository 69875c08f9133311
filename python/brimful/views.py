"""What views of a batch have in common: the segments they go by, and where arrays have to be."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import PlanError


class Views(Mapping[str, Any]):
    """A batch as its views see it."""

    __slots__ = ()

    cu_seqlens: Any
    cu_seqlens_host: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]
    max_seqlen: int
    cp_size: int
    cp_rank: int
    cp_split: str | None

    def _real_ends(self) -> npt.NDArray[np.int32]:
        """cu_seqlens on the host, without what pads them to a fixed number of segments."""
        return self.cu_seqlens_host[: len(self.lengths) + 1]

    def _tensor(self, array: npt.NDArray[Any]) -> Any:
        """As a tensor where the batch holds tensors, on its device; nothing waits for the copy."""
        if isinstance(self.cu_seqlens, np.ndarray):
            return array
        tensor = sys.modules["torch"].from_numpy(array)
        return tensor.to(self.cu_seqlens.device, non_blocking=True)

    def _on_host(self) -> bool:
        return isinstance(self.cu_seqlens, np.ndarray) or self.cu_seqlens.device.type == "cpu"

    def _shape(self) -> tuple[int, int]:
        """Of the columns: rows and tokens of a row."""
        rows, columns = next(iter(self.values())).shape
        return int(rows), int(columns)

    def _refuse_share(self, view: str, instead: str) -> None:
        if self.cp_size > 1:
            raise PlanError(
                f"{view} is for whole sequences, and this batch is share {self.cp_rank} of "
                f"{self.cp_size} of a context-parallel group; {instead}"
            )


def checked_window(window: int) -> int:
    """The window; PlanError unless it lets a token see itself."""
    if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        raise PlanError(
            f"window is {window!r}; keys that a token sees are expected, itself included: 1 or more"
        )
    return int(window)
