"""OLMo-core: best fit decreasing on a segment tree of Python objects."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from rivals.packing.rival import Rival


def prepare(lengths: npt.NDArray[np.int64], _: int) -> npt.NDArray[np.uint64]:
    """[documents, 2]: where each begins and ends."""
    ends = np.cumsum(lengths).astype(np.uint64)
    return np.stack([ends - lengths.astype(np.uint64), ends], 1)


def rivals() -> list[Rival]:
    if find_spec("olmo_core") is None or find_spec("cached_path") is None:
        return []
    from olmo_core.data.utils import InstancePacker

    def pack(indices: npt.NDArray[np.uint64], capacity: int) -> Any:
        return InstancePacker(capacity).pack_documents(indices)[0]

    return [Rival("OLMo-core", prepare, pack, len, most_documents=100_000)]
