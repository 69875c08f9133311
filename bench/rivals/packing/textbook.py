"""Best fit decreasing as one writes it in Python in an afternoon: a sorted list of free spaces."""

from bisect import bisect_left, insort

import numpy as np

from rivals.packing.rival import Rival


def best_fit_decreasing(lengths: list[int], capacity: int) -> list[list[int]]:
    bins: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # (free space, bin), ascending
    for document in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        length = lengths[document]
        i = bisect_left(rooms, (length, 0))
        if i < len(rooms):
            free, b = rooms.pop(i)
            bins[b].append(document)
        else:
            free, b = capacity, len(bins)
            bins.append([document])
        if free > length:
            insort(rooms, (free - length, b))
    return bins


def rivals() -> list[Rival]:
    return [
        Rival(
            name="textbook best_fit_decreasing in Python",
            prepare=lambda lengths, _: np.asarray(lengths).tolist(),
            pack=best_fit_decreasing,
            count_bins=len,
            most_documents=100_000,
        )
    ]
