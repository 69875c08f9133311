"""Megatron's sample order: the indices that megatron-core makes, bit for bit.

Megatron lays documents end to end in a shuffled order, cuts them into samples of `seq_len` tokens,
wherever that falls, and shuffles the samples. Source of the method: megatron-core 0.16.1,
`megatron/core/datasets/gpt_dataset.py` and `helpers.cpp`; `tests/test_megatron_order.py` compares
with it.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from brimful import _core
from brimful._core import PlanError
from brimful.pack_checks import as_flag, as_index, as_lengths

SPLITS = ("train", "valid", "test")

_INT32 = np.iinfo(np.int32).max
_MOST_TOKENS = 2**62
_SEPARATE_BELOW = 0.80  # of an epoch's samples: a last epoch of fewer is shuffled apart


class MegatronIndices(NamedTuple):
    """The three indices of a GPTDataset.

    Attributes:
        document_index: int32 `[epochs x documents]`, document numbers in the order in which they
            are laid end to end.
        sample_index: `[samples + 1, 2]`, where each sample begins: a place in `document_index`,
            and a token of that document. int32, or int64 where numbers need it.
        shuffle_index: `[samples]`, the sample that comes in each place. uint32, or int64 from
            2**32 - 2 samples on.
    """

    document_index: npt.NDArray[np.int32]
    sample_index: npt.NDArray[Any]
    shuffle_index: npt.NDArray[Any]


def megatron_order(
    lengths: npt.ArrayLike,
    seq_len: int,
    num_samples: int | None,
    seed: int,
    *,
    documents: range | npt.ArrayLike | None = None,
    extra_token: bool = True,
    drop_partial: bool = True,
) -> MegatronIndices:
    """The order in which Megatron's GPTDataset delivers samples of documents of these lengths.

    All samples of the epochs that it takes are in it, so there may be more than were asked for.

    Args:
        lengths: tokens of every document (of Megatron's "sequences") of the data set, [documents].
        seq_len: tokens of a sample, from 1.
        num_samples: samples asked for; None asks for those of one epoch.
        seed: Megatron's seed, from 0 to 2**32 - 1.
        documents: numbers of the documents to take, such as a part of `megatron_split`; None takes
            all.
        extra_token: whether a sample is read with one token more, for the label of its last one
            (`add_extra_token_to_sequence`). It changes the order.
        drop_partial: leave out the last tokens where they fill no sample
            (`drop_last_partial_validation_sequence`, which holds for "valid" only; elsewhere
            Megatron leaves them out). Without it, and above 2**24 tokens, the number of samples is
            rounded as Megatron does, and may be off by some.

    Raises:
        PlanError: for numbers that cannot be, and for samples of no tokens, for which Megatron
            looks without end.
    """
    given = _as_lengths(lengths)
    taken = _as_documents(documents, len(given))
    length, extra = _as_seq_len(seq_len), as_flag("extra_token", extra_token)
    per_epoch = _tokens(given, taken)
    asked = None if num_samples is None else as_count("num_samples", num_samples)
    epochs = _epochs(asked, per_epoch, length, extra)
    total = epochs * per_epoch
    samples = _core.count_samples(total, length, extra, as_flag("drop_partial", drop_partial))
    # Of the epochs before a last one that is shuffled apart; all of them where it is not.
    apart = _separate_from(asked, epochs, per_epoch, length, extra)

    random = np.random.RandomState(_as_seed(seed))
    document_index = np.tile(taken, epochs)
    if apart is None:
        random.shuffle(document_index)
    else:
        random.shuffle(document_index[: -len(taken)])
        random.shuffle(document_index[-len(taken) :])
    largest = max(len(document_index), int(given.max(initial=0)))
    sample_index = _core.sample_index(
        given, document_index, samples, length, extra, wide=largest > _INT32
    )
    small = samples < np.iinfo(np.uint32).max - 1
    shuffle_index = np.arange(samples, dtype=np.uint32 if small else np.int64)
    first = samples if apart is None else apart
    random.shuffle(shuffle_index[:first])
    if first != samples:
        random.shuffle(shuffle_index[first:])
    return MegatronIndices(document_index, sample_index, shuffle_index)


def megatron_split(
    split: str, num_documents: int
) -> tuple[range | None, range | None, range | None]:
    """The documents of Megatron's train, valid and test splits, in this order.

    Args:
        split: their shares, as in "969,30,1"; those left out are 0.
        num_documents: documents (Megatron's "sequences") of a data set.

    Returns:
        ranges of document numbers, one of which may hold none; None for a split whose share is 0.
    """
    ends = [0.0]
    for share in _as_shares(split):
        ends.append(ends[-1] + share)
    documents = float(as_count("num_documents", num_documents))
    parts = [
        range(round(begin * documents), round(end * documents)) if end > begin else None
        for begin, end in itertools.pairwise(ends)
    ]
    return parts[0], parts[1], parts[2]


def normalized(weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Weights over their sum, each step rounded as Megatron rounds it."""
    given = np.array(weights, dtype=np.float64)
    return given / np.sum(given)


def _as_shares(split: str) -> list[float]:
    found = re.findall(r"[.0-9]+", split) if isinstance(split, str) else []
    try:
        shares = [float(share) for share in found]
    except ValueError:
        shares = []
    if not 1 <= len(shares) <= len(SPLITS) or not 0 < sum(shares) < float("inf"):
        raise PlanError(
            f'split is {split!r}; give the shares of train, valid and test, as in "969,30,1"'
        )
    rest = [0.0] * (len(SPLITS) - len(shares))
    return list(normalized(shares + rest).tolist())


def _as_lengths(lengths: npt.ArrayLike) -> npt.NDArray[Any]:
    """As int32, where they are that already, else as int64."""
    if isinstance(lengths, np.ndarray) and lengths.dtype == np.int32 and lengths.ndim == 1:
        return np.ascontiguousarray(lengths)
    return as_lengths(lengths)


def _as_documents(documents: Any, known: int) -> npt.NDArray[np.int32]:
    if documents is None:
        documents = range(known)
    if isinstance(documents, range):
        if documents and (min(documents) < 0 or max(documents) >= known):
            raise PlanError(f"documents are {documents!r} of {known}; they are numbered from 0")
        documents = np.arange(documents.start, documents.stop, documents.step)
    taken = np.asarray(documents)
    if taken.ndim != 1 or (taken.size and taken.dtype.kind not in "iu"):
        raise PlanError(
            f"documents has the dtype {taken.dtype} and the shape {taken.shape}; a range or an "
            f"array of document numbers is expected"
        )
    if taken.size and (taken.min() < 0 or taken.max() >= known):
        raise PlanError(
            f"documents has numbers from {taken.min()} to {taken.max()}, and there are {known} "
            f"documents, numbered from 0"
        )
    if known > _INT32:
        raise PlanError(f"{known:,} documents are more than Megatron numbers, which is {_INT32:,}")
    return taken.astype(np.int32)


def _tokens(lengths: npt.NDArray[Any], documents: npt.NDArray[np.int32]) -> int:
    """Tokens of these documents together."""
    if lengths.size and lengths.min() < 0:
        raise PlanError(f"lengths has {lengths.min()}; a document has 0 tokens or more")
    if int(lengths.max(initial=0)) * len(documents) < _MOST_TOKENS:
        return int(np.sum(lengths[documents], dtype=np.int64))
    return sum(lengths[documents].tolist())


def _epochs(samples: int | None, per_epoch: int, seq_len: int, extra: bool) -> int:
    """The fewest epochs with as many tokens as the samples have; at least one."""
    if samples is None:
        return 1
    tokens = samples * seq_len + extra
    if not per_epoch and tokens:
        raise PlanError(
            f"{samples} samples are asked of documents that have no tokens, and no number of "
            f"epochs holds them; take documents that have some"
        )
    epochs = max(1, -(-tokens // per_epoch)) if per_epoch else 1
    if epochs * per_epoch >= _MOST_TOKENS:
        raise PlanError(
            f"{samples} samples of {seq_len} tokens are {epochs} epochs of {per_epoch} tokens, "
            f"more than 2**62 together"
        )
    return epochs


def _separate_from(
    samples: int | None, epochs: int, per_epoch: int, seq_len: int, extra: bool
) -> int | None:
    """Samples before the last epoch, where that is shuffled apart; None where it is not."""
    if samples is None or epochs == 1:
        return None
    before = ((epochs - 1) * per_epoch - extra) // seq_len
    whole = (per_epoch - extra) // seq_len
    return before if samples - before < int(_SEPARATE_BELOW * whole) else None


def _as_seq_len(seq_len: int) -> int:
    number = as_count("seq_len", seq_len)
    if not 1 <= number <= _INT32:
        raise PlanError(f"seq_len is {number}; it must be from 1 to {_INT32}")
    return number


def as_count(name: str, value: Any) -> int:
    try:
        number = as_index(value)
    except TypeError:
        raise PlanError(f"{name} is {value!r}; a whole number is expected") from None
    if number < 0:
        raise PlanError(f"{name} is {number}; it cannot be negative")
    return number


def _as_seed(seed: Any) -> int:
    number = as_count("seed", seed)
    if number >= 2**32:
        raise PlanError(f"seed is {number}; Megatron's seeds are from 0 to 2**32 - 1")
    return number
