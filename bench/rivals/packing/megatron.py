"""Megatron-LM: the index of samples of its GPT dataset, in C++.

It packs nothing: documents stand end to end and are cut where a sample is full, so compare it with
`concat`.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from rivals.packing.rival import Rival


def rivals() -> list[Rival]:
    if find_spec("megatron") is None or find_spec("megatron.core") is None:
        return []
    from megatron.core.datasets.helpers import build_sample_idx

    def prepare(lengths: npt.NDArray[np.int64], _: int) -> Any:
        order = np.arange(len(lengths), dtype=np.int32)
        return lengths.astype(np.int32), order, int(lengths.sum())

    def pack(given: Any, capacity: int) -> Any:
        sizes, order, tokens = given
        return build_sample_idx(sizes, order, capacity, 1, tokens, False, False)

    return [Rival("Megatron-LM sample index", prepare, pack, lambda index: len(index) - 1)]
