"""States that a loader refuses, or takes and says what becomes of them."""

import pytest

import brimful as bf
from resuming import make, saved
from truth import all_pieces, corpus_of, mixed, pieces


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"corpus": corpus_of([4] * 9)}, "documents"),
        ({"corpus": corpus_of([4] * 9 + [5])}, "hash of lengths"),
        ({"corpus": mixed({"a": [4] * 10})}, "name"),
        ({"corpus": mixed({"a": [4] * 5, "b": [4] * 5})}, "sources"),
        ({"seq_len": 5}, "seq_len"),
        ({"seed": 4}, "seed"),
        ({"packing": "concat"}, "packing"),
        ({"overlong": "drop"}, "overlong"),
        ({"window": 8}, "window"),
        ({"shuffle": False}, "shuffle"),
        ({"balance": "attention"}, "balance"),
        ({"packing": "bucket"}, "packing"),
        ({"max_segments": 3}, "max_segments"),
    ],
)
def test_c83_a_state_of_another_run_is_refused_with_the_differing_fields(change, field):
    base = {"corpus": corpus_of([4] * 10), "seq_len": 4}
    loader = make(**base)
    next(iter(loader))
    state = saved(loader)
    other = make(**{**base, **change})
    with pytest.raises(bf.StateError, match=field):
        other.load_state_dict(state)
    assert saved(other)["cursor"]["epoch"] == saved(other)["cursor"]["bin"] == 0
    with pytest.warns(UserWarning, match=field):
        other.load_state_dict(state, force=True)
    assert all_pieces(other) == all_pieces(make(**{**base, **change}))


@pytest.mark.filterwarnings("ignore:the state belongs")
def test_a_fresh_start_by_force_counts_from_nothing():
    state = saved(make([4] * 10, seq_len=8))
    loader = make([4] * 10, seq_len=4)
    list(loader)
    loader.load_state_dict(state, force=True)
    assert saved(loader)["all_ranks"] == saved(make([4] * 10, seq_len=4))["all_ranks"]
    assert loader.stats().tokens == 40  # this rank's own, since it was made
    list(loader)
    assert loader.stats().exposure["corpus"]["tokens"] == loader.stats().all_ranks.tokens == 40
    assert loader.stats().tokens == 80


def test_what_an_iterator_from_before_delivers_is_none_of_the_loaded_run():
    loader = make([4] * 10, seq_len=4, num_workers=0)
    before = iter(loader)
    next(before)
    state = saved(loader)
    next(before)
    loader.load_state_dict(state)
    list(before)  # its end too
    assert saved(loader) == state
    list(loader)
    assert saved(loader)["all_ranks"]["tokens"] == 40


def test_c83_a_state_that_was_never_used_is_pointed_out():
    loader = make([4] * 10)
    state = saved(loader)
    loader.load_state_dict(state)
    with pytest.warns(UserWarning, match="had no effect"):
        del loader
    loader = make([4] * 10)
    loader.load_state_dict(state)
    list(loader)
    del loader


def test_another_global_batch_must_be_asked_for():
    lengths = [4] * 40
    loader = make(lengths, seq_len=4, batch_size=4)
    iterator = iter(loader)
    first = [pieces(next(iterator)) for _ in range(3)]
    state = saved(loader)
    other = make(lengths, seq_len=4, batch_size=3)
    with pytest.raises(bf.StateError, match="bins_per_step: 4 in the state, 3 here"):
        other.load_state_dict(state)
    other.load_state_dict(state, allow_batch_change=True)
    rest = [pieces(b) for b in other]
    assert [len(p) for p in rest] == [3] * 9 + [1]
    whole = all_pieces(make(lengths, seq_len=4))
    assert [p for batch in first + rest for p in batch] == whole


@pytest.mark.parametrize("where", ["all_ranks", "exposure"])
@pytest.mark.filterwarnings("ignore:.*tokens were dropped", "ignore:.*had no effect")
def test_a_state_without_the_losses_of_its_own_step_is_refused_and_changes_nothing(where):
    how = {"lengths": [16, 40] * 20, "packing": "best_fit", "overlong": "drop"}
    loader = make(accumulate=12, **how)
    next(iter(loader))
    state = saved(loader)
    assert state["all_ranks"]["dropped_tokens"] > 0
    zero = 0 if where == "all_ranks" else [0]
    state[where] |= {"dropped_tokens": zero}
    other = make(accumulate=5, **how)
    before = saved(other)
    with pytest.raises(bf.StateError, match="fewer documents and tokens lost"):
        other.load_state_dict(state, allow_batch_change=True)
    assert saved(other) == before


# The rule of a corpus of one source, as a change of the mix has it.
RULE = [[], "tokens", "repeat", None, None]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.pop("cursor"),
        lambda s: s.pop("fingerprint"),
        lambda s: s.update(version=99),
        lambda s: s["cursor"].update(bin=-1),
        lambda s: s["cursor"].update(bin=0),
        lambda s: s["cursor"].update(bin=2),
        lambda s: s["cursor"].update(bin=10**6),
        lambda s: s.update(bins_per_step=2) or s["cursor"].update(step_bins=1),
        lambda s: s["cursor"].update(window=10**6),
        lambda s: s["cursor"].update(epoch=2**63),
        lambda s: s["cursor"].update(epoch=2**62),
        lambda s: s["cursor"].update(epoch="0"),
        lambda s: s["cursor"].update(step_bins=1),
        lambda s: s["cursor"].update(order_step=1),
        lambda s: s["cursor"].update(order_phase=1),
        lambda s: s["cursor"].pop("order_phase"),
        lambda s: s["cursor"].update(step_bins=2**62),
        lambda s: s.update(bins_per_step=0),
        lambda s: s.update(bins_per_step=2**62),
        lambda s: s["fingerprint"].update(sources=[5]),
        lambda s: s["all_ranks"].pop("tokens"),
        lambda s: s["all_ranks"].update(tokens=True),
        lambda s: s.update(exposure=[]),
        lambda s: s["exposure"].update(tokens=[1, 2]),
        lambda s: s["exposure"].update(tokens=["1"]),
        lambda s: s["exposure"].update(tokens=[-1]),
        lambda s: s["exposure"].update(tokens=[2**70]),
        lambda s: s["exposure"].update(tokens="AAAA"),
        lambda s: s["exposure"].pop("effective_tokens"),
        lambda s: s.update(mix_changes=None),
        lambda s: s.update(mix_changes=[1]),
        lambda s: s.update(mix_changes=[[0, 0, RULE]]),
        lambda s: s.update(mix_changes=[[0, 1, []]]),
        lambda s: s.update(mix_changes=[[0, 1]]),
        lambda s: s.update(mix_changes=[[9**9, 3, RULE]]),
        lambda s: s["fingerprint"].update(weights=5),
        lambda s: s["fingerprint"].update(weights=[[0, [float("nan")]]]),
        lambda s: s["fingerprint"].update(epoch_tokens="1"),
        lambda s: s["fingerprint"].update(when_dry=None),
    ],
)
def test_a_spoilt_state_is_refused_and_changes_nothing(spoil):
    loader = make([4] * 10)
    next(iter(loader))
    state = saved(loader)
    spoil(state)
    other = make([4] * 10)
    before = saved(other)
    with pytest.raises(bf.StateError):
        other.load_state_dict(state)
    assert saved(other) == before
    with pytest.raises(bf.StateError):
        other.load_state_dict("state")


@pytest.mark.parametrize("allow_batch_change", [False, True])
@pytest.mark.parametrize(("delivered", "rest"), [(10, 10), (15, 10), (7, 4)])
def test_a_step_with_more_bins_delivered_than_its_epoch_has_is_refused(
    delivered, rest, allow_batch_change
):
    loader = make([16] * 10, accumulate=16)
    state = saved(loader)
    state["cursor"] |= {"step_bins": delivered, "bin": 6 if rest == 4 else 0}
    other = make([16] * 10, accumulate=15 if allow_batch_change else 16)
    with pytest.raises(bf.StateError, match=f"{delivered} bins are delivered.* {rest} bins from"):
        other.load_state_dict(state, allow_batch_change=allow_batch_change)


def test_an_epoch_set_against_a_loaded_state_is_pointed_out():
    loader = make([4] * 10, seq_len=4)
    next(iter(loader))
    resumed = make([4] * 10, seq_len=4)
    resumed.load_state_dict(saved(loader))
    resumed.set_epoch(3)
    with pytest.warns(UserWarning, match=r"set_epoch\(3\).*stands in \(0\)"):
        assert len(all_pieces(resumed)) == 10
