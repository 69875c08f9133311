"""Megatron's blends: which data set each sample is of, as megatron-core draws them, bit for bit.

Source of the method: megatron-core 0.16.1, `megatron/core/datasets/blended_dataset.py`,
`blended_megatron_dataset_builder.py` and `helpers.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError
from brimful.megatron_order import as_count, normalized

_MOST_SAMPLES = 2**48


class MegatronBlend(NamedTuple):
    """The two indices of a BlendedDataset, both `[samples]`.

    Attributes:
        dataset_index: int16, the data set of each sample.
        dataset_sample_index: int64, its number among the samples of that set.
    """

    dataset_index: npt.NDArray[np.int16]
    dataset_sample_index: npt.NDArray[np.int64]


class MegatronBlendSizes(NamedTuple):
    """What Megatron asks of the parts of a blend.

    Attributes:
        weights: over their sum.
        size: samples of the blend, at least those asked for.
        asked: samples asked of each data set, a little more than the blend takes of it.
    """

    weights: list[float]
    size: int
    asked: list[int]


def megatron_blend(weights: Sequence[float], size: int | None) -> MegatronBlend:
    """The order in which Megatron's BlendedDataset draws from its data sets.

    Args:
        weights: share of each data set, above 0, relative to the others.
        size: samples. None takes exactly weights[s] samples of set s, which are whole numbers then.

    Raises:
        PlanError: for weights or sizes that cannot be.
    """
    shares = _as_weights(weights)
    if size is None:
        counts = [int(share) for share in shares]
        if counts != shares.tolist():
            raise PlanError(f"weights are {weights!r}, and without a size they are whole numbers")
        return MegatronBlend(
            *_core.blend_exactly(np.array(counts, np.int64), _as_size(sum(counts)))
        )
    return MegatronBlend(*_core.blend(normalized(shares), _as_size(as_count("size", size))))


def megatron_blend_sizes(
    weights: Sequence[float], num_samples: int, *, surplus: float = 0.005
) -> MegatronBlendSizes:
    """What Megatron makes of a blend of `num_samples`: its size, and how many samples of each set.

    The weights that come out go into `megatron_blend`, which divides them by their sum once more,
    as Megatron does: ties hang on it.

    Args:
        weights: share of each data set, relative to the others.
        num_samples: samples asked for.
        surplus: `mid_level_dataset_surplus` of Megatron's config.
    """
    shares = normalized(_as_weights(weights)).tolist()
    samples = as_count("num_samples", num_samples)
    takes = [math.ceil(samples * share) for share in shares]
    return MegatronBlendSizes(
        shares, sum(takes), [math.ceil(count * (1 + surplus)) for count in takes]
    )


def _as_weights(weights: Sequence[float]) -> npt.NDArray[np.float64]:
    try:
        shares = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    if shares.ndim != 1 or not shares.size or not (shares > 0).all() or np.isinf(shares).any():
        raise PlanError(f"weights are {weights!r}; give one number above 0 for each data set")
    return shares


def _as_size(samples: int) -> int:
    if samples > _MOST_SAMPLES:
        raise PlanError(f"a blend of {samples} samples; at most {_MOST_SAMPLES} can be indexed")
    return samples
