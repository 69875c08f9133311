"""A change of the mix in mid-run, through states: nothing is lost, nothing comes twice, and the
change stays part of the run."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import mixed, pieces, put_at

LENGTHS = {"a": [4] * 60, "b": [4] * 60}


def loader_of(weights, lengths=None, **how):
    mix = {"weights": weights, "unit": "documents"} if weights else {}
    mix |= {name: how.pop(name) for name in ("max_passes", "epoch_tokens") if name in how}
    corpus = mixed(lengths or LENGTHS, **mix)
    return bf.DataLoader(
        corpus, **{"seq_len": 4, "packing": "pad", "num_workers": 0, "window": 10, **how}
    )


def take(loader, count):
    """Documents of the next so many batches, over the ends of epochs."""
    found = []
    while count > 0:
        for batch in loader:
            found.append([d for d, _, _ in pieces(batch)])
            count -= 1
            if count == 0:
                break
    return found


def saved(loader):
    return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize("saves", [0, 1, 2])
def test_c64_a_change_of_weights_loses_and_repeats_nothing(saves):
    """Ten draws at 1:1, then nine at 2:1; the state is saved in between and again before it."""
    loader = loader_of([1, 1])
    first = [d for batch in take(loader, 10) for d in batch]
    for _ in range(saves):
        again = loader_of([1, 1])
        again.load_state_dict(saved(loader))
        iter(again).close()
        loader = again
    changed = loader_of([2, 1])
    changed.load_state_dict(saved(loader), allow_mix_change=True)
    second = [d for batch in take(changed, 9) for d in batch]
    assert sorted(first) == [0, 1, 2, 3, 4, 60, 61, 62, 63, 64]
    assert sorted(second) == [5, 6, 7, 8, 9, 10, 65, 66, 67]
    exposure = changed.stats().exposure
    assert (exposure["a"]["documents"], exposure["b"]["documents"]) == (11, 8)
    with pytest.raises(bf.StateError, match=r"'a' 2 in the state, 1 here"):
        loader_of([1, 1]).load_state_dict(saved(changed))
    after = loader_of([2, 1])  # the change is in the state, and needs no flag any more
    after.load_state_dict(saved(changed))
    assert sorted(d for batch in take(after, 6) for d in batch) == [11, 12, 13, 14, 68, 69]


def test_a_change_without_the_flag_is_refused_by_name():
    loader = loader_of([1, 1])
    take(loader, 3)
    state = saved(loader)
    for other, words in [
        ([3, 1], r"weights: 'a' 1 in the state, 3 here\nUse.*allow_mix_change=True"),
        (None, "weights: {'a': 1.0, 'b': 1.0} in the state, None here"),
        ([(0, {"a": 1, "b": 1}), (50, {"a": 0, "b": 1})], "weights: "),
    ]:
        fresh = loader_of(other)
        with pytest.raises(bf.StateError, match=words):
            fresh.load_state_dict(state)
    capped = loader_of([1, 1], max_passes={"b": 2})
    with pytest.raises(bf.StateError, match="max_passes: None in the state"):
        capped.load_state_dict(state)
    with pytest.raises(bf.StateError, match="sources: 2 in the state, 3 here"):
        loader_of([1, 1, 1], {**LENGTHS, "c": [4]}).load_state_dict(state, allow_mix_change=True)
    with pytest.raises(bf.StateError, match="seed: 0 in the state, 1 here"):
        loader_of([3, 1], seed=1).load_state_dict(state, allow_mix_change=True)


def test_c83_a_mix_that_differs_is_named_beside_other_fields():
    """Also where there are more sources, whose weights cannot be compared."""
    loader = loader_of([1, 1], epoch_tokens=100)
    next(iter(loader))
    state = saved(loader)
    with pytest.raises(bf.StateError, match=r"(?s)seq_len: 4.*'b' 1 in the state, 2 here.*tokens"):
        loader_of([1, 2], seq_len=5).load_state_dict(state)
    more = loader_of([1, 1, 1], LENGTHS | {"c": [4] * 3}, epoch_tokens=101)
    with pytest.raises(bf.StateError, match=r"(?s)sources: 2 in the state, 3.*epoch_tokens: 100"):
        more.load_state_dict(state)
    with pytest.raises(bf.StateError) as refused:  # a change that is allowed is no difference
        loader_of([1, 2], seq_len=5).load_state_dict(state, allow_mix_change=True)
    assert "weights" not in str(refused.value)


def test_documents_of_a_window_that_has_begun_come_as_planned():
    reference = take(loader_of([1, 1], batch_size=3, packing="streaming", seq_len=9), 12)
    loader = loader_of([1, 1], batch_size=3, packing="streaming", seq_len=9)
    take(loader, 2)
    changed = loader_of([0, 1], batch_size=3, packing="streaming", seq_len=9)
    changed.load_state_dict(saved(loader), allow_mix_change=True)
    rest = [d for batch in take(changed, 10) for d in batch]
    planned = [d for batch in reference for d in batch]
    delivered = [d for batch in reference[:2] for d in batch]
    begun = planned[len(delivered) : 20]  # the second step ends in the second window of 10
    assert rest[: len(begun)] == begun
    assert all(d >= 60 for d in rest[len(begun) :])
    assert rest[len(begun)] == max(d for d in planned[:20] if d >= 60) + 1


rules = st.one_of(
    st.none(),
    st.lists(st.floats(0.1, 9), min_size=2, max_size=2),
    st.tuples(st.integers(1, 300), st.floats(0, 5), st.floats(0.1, 5)).map(
        lambda t: [(0, {"a": t[2], "b": 1.0}), (t[0], {"a": 1.0, "b": t[1]})]
    ),
)


@settings(max_examples=40, deadline=None)
@given(
    chain=st.lists(
        st.tuples(rules, st.integers(0, 25), st.sampled_from([(1, 4, 1), (2, 1, 2), (3, 2, 1)])),
        min_size=2,
        max_size=5,
    ),
    window=st.integers(1, 30),
    packing=st.sampled_from(["streaming", "best_fit_decreasing", "bucket"]),
    shuffle=st.sampled_from([False, True, "block"]),
    num_workers=st.sampled_from([0, 2]),
)
def test_any_chain_of_changes_delivers_each_document_in_turn(
    chain, window, packing, shuffle, num_workers
):
    """Run all ranks, change the mix, and the global batch, again and again; then only resume.

    The final state alone gives the rest of the run, and each source comes pass by pass.
    """
    lengths = {"a": [3, 1, 4, 1, 5, 9, 2], "b": [2, 7, 1, 8]}
    how = {"window": window, "packing": packing, "shuffle": shuffle, "seq_len": 9,
           "shuffle_block": 2, "num_workers": num_workers}  # fmt: skip

    def ranks(rule, split, state=None, change=False):
        batch_size, world, accumulate = split
        loaders = [
            loader_of(rule, lengths, **how, batch_size=batch_size, accumulate=accumulate,
                      rank=rank, world_size=world)
            for rank in range(world)
        ]  # fmt: skip
        return put_at(loaders, state, allow_mix_change=change, allow_batch_change=change)

    seen, state = [], None
    for rule, batches, split in chain:
        loaders = ranks(rule, split, state, change=True)
        streams = [endless(loader) for loader in loaders]
        seen += [p for _ in range(batches) for stream in streams for p in pieces(next(stream))]
        for loader, stream in zip(loaders, streams, strict=True):
            if batches == 0:  # a state that waits unused would warn
                iter(loader).close()
            stream.close()
        states = [saved(loader) for loader in loaders]
        assert all(s == states[0] for s in states)
        state = states[0]
    # Every document's tokens, as often as another of its source, give or take a pass that is open.
    counts = {}
    for d, _, n in seen:
        counts[d] = counts.get(d, 0) + n
    totals = [n for own in lengths.values() for n in own]
    for first, last in ((0, 7), (7, 11)):
        passes = [counts.get(d, 0) / totals[d] for d in range(first, last)]
        assert max(passes) - min(passes) <= 1 + 2 * (window + 1) / (last - first)
    epochs = []
    step = split[0] * split[1] * split[2]
    for other in (split, (step, 1, 1), (1, 1, step)):  # the rest of the epoch, dealt in any way
        loaders = ranks(chain[-1][0], other, state)
        epochs.append(sorted(p for loader in loaders for batch in loader for p in pieces(batch)))
    assert epochs[0] == epochs[1] == epochs[2]


def endless(loader):
    while True:
        yield from loader


def test_a_cap_raised_after_the_end_goes_on():
    loader = loader_of([1, 1], {"a": [4] * 5, "b": [4] * 5}, max_passes=1)
    assert len(take(loader, 10)) == 10
    list(loader) if len(loader) else None
    state = saved(loader)
    more = loader_of([1, 1], {"a": [4] * 5, "b": [4] * 5}, max_passes=2)
    more.load_state_dict(state, allow_mix_change=True)
    assert sorted(d for batch in more for d in batch.documents.tolist()) == list(range(10))
    with pytest.raises(bf.PlanError, match="the run is over"):
        iter(more)


def test_a_change_and_its_return_before_it_took_effect_are_none():
    loader = loader_of([1, 1])
    take(loader, 3)
    changed = loader_of([2, 1])
    changed.load_state_dict(saved(loader), allow_mix_change=True)
    state = saved(changed)
    assert [change[:2] for change in state["mix_changes"]] == [[0, 1]]
    take(changed, 1)
    back = loader_of([1, 1])
    back.load_state_dict(saved(changed), allow_mix_change=True)
    assert saved(back)["mix_changes"] == []
    assert take(back, 30) == take(loader_of([1, 1]), 34)[4:]


def test_a_change_before_the_first_batch_is_no_change():
    loader = loader_of([1, 1])
    changed = loader_of([2, 1])
    changed.load_state_dict(saved(loader), allow_mix_change=True)
    assert saved(changed)["mix_changes"] == []
    assert take(changed, 12) == take(loader_of([2, 1]), 12)


@pytest.mark.filterwarnings("ignore:mix. 's")
@pytest.mark.parametrize("sources", [64, 1000])
def test_states_of_many_sources_hold_changes_and_find_what_differs(sources):
    lengths = {f"source-{s}": [4, 4] for s in range(sources)}
    weights = np.random.default_rng(0).lognormal(0, 1, sources).tolist()
    loader = loader_of(weights, lengths)
    take(loader, 50)
    state = saved(loader)
    assert len(json.dumps(state)) < (4096 if sources == 64 else 2048 + 32 * sources)
    other = [*weights[:7], 100.0, *weights[8:]]
    changed = loader_of(other, lengths)
    with pytest.raises(bf.StateError, match=r"'source-7' .* in the state, 100 here"):
        changed.load_state_dict(state)
    changed.load_state_dict(state, allow_mix_change=True)
    first = take(changed, 30)
    again = loader_of(other, lengths)
    again.load_state_dict(state, allow_mix_change=True)
    assert take(again, 10) == first[:10]
    third = loader_of(other, lengths)
    third.load_state_dict(saved(again))
    assert take(third, 20) == first[10:]
    assert third.stats().exposure == changed.stats().exposure
    different = loader_of(weights, {**lengths, "source-9": [4, 5]})
    with pytest.raises(bf.StateError, match=r"'source-9' \(number 9\) differ"):
        different.load_state_dict(state)


@pytest.mark.parametrize("how", [{"packing": "streaming"}, {"packing": "bucket", "shuffle": True}])
def test_steps_before_and_behind_a_change_are_told_and_skipped(how):
    """The audit of a step asks the plan, which knows every mix that the run has had."""
    how = {"seq_len": 9, "batch_size": 2, "epoch_tokens": 150, **how}
    loader, came = loader_of([1, 1], **how), []
    for weights in ([1, 3], [(0, {"a": 1, "b": 0}), (400, {"a": 1, "b": 1})], [1, 1]):
        for batch in itertools.islice(endless(loader), 7):
            came.append((batch.step, sorted(pieces(batch))))
        state = saved(loader)
        loader = loader_of(weights, **how)
        loader.load_state_dict(state, allow_mix_change=True)
    came += [(b.step, sorted(pieces(b))) for b in itertools.islice(endless(loader), 7)]
    assert [step for step, _ in came] == list(range(28))
    for step, want in came:
        told = loader.documents(step)
        assert sorted(zip(told.documents, told.starts, told.lengths, strict=True)) == want
    again = loader_of([1, 1], **how, skip=[24])
    again.load_state_dict(state, allow_mix_change=True)
    rest = [(b.step, sorted(pieces(b))) for b in itertools.islice(endless(again), 6)]
    assert rest == [entry for entry in came[21:] if entry[0] != 24]
