"""Exposure of each source in documents, tokens and effective tokens: the shares that were asked
for, within what one window holds, at every batch, and on through resumes."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import mixed, pieces, put_at

COLUMNS = ("documents", "tokens", "effective_tokens")


def masked(sources, seed):
    """Sources of documents under loss masks: {name: corpus}, and the mask of each document."""
    rng = np.random.default_rng(seed)
    corpora, masks = {}, []
    for name, lengths in sources.items():
        own = [rng.random(n) < 0.6 for n in lengths]
        for mask in own:  # a document without any would be put aside as bad
            mask[-1] = True
        masks += own
        corpora[name] = bf.open(
            [{"input_ids": np.arange(n), "loss_mask": m} for n, m in zip(lengths, own, strict=True)]
        )
    return corpora, masks


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=1, max_size=5),
    with_masks=st.booleans(),
    packing=st.sampled_from(["streaming", "concat", "pad"]),
    overlong=st.sampled_from(["split", "truncate", "drop"]),
    world_size=st.integers(1, 3),
    stop=st.integers(0, 12),
    seed=st.integers(0, 99),
)
@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_exposure_is_what_the_batches_of_all_ranks_hold(
    lengths, with_masks, packing, overlong, world_size, stop, seed
):
    """By source: counted from batches of every rank, over an interruption and two epochs."""
    sources = {f"s{i}": own for i, own in enumerate(lengths)}
    corpora, masks = masked(sources, seed)
    if not with_masks:
        corpora = {name: bf.open([np.arange(n) for n in own]) for name, own in sources.items()}
    corpus = bf.mix(corpora, weights={name: 1.0 + i for i, name in enumerate(sources)})
    ends = np.cumsum([len(own) for own in lengths])

    def ranks(state=None):
        loaders = [
            bf.DataLoader(corpus, seq_len=16, window=9, packing=packing, overlong=overlong,
                          shuffle=True, rank=rank, world_size=world_size, num_workers=0)
            for rank in range(world_size)
        ]  # fmt: skip
        return put_at(loaders, state)

    want = np.zeros((len(lengths), 3), np.int64)
    loaders, batches = ranks(), 0
    while loaders[0].state_dict()["cursor"]["epoch"] < 2 and batches < 1000:
        for group in zip(*loaders, strict=True):
            for document, start, n in [p for batch in group for p in pieces(batch)]:
                trained = masks[document][start + 1 : start + n] if with_masks else np.ones(n - 1)
                row = want[np.searchsorted(ends, document, side="right")]
                row += [start == 0, n, np.count_nonzero(trained)]
            batches += 1
            if batches == stop:
                states = [loader.state_dict() for loader in loaders]
                loaders = ranks(json.loads(json.dumps(states[-1])))
                break
    for loader in loaders:
        exposure = loader.stats().exposure
        found = [[exposure[name][column] for column in COLUMNS] for name in sources]
        assert found == want.tolist()


weights_rows = st.lists(st.floats(0.1, 10), min_size=2, max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    weights=weights_rows,
    unit=st.sampled_from(["tokens", "documents"]),
    packing=st.sampled_from(["streaming", "best_fit_decreasing"]),
    window=st.integers(1, 60),
    stop=st.integers(0, 60),
)
@pytest.mark.filterwarnings("ignore:mix. 's")
def test_realised_shares_are_the_target_within_a_window_at_every_batch(
    data, weights, unit, packing, window, stop
):
    """Windows come whole, and only the one that is open may be uneven."""
    sizes = [data.draw(st.integers(5, 60)) for _ in weights]
    lengths = [data.draw(st.integers(1, 12)) for _ in weights]
    names = [f"s{i}" for i in range(len(weights))]
    corpus = mixed(
        {name: [n] * size for name, n, size in zip(names, lengths, sizes, strict=True)},
        weights=weights,
        unit=unit,
    )

    def loader():
        return bf.DataLoader(
            corpus, seq_len=16, window=window, packing=packing, shuffle=True, num_workers=0
        )

    column = unit
    share = np.array(weights) / sum(weights)
    # What one window may hold, and the documents that end one window and begin the next.
    noise = (window + 4) * (max(lengths) if unit == "tokens" else 1)
    noise += 16 * (unit == "tokens")
    current, batches = loader(), 0
    while batches < 120:
        for _ in current:
            batches += 1
            exposure = current.stats().exposure
            counts = np.array([exposure[name][column] for name in names])
            assert (np.abs(counts - share * counts.sum()) <= noise).all()
            if batches == stop:
                state = current.state_dict()
                current = loader()
                current.load_state_dict(state)
                break
            if batches >= 120:
                break
