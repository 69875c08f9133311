"""LLaMA-Factory: for each bin the largest lengths that still fit, from a sorted list.

It packs lists of lengths; which document has which length is looked up afterwards, not measured.
"""

from rivals.packing.installed import module_alone
from rivals.packing.rival import Rival

MAP_BATCH = 1000  # documents, its default preprocessing_batch_size


def rivals() -> list[Rival]:
    module = module_alone("llamafactory", "data/processor/processor_utils.py")
    if module is None:
        return []
    knapsack = module.greedy_knapsack

    def by_map_batch(lengths: list[int], capacity: int) -> list[list[int]]:
        bins: list[list[int]] = []
        for first in range(0, len(lengths), MAP_BATCH):
            bins += knapsack(lengths[first : first + MAP_BATCH], capacity)
        return bins

    return [
        Rival(
            "LLaMA-Factory, whole list",
            prepare=lambda lengths, _: lengths.tolist(),
            # It empties the list it is given.
            pack=lambda lengths, capacity: knapsack(list(lengths), capacity),
            count_bins=len,
        ),
        Rival(
            "LLaMA-Factory, 1,000 documents at a time",
            prepare=lambda lengths, _: lengths.tolist(),
            pack=by_map_batch,
            count_bins=len,
        ),
    ]
