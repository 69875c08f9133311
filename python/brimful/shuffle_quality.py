"""How well an epoch is shuffled, in two figures that say how far documents move and spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brimful import _core
from brimful.corpus import Corpus

_CHUNK = 1 << 20  # documents looked at together


@dataclass(frozen=True, kw_only=True)
class ShuffleQuality:
    """Of the documents of an epoch as they are drawn, before a window packs them.

    Attributes:
        documents: documents drawn.
        displacement: mean distance between a document's place in the epoch and its place in the
            corpus as stored, both from 0 to 1: about 1/3 for a full shuffle, 0 for none. It says
            whether the epoch's beginning shows more than the corpus's beginning.
        neighbour_distance: mean distance in the epoch, as a share of it, between documents that are
            stored next to each other in a source: about 1/3 for a full shuffle, 1 / documents for
            none, and about a third of a window for blocks, which keep them near each other.
            None where no two such documents are drawn.

    The first time counts for a document that an epoch draws more than once.
    """

    documents: int
    displacement: float
    neighbour_distance: float | None


def shuffle_quality(plan: _core.Plan, corpus: Corpus, epoch: int) -> ShuffleQuality:
    """The figures of one epoch. Takes time and 8 bytes of memory for each document."""
    draws = plan.epoch_draws(epoch)
    stored = len(corpus)
    place = np.full(stored, -1, np.int64)  # of each document in the epoch
    moved = 0.0
    for last in range(draws, 0, -_CHUNK):  # backwards, so that the first place stays
        first = max(0, last - _CHUNK)
        documents = plan.draws(epoch, first, last - first)[::-1]
        places = np.arange(last - 1, first - 1, -1)
        place[documents] = places
        moved += float(np.abs((places + 0.5) / draws - (documents + 0.5) / stored).sum())
    ends = np.cumsum([source.documents for source in corpus.info])
    spread, pairs = 0, 0
    for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        for begin in range(first, end - 1, _CHUNK):
            own = place[begin : min(end, begin + _CHUNK + 1)]
            drawn = (own[1:] >= 0) & (own[:-1] >= 0)
            spread += int(np.abs(np.diff(own))[drawn].sum())
            pairs += int(np.count_nonzero(drawn))
    return ShuffleQuality(
        documents=draws,
        displacement=moved / draws if draws else 0.0,
        neighbour_distance=spread / pairs / draws if pairs else None,
    )
