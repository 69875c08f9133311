"""The rows of a corpus in Megatron's sample order, as the core follows them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from brimful import _core
from brimful._core import PlanError
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.megatron_blend import MegatronBlend, megatron_blend, megatron_blend_sizes
from brimful.megatron_order import MegatronIndices, megatron_order, megatron_split
from brimful.mix_rule import MixRule
from brimful.order import MegatronOrder

# The indices of a source, for a number of samples.
_Ask = Callable[[int, int | None], MegatronIndices]


def row_order(corpus: Corpus, config: LoaderConfig) -> _core.RowOrder | None:
    """The order that `order=` asks for; None for brimful's own.

    A source is what Megatron calls a data set; several are blended as Megatron's builder does it,
    by the weights of their mixture.

    Raises:
        PlanError: where Megatron cannot deliver that many samples of this corpus.
    """
    order = config.megatron
    if order is None:
        return None

    def ask(source: int, num_samples: int | None) -> MegatronIndices:
        return _indices_of(corpus, source, order, config, num_samples)

    samples = config.num_samples
    weights = _weights(corpus)
    if weights is not None:
        if samples is None:
            raise PlanError(
                "num_samples is missing; a blend by weights has no epoch, so say how many rows"
            )
        return _by_weights(corpus, weights, order, samples, ask)
    if len(corpus.sources) == 1:
        indices = ask(0, samples)
        rows = len(indices.shuffle_index) if samples is None else samples
        return _core.RowOrder([indices], rows, None)
    return _by_sizes(corpus, samples, ask)


def _by_weights(
    corpus: Corpus, weights: list[float], order: MegatronOrder, samples: int, ask: _Ask
) -> _core.RowOrder:
    """A blend of that size, of a little more samples than it takes of each source."""
    shares, size, asked = megatron_blend_sizes(weights, samples, surplus=order.surplus)
    indices = [ask(source, count) for source, count in enumerate(asked)]
    blend = megatron_blend(shares, size)
    taken = np.bincount(blend.dataset_index, minlength=len(asked))
    for name, count, there in zip(corpus.sources, taken.tolist(), indices, strict=True):
        if count > len(there.shuffle_index):
            raise PlanError(
                f"the blend takes {count} samples of {name!r}, which has "
                f"{len(there.shuffle_index)}; Megatron refuses that too. Raise surplus, which is "
                f"{order.surplus}"
            )
    return _blended(indices, samples, blend)


def _by_sizes(corpus: Corpus, samples: int | None, ask: _Ask) -> _core.RowOrder:
    """A blend of one epoch of each source, without weights."""
    indices = [ask(source, None) for source in range(len(corpus.sources))]
    sizes = [len(there.shuffle_index) for there in indices]
    for name, size in zip(corpus.sources, sizes, strict=True):
        if size == 0:
            raise PlanError(f"{name!r} has no whole sample, and cannot be blended; leave it out")
    if samples is not None and samples > sum(sizes):
        raise PlanError(
            f"num_samples is {samples}, and without weights Megatron blends one epoch of each "
            f"source, {sum(sizes)} samples; ask for these, or give bf.mix weights"
        )
    blend = megatron_blend(sizes, samples)
    return _blended(indices, sum(sizes) if samples is None else samples, blend)


def _blended(indices: list[MegatronIndices], rows: int, blend: MegatronBlend) -> _core.RowOrder:
    return _core.RowOrder(list(indices), rows, blend)


def _indices_of(
    corpus: Corpus,
    source: int,
    order: MegatronOrder,
    config: LoaderConfig,
    num_samples: int | None,
) -> MegatronIndices:
    counts = [info.documents for info in corpus.info]
    first = sum(counts[:source])
    lengths = corpus.lengths[first : first + counts[source]]
    documents = None
    if order.split is not None:
        parts = megatron_split(order.split, counts[source])
        documents = dict(zip(("train", "valid", "test"), parts, strict=True))[order.part]
        if documents is None:
            raise PlanError(f"split is {order.split!r}, which leaves nothing for {order.part!r}")
    try:
        return megatron_order(
            lengths,
            config.capacity,
            num_samples,
            config.seed,
            documents=documents,
            extra_token=order.extra_token,
        )
    except PlanError as error:
        where = "" if order.split is None else f", {order.part} of {order.split!r}"
        raise PlanError(f"{corpus.sources[source]}{where}: {error}") from None


def _weights(corpus: Corpus) -> list[float] | None:
    """One a source; None where the corpus has none. Throws PlanError for rules of another kind."""
    rule = corpus.rule
    if rule is None:
        return None
    if rule != MixRule(rule.weights) or not isinstance(rule.weights, dict):
        raise PlanError(
            'order="megatron" blends by fixed weights, which are shares of tokens: give bf.mix '
            "weights={name: weight} alone"
        )
    return [rule.weights[name] for name in corpus.sources]
