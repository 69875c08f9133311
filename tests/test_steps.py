"""Steps by their numbers: the audit of what each holds, and steps left out by `skip=`."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import all_pieces, corpus_of, mixed, pieces, same, token_counts

ORDERS: tuple[dict[str, Any], ...] = (
    {"shuffle": True},
    {"shuffle": True, "packing": "concat", "drop_last": True},
    {"packing": "best_fit", "overlong": "truncate"},
    {"shuffle": True, "balance": "attention"},
    {"packing": "bucket", "drop_last": True},
)


def make(lengths: Any, **how: Any) -> bf.DataLoader:
    corpus = lengths if isinstance(lengths, bf.Corpus) else corpus_of(lengths)
    return bf.DataLoader(corpus, **{"seq_len": 16, "window": 7, "num_workers": 0, "seed": 3, **how})


def run(loader: bf.DataLoader, epochs: int) -> list[bf.Batch]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped tokens
        return [batch for _ in range(epochs) for batch in loader]


def resumed(state: Any, lengths: Any, *, change: bool = False, **how: Any) -> bf.DataLoader:
    loader = make(lengths, **how)
    loader.load_state_dict(json.loads(json.dumps(state)), allow_batch_change=change)
    return loader


def told(loader: bf.DataLoader, step: int) -> list[tuple[int, ...]]:
    """(rank, micro_batch, row, document, start, length) of the pieces of a step."""
    found = loader.documents(step)
    columns = (found.rank, found.micro_batch, found.row, found.documents, found.starts)
    assert {column.dtype.name for column in columns} == {"int32", "int64"}
    return [tuple(map(int, entry)) for entry in zip(*columns, found.lengths, strict=True)]


def delivered(loaders: list[bf.DataLoader], epochs: int) -> dict[int, list[tuple[int, ...]]]:
    """The same of every step that the ranks deliver."""
    steps: dict[int, list[tuple[int, ...]]] = {}
    for loader in loaders:
        for batch in run(loader, epochs):
            width = next(iter(batch.values())).shape[1]
            cu = np.asarray(batch.cu_seqlens)
            entries = steps.setdefault(batch.step, [])
            for s, d in enumerate(batch.documents.tolist()):
                place = (loader.config.rank, batch.micro_batch, int(cu[s]) // width)
                if d >= 0:
                    entries.append((*place, d, int(batch.starts[s]), int(cu[s + 1] - cu[s])))
    return steps


lengths_of = st.lists(st.integers(0, 40), min_size=1, max_size=40)


@settings(max_examples=60)
@given(lengths_of, st.sampled_from(ORDERS), st.sampled_from([1, 2, 3]), st.integers(1, 2),
       st.integers(1, 2))  # fmt: skip
def test_a_step_holds_what_the_audit_says(
    lengths: list[int], how: dict[str, Any], world_size: int, batch_size: int, accumulate: int
) -> None:
    dealt = {"world_size": world_size, "batch_size": batch_size, "accumulate": accumulate, **how}
    loaders = [make(lengths, rank=rank, **dealt) for rank in range(world_size)]
    asked_before = [make(lengths, rank=0, **dealt), make(lengths, rank=world_size - 1, **dealt)]
    steps = delivered(loaders, 3)
    assert sorted(steps) == list(range(len(steps)))  # no number is left out
    for step, entries in steps.items():
        for loader in (*asked_before, loaders[0]):
            assert sorted(told(loader, step)) == sorted(entries)
    epochs = {batch.step: batch.epoch for batch in run(make(lengths, rank=0, **dealt), 3)}
    assert {step: loaders[0].documents(step).epoch for step in epochs} == epochs


def test_the_audit_names_sources_and_looks_far_ahead() -> None:
    corpus = mixed({"web": [5] * 9, "code": [7] * 4}, weights={"web": 0.5, "code": 0.5})
    loader = make(corpus, shuffle=True)
    for step in (0, 1, 40, 3):
        found = loader.documents(step)
        names = np.where(found.documents < 9, "web", "code")
        assert found.sources.tolist() == names.tolist()
        assert (found.step, found.skipped) == (step, False)
    steps = delivered([make(corpus, shuffle=True)], 20)
    assert sorted(told(loader, 40)) == sorted(steps[40])


@pytest.mark.parametrize("step", [-1, -(2**70), 2**63, 10**30, 1.0, "1", None, True])
def test_what_is_no_step_is_refused(step: Any) -> None:
    with pytest.raises(bf.PlanError, match="step is"):
        make([5] * 9).documents(step)


def test_a_run_without_a_whole_step_has_no_step_to_tell() -> None:
    with pytest.raises(bf.PlanError, match="there is no step 0"):
        make([5], batch_size=8, drop_last=True).documents(0)
    with pytest.raises(bf.PlanError, match="there is no step 3"):
        make([]).documents(3)


skips = st.lists(
    st.one_of(st.integers(0, 30), st.tuples(st.integers(0, 30), st.integers(0, 9))), max_size=6
)


def as_skip(entries: list[Any]) -> list[int | range]:
    return [e if isinstance(e, int) else range(e[0], e[0] + e[1]) for e in entries]


@settings(max_examples=80)
@given(lengths_of, st.sampled_from(ORDERS), st.sampled_from([1, 2]), st.integers(1, 3), skips)
def test_skipped_steps_are_left_out_and_counted_and_nothing_else_changes(
    lengths: list[int], how: dict[str, Any], world_size: int, accumulate: int, entries: list[Any]
) -> None:
    skip = as_skip(entries)
    numbers = {n for entry in skip for n in ([entry] if isinstance(entry, int) else entry)}
    tokens: Counter[str] = Counter()
    for rank in range(world_size):
        dealt = {"rank": rank, "world_size": world_size, "accumulate": accumulate, **how}
        whole_loader, loader = make(lengths, **dealt), make(lengths, skip=skip, **dealt)
        whole = run(whole_loader, 3)
        lengths_told, found = [], []
        for _ in range(3):
            lengths_told.append(len(loader))
            epoch = run(loader, 1)
            assert lengths_told[-1] == len(epoch)
            found += epoch
        want = [batch for batch in whole if batch.step not in numbers]
        assert [(b.step, b.micro_batch) for b in found] == [(b.step, b.micro_batch) for b in want]
        assert all(same(a, b) for a, b in zip(found, want, strict=True))
        left_out = [batch for batch in whole if batch.step in numbers]
        stats, all_stats = loader.stats(), whole_loader.stats()
        assert stats.skipped_steps == len({batch.step for batch in left_out})
        assert stats.skipped_tokens == sum(batch.num_tokens for batch in left_out)
        assert stats.skipped_documents == sum(s == 0 for _, s, _ in all_pieces(left_out))
        everyone, all_everyone = stats.all_ranks, all_stats.all_ranks
        assert everyone.tokens + everyone.skipped_tokens == all_everyone.tokens
        assert everyone.documents + everyone.skipped_documents == all_everyone.documents
        assert everyone.dropped_tokens == all_everyone.dropped_tokens
        by_source = stats.skipped["corpus"]
        assert by_source["tokens"] == everyone.skipped_tokens
        assert by_source["documents"] == everyone.skipped_documents
        tokens["rank"] += stats.skipped_tokens
        for step in {batch.step for batch in whole}:
            assert loader.documents(step).skipped == (step in numbers)
    assert tokens["rank"] == everyone.skipped_tokens  # ranks agree, and add up


@pytest.mark.filterwarnings("ignore:.*had no effect")
@settings(max_examples=60)
@given(lengths_of, st.sampled_from(ORDERS), skips, st.lists(st.integers(0, 20), max_size=4),
       st.data())  # fmt: skip
def test_c80_numbers_skips_and_counts_go_on_through_any_chain_of_saves(
    lengths: list[int], how: dict[str, Any], entries: list[Any], stops: list[int], data: Any
) -> None:
    """A global batch of six, split anew at each stop; `skip=` is given to the first loader only."""
    splits = ((1, 6, 1), (1, 1, 6), (1, 2, 3), (1, 3, 2))
    whole_loader = make(lengths, batch_size=6, skip=as_skip(entries), **how)
    wanted: dict[int, Counter[Any]] = {}
    for batch in run(whole_loader, 3):
        wanted.setdefault(batch.step, Counter()).update(pieces(batch))
    loader = make(lengths, batch_size=6, skip=as_skip(entries), **how)
    found: dict[int, Counter[Any]] = {}

    def go_on(count: int | None) -> None:
        while count is None or count > 0:
            if loader.state_dict()["cursor"]["epoch"] >= 3:
                return
            for batch in loader:
                if batch.epoch >= 3:
                    return
                found.setdefault(batch.step, Counter()).update(pieces(batch))
                count = None if count is None else count - 1
                if count == 0:
                    return

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped tokens, and of a state that ends the run
        for stop in stops:
            go_on(stop)
            state = loader.state_dict()
            assert state["step"] is not None
            _, batch_size, accumulate = data.draw(st.sampled_from(splits))
            split = {"batch_size": batch_size, "accumulate": accumulate}
            loader = resumed(state, lengths, **split, **how)
        go_on(None)
    assert found == wanted
    if loader.state_dict()["cursor"] == whole_loader.state_dict()["cursor"]:
        got, want = loader.stats().all_ranks, whole_loader.stats().all_ranks
        assert got.skipped_steps == want.skipped_steps
        assert (got.tokens, got.skipped_tokens) == (want.tokens, want.skipped_tokens)
        assert loader.stats().skipped == whole_loader.stats().skipped


def test_the_skip_of_a_state_and_that_of_a_loader_are_united() -> None:
    lengths = [16] * 40
    first = make(lengths, skip=(2, 30))
    batches = iter(first)
    assert [next(batches).step for _ in range(4)] == [0, 1, 3, 4]
    state = first.state_dict()
    assert state["skip"] == [[2, 3], [30, 31]]
    second = resumed(state, lengths, skip=[range(6, 8), 2])
    assert second.state_dict()["skip"] == [[2, 3], [6, 8], [30, 31]]
    assert [batch.step for batch in second][:4] == [5, 8, 9, 10]
    assert second.stats().all_ranks.skipped_steps == 4
    with pytest.warns(UserWarning, match=r"skip: 2 steps of it began before .* at step 5"):
        third = resumed(state, lengths, skip=(1, 4, 5))
    assert [batch.step for batch in third][:2] == [6, 7]
    assert not third.documents(4).skipped
    assert third.documents(5).skipped


def test_a_step_that_has_begun_is_finished() -> None:
    lengths = [16] * 12
    first = make(lengths, accumulate=4)
    next(iter(first))
    state = first.state_dict()
    with pytest.warns(UserWarning, match="1 step of it"):
        second = resumed(state, lengths, accumulate=4, skip=range(2))
    assert [(b.step, b.micro_batch) for b in second][:4] == [(0, 1), (0, 2), (0, 3), (2, 0)]


def test_numbers_go_on_where_the_global_batch_changes() -> None:
    lengths = [16] * 40
    loader, steps, seen = make(lengths, batch_size=4, shuffle=True), [], Counter()
    for change in (None, 3, 2, 5):
        if change:
            state = loader.state_dict()
            loader = resumed(state, lengths, batch_size=change, shuffle=True, change=True)
            origin = state["step"]
            assert loader.state_dict()["step"] == origin
            with pytest.raises(bf.PlanError, match=f"the global batch changed at step {origin}"):
                loader.documents(origin - 1)
        told_ahead = {step: Counter(e[3:] for e in told(loader, step))
                      for step in range(len(steps), len(steps) + 4)}  # fmt: skip
        for _, batch in zip(range(2), loader, strict=False):
            steps.append(batch.step)
            assert Counter(pieces(batch)) == told_ahead[batch.step]
            seen.update(token_counts(pieces(batch)))
    assert steps == list(range(8))
    assert max(seen.values()) == 1
    later = resumed(loader.state_dict(), lengths, batch_size=5, shuffle=True)
    rest = run(later, 2)
    assert [batch.step for batch in rest] == list(range(8, 8 + len(rest)))
    assert all(Counter(pieces(b)) == Counter(e[3:] for e in told(later, b.step)) for b in rest)
    with pytest.raises(bf.PlanError, match="the global batch changed at step"):
        later.documents(1)


def test_numbers_go_on_where_drop_last_changes() -> None:
    lengths = [16] * 10
    first = make(lengths, batch_size=4)
    steps = [batch.step for batch in run(first, 1)]
    second = resumed(first.state_dict(), lengths, batch_size=4, drop_last=True)
    steps += [batch.step for batch in run(second, 2)]
    assert steps == [0, 1, 2, 3, 4, 5, 6]
    assert second.documents(6).epoch == 2


def test_a_step_is_counted_only_when_it_is_asked_for() -> None:
    loader = make([16] * 10, batch_size=4)
    next(iter(loader))
    assert next(iter(loader)).epoch == 1
    state = loader.state_dict()
    assert state["step"] is None  # epoch 0 was left early, and nobody knows its length
    assert next(iter(resumed(state, [16] * 10, batch_size=4))).step == 4
    assert next(iter(loader)).step == 6
    assert loader.state_dict()["step"] == 7


def test_a_batch_in_another_process_knows_its_step() -> None:
    loader = make([16] * 10, batch_size=4)
    batch = run(loader, 2)[-1]
    for again in (pickle.loads(pickle.dumps(batch)), copy.copy(batch), batch.to("cpu")):
        assert (again.step, again.epoch, again.micro_batch) == (5, 1, 0)
        assert same(again, batch)


def test_set_epoch_keeps_the_numbers_of_the_run() -> None:
    loader = make([16] * 10, batch_size=4, skip=(6,))
    loader.set_epoch(2)
    assert len(loader) == 2
    for _ in range(2):
        assert [batch.step for batch in loader] == [7, 8]


def test_all_of_an_epoch_may_be_skipped() -> None:
    loader = make([16] * 10, skip=range(10))
    assert len(loader) == 0
    assert [batch.step for _ in range(2) for batch in loader] == list(range(10, 20))
    assert loader.stats().skipped_documents == 10


def test_a_bad_document_is_named_with_its_step() -> None:
    docs = [np.full(16, i) for i in range(10)]
    docs[7][3] = -1
    loader = make(bf.open(docs), batch_size=2, skip=(0,))
    with pytest.warns(UserWarning, match="document 7"):
        batches = [*loader, *loader]
    assert [(bad.epoch, bad.step) for bad in loader.bad_documents] == [(0, 3), (1, 8)]
    assert [batch.step for batch in batches if batch.num_tokens < 32] == [3, 8]


@pytest.mark.parametrize(
    "skip", [-1, "3", 1.5, [True], [(1, 2)], range(-2, 3), [2**62], range(0, 10**9, 3), [None]]
)
def test_what_names_no_steps_is_refused(skip: Any) -> None:
    with pytest.raises(bf.PlanError, match="skip"):
        make([5] * 9, skip=skip)


def test_steps_may_be_named_in_many_ways() -> None:
    for skip in (3, [3], {3}, np.array([3]), range(3, 4), (range(3, 3), np.int32(3), 3)):
        assert make([5] * 9, skip=skip).state_dict()["skip"] == [[3, 4]]
    assert make([5] * 9, skip=range(0, 9, 4)).state_dict()["skip"] == [[0, 1], [4, 5], [8, 9]]
    assert make([5] * 9, skip=range(5, 2, -1)).state_dict()["skip"] == [[3, 6]]
    assert make([5] * 9, skip=[0, range(10**12)]).state_dict()["skip"] == [[0, 10**12]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 4}, "cannot be of one run"),
        ({"step": -1}, "state.step"),
        ({"step": "2"}, "state.step"),
        ({"skip": None}, "'skip'"),
        ({"skip": [[3]]}, "two step numbers"),
        ({"skip": [[3, 1]]}, "ends before it begins"),
        ({"skip": [[-3, 1]]}, "skip"),
        ({"numbered_from": 3}, "numbered_from"),
        ({"numbered_from": {"step": 9}}, "cursor|drop_last"),
    ],
)
def test_c83_a_state_with_other_numbers_is_refused(change: dict[str, Any], message: str) -> None:
    loader = make([16] * 10)
    for _ in zip(range(3), loader, strict=False):
        pass
    state = json.loads(json.dumps(loader.state_dict())) | change
    fresh = make([16] * 10)
    with pytest.raises(bf.StateError, match=message):
        fresh.load_state_dict(state)
    assert [batch.step for batch in fresh] == list(range(10))  # nothing was changed


def test_a_numbering_from_elsewhere_is_refused() -> None:
    loader = make([16] * 10)
    next(iter(loader))
    for place in ({"bin": 5}, {"step_bins": 1}, {"step": 1}, {"epoch": 1}, {"window": 10**6}):
        state = json.loads(json.dumps(loader.state_dict()))
        state["numbered_from"]["cursor"] |= place
        with pytest.raises(bf.StateError):
            make([16] * 10).load_state_dict(state)


def test_a_far_step_costs_what_it_must_and_ctrl_c_ends_the_question() -> None:
    loader = make(bf.open(np.zeros((20_000, 8), np.int32)), shuffle=True, window=50)
    assert loader.documents(3).epoch == 0
    assert loader._steps.known_before(1) is None  # a step near by needs no whole epoch
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            loader.documents(2**62)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert loader.documents(4).epoch == 0


def test_c78_a_window_of_documents_is_no_hidden_state(tmp_path: Path) -> None:
    """A state taken in the middle of a window goes on alike in the same loader and elsewhere."""
    lengths, how = [4] * 200, {"shuffle": True, "window": 100, "seq_len": 4}
    whole = all_pieces(make(lengths, **how))
    loader = make(lengths, **how)
    first = [pieces(batch)[0] for _, batch in zip(range(20), loader, strict=False)]
    state = json.dumps(loader.state_dict())
    loader.load_state_dict(json.loads(state))
    here = all_pieces(loader)
    (tmp_path / "state.json").write_text(state)
    program = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_steps import all_pieces, make
loader = make({lengths!r}, **{how!r})
loader.load_state_dict(json.load(open({str(tmp_path / "state.json")!r})))
print(json.dumps(all_pieces(loader)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    elsewhere = [tuple(piece) for piece in json.loads(done.stdout)]
    assert first + here == first + elsewhere == whole
    assert len({document for document, _, _ in whole}) == 200


def test_c82_a_state_is_small_however_many_documents_there_are(tmp_path: Path) -> None:
    path = tmp_path / "tokens.bin"
    with path.open("wb") as file:
        file.truncate(10_000_000 * 8 * 2)
    tokens = np.memmap(path, np.uint16, "r").reshape(10_000_000, 8)
    loader = bf.DataLoader(bf.open(tokens), seq_len=64, shuffle=True, num_workers=0)
    sizes = []
    for _, batch in zip(range(50), loader, strict=False):
        state = loader.state_dict()
        assert state["step"] == batch.step + 1
        sizes.append(len(json.dumps(state)))
    assert max(sizes) < 2048
