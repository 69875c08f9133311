"""Resume in the middle of a stretch, of a cap, of a pass, at the exact end of an epoch or of the
run, at any split of the global batch: the rest of the run is that of no interruption."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import mixed, pieces, put_at

LENGTHS = {"a": [3, 9, 1, 14, 2, 2, 7], "b": [5, 4, 20, 1], "c": [6]}
SPLITS = [(1, 6, 1), (2, 3, 1), (3, 2, 1), (6, 1, 1), (1, 2, 3), (2, 1, 3), (1, 1, 6), (3, 1, 2)]

weights = st.fixed_dictionaries({name: st.floats(0.2, 5) for name in LENGTHS})


@st.composite
def mixes(draw):
    kind = draw(st.sampled_from(["drop", "stop", "repeat", "schedule", "caps", "natural caps"]))
    if kind in ("drop", "stop", "repeat"):
        mix = {"weights": draw(weights), "when_dry": kind}
    elif kind == "natural caps":
        mix = {"max_passes": draw(st.floats(0.5, 4))}
    else:
        gaps = draw(st.lists(st.integers(1, 80), max_size=3))
        starts = [sum(gaps[:i]) for i in range(len(gaps) + 1)]
        mix = {"weights": [(start, draw(weights)) for start in starts]}
    if kind == "caps":
        mix["max_passes"] = draw(st.fixed_dictionaries({name: st.floats(0.5, 4) for name in "ab"}))
    if kind in ("repeat", "schedule", "caps") and draw(st.booleans()):
        mix["epoch_tokens"] = draw(st.integers(20, 120))
    return mix


def ranks_of(mix, split, state=None, **how):
    batch_size, world_size, accumulate = split
    loaders = [
        bf.DataLoader(
            mixed(LENGTHS, **mix), batch_size=batch_size, accumulate=accumulate, rank=rank,
            world_size=world_size, seq_len=10, window=5, shuffle_block=2, **how,
        )
        for rank in range(world_size)
    ]  # fmt: skip
    return put_at(loaders, state)


def steps_of(loaders, limit):
    """Rows of each optimizer step over all ranks, until `limit` of them or the end of the run."""
    steps = []
    accumulate = loaders[0].config.accumulate
    while len(steps) < limit and all(map(len, loaders)):
        step = []
        for count, group in enumerate(zip(*loaders, strict=True), 1):
            step += [p for batch in group for p in pieces(batch)]
            if count % accumulate == 0:
                steps.append(sorted(step))
                step = []
                if len(steps) == limit:
                    return steps
        if step:  # the last of an epoch has fewer micro-batches
            steps.append(sorted(step))
    return steps


def two_empty_passes(loader):
    """The first takes what is left of an epoch: nothing, where a state was taken at its end."""
    assert list(loader) == []
    assert list(loader) == []


@settings(max_examples=120, deadline=None)
@given(
    mix=mixes(),
    shuffle=st.sampled_from([False, True, "block"]),
    packing=st.sampled_from(["streaming", "concat", "bucket"]),
    splits=st.lists(st.sampled_from(SPLITS), min_size=3, max_size=3),
    stops=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    num_workers=st.sampled_from([0, 2]),
)
@pytest.mark.filterwarnings("ignore:a loader was given a state and never")
def test_s01_resume_anywhere_in_a_mixture_is_no_interruption(
    mix, shuffle, packing, splits, stops, num_workers
):
    how = {"shuffle": shuffle, "packing": packing, "num_workers": num_workers}
    loaders = ranks_of(mix, splits[0], **how)
    whole = steps_of(loaders, 30)
    found, state = [], None
    for split, stop in zip(splits, (*stops, 30), strict=True):
        loaders = ranks_of(mix, split, state, **how)
        count = min(stop, 30 - len(found))
        if count:
            found += steps_of(loaders, count)
        states = [json.loads(json.dumps(loader.state_dict())) for loader in loaders]
        assert all(s == states[0] for s in states)
        state = states[0]
    assert found == whole
    if not len(loaders[0]):
        with pytest.raises(bf.PlanError, match="the run is over"):
            two_empty_passes(loaders[0])
