"""What the bench needs to know of another packer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Rival:
    name: str
    prepare: Callable[[npt.NDArray[np.int64], int], Any]
    """Lengths and capacity in the form the packer likes best; not measured."""
    pack: Callable[[Any, int], Any]
    """What is measured."""
    count_bins: Callable[[Any], int]
    """The bins of what `pack` returned."""
    most_documents: int = 1_000_000
    """More would take minutes."""
