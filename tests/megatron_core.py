"""What megatron-core makes of a data set: the truth that Megatron's order is compared with."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its imports warn of what is deprecated in torch, and of CUDA
    from megatron.core.datasets import helpers
    from megatron.core.datasets.blended_megatron_dataset_builder import (
        BlendedMegatronDatasetBuilder,
        _get_size_per_split_per_dataset,
    )
    from megatron.core.datasets.blended_megatron_dataset_config import (
        convert_split_vector_to_split_matrix,
        parse_and_normalize_split,
    )
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.utils import Split, normalize

logging.getLogger("megatron").setLevel(logging.ERROR)  # it advises on caches and blends

# No pad token: padding is -1, and 0 in what is delivered.
TOKENIZER = SimpleNamespace(vocab_size=None, eod=0, unique_identifiers={})


def config(seq_len: int, seed: int, **settings: Any) -> GPTDatasetConfig:
    """Without a blend it is that of data sets that lie in memory."""
    return GPTDatasetConfig(
        random_seed=seed,
        sequence_length=seq_len,
        tokenizer=TOKENIZER,
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
        **settings,
    )


def of_lengths(
    lengths: Sequence[int],
    seq_len: int,
    num_samples: int | None,
    seed: int,
    *,
    documents: Sequence[int] | None = None,
    split: str = "train",
    extra_token: bool = True,
    drop_partial: bool = True,
) -> GPTDataset:
    """A GPTDataset of documents of which only the lengths are there."""
    stored = SimpleNamespace(sequence_lengths=np.array(lengths, np.int32), path_prefix=None)
    return GPTDataset(
        stored,
        None,
        np.array(range(len(lengths)) if documents is None else documents, np.int32),
        num_samples,
        Split[split],
        config(
            seq_len,
            seed,
            add_extra_token_to_sequence=extra_token,
            drop_last_partial_validation_sequence=drop_partial,
        ),
    )


def built(
    prefixes: Sequence[Path],
    weights: Sequence[float] | None,
    split: str,
    sizes: Sequence[int | None],
    seq_len: int,
    seed: int,
    **settings: Any,
) -> list[Any]:
    """The train, valid and test sets of pairs of files, as Megatron's own builder builds them."""
    given = config(
        seq_len,
        seed,
        blend=([str(prefix) for prefix in prefixes], None if weights is None else list(weights)),
        split=split,
        **settings,
    )
    builder = BlendedMegatronDatasetBuilder(GPTDataset, list(sizes), lambda: True, given)
    return builder.build()


def split_ends(split: str) -> list[tuple[float, float] | None]:
    """Where the shares of a split begin and end, from 0 to 1."""
    return convert_split_vector_to_split_matrix(parse_and_normalize_split(split))


def blend(weights: Sequence[float], size: int | None) -> tuple[Any, Any]:
    """The indices of a BlendedDataset."""
    samples = sum(map(int, weights)) if size is None else size
    sets, numbers = np.zeros(samples, np.int16), np.zeros(samples, np.int64)
    if size is None:
        helpers.build_exhaustive_blending_indices(sets, numbers, np.array(weights), len(weights))
    else:
        shares = np.array(normalize(list(weights)))
        helpers.build_blending_indices(sets, numbers, shares, len(weights), size, False)
    return sets, numbers


def samples_of_blend(weights: Sequence[float], num_samples: int, surplus: float = 0) -> list[int]:
    """Samples of each data set of a blend."""
    shares = normalize(list(weights))
    sizes = _get_size_per_split_per_dataset(shares, [num_samples], surplus=surplus)
    return [size for (size,) in sizes]
