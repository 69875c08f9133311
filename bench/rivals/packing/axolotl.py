"""axolotl: first fit in groups of 100,000 documents, at most 200 a bin, compiled by numba."""

from importlib.util import find_spec

import numpy as np

from rivals.packing.rival import Rival


def rivals() -> list[Rival]:
    if find_spec("axolotl") is None or find_spec("numba") is None:
        return []
    from axolotl.utils.samplers.multipack import pack_parallel

    def pack(lengths: np.ndarray, capacity: int) -> list[list[int]]:
        packed: list[list[int]] = pack_parallel(
            lengths, capacity, group_size=100_000, bin_size=200, num_processes=1
        )
        return packed

    pack(np.array([1, 2, 3]), 4)  # compiles
    return [Rival("axolotl", lambda lengths, _: lengths, pack, len)]
