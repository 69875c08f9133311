"""torch.distributed.checkpoint of a loader in one process: it is a Stateful like any other."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.stateful import Stateful

import brimful as bf
from resuming import make, saved
from titan import Checkpointer, PerRank, TrainState
from truth import corpus_of, mixed, pieces

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")

LENGTHS = {"a": [4] * 30, "b": [5, 11] * 12, "c": [1, 2, 3] * 9}


MEGATRON: dict[str, Any] = {
    "order": "megatron",
    "num_samples": 40,
    "shuffle": False,
    "window": 16384,
}


def mixture(weights: Any = None, **mix: Any) -> bf.Corpus:
    return mixed(LENGTHS, weights=weights, **mix)


def after(loader: bf.DataLoader, batches: int) -> bf.DataLoader:
    list(islice(loader, batches))
    return loader


def kinds() -> dict[str, bf.DataLoader]:
    """Loaders whose states hold as different things as there are."""
    changed = make(corpus=mixture([0.5, 0.3, 0.2]))
    state = saved(after(changed, 3))
    changed = make(corpus=mixture([0.1, 0.1, 0.8]))
    changed.load_state_dict(state, allow_mix_change=True)
    many = mixed({f"source-{s}": [4, 7] for s in range(40)}, weights=[1.0] * 40)
    scheduled = bf.mix(
        {name: bf.open([[1] * n for n in lengths]) for name, lengths in LENGTHS.items()},
        weights=[(0, {"a": 1, "b": 1, "c": 1}), (50, {"a": 3, "b": 1, "c": 1})],
        max_passes={"c": 2},
        epoch_tokens=300,
    )
    return {
        "one source": make([4] * 9),
        "in the middle": after(make([4, 30, 9] * 9), 3),
        "mixture": after(make(corpus=mixture([0.5, 0.3, 0.2])), 3),
        "mix changed": after(changed, 2),
        "many sources": after(make(corpus=many), 2),
        "schedule": after(make(corpus=scheduled), 2),
        "skips": after(make([4] * 60, skip=(1, range(4, 6))), 4),
        "an epoch left early": after(after(make([4] * 60), 2), 2),
        "losses": after(make([4, 40] * 9, overlong="drop", drop_last=True), 3),
        "block shuffle": make([4] * 9, shuffle="block"),
        "megatron": after(make([40] * 9, **MEGATRON), 3),
    }


@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_every_state_has_the_same_keys() -> None:
    """A checkpoint is loaded by the keys of the state that it fills: another shape would miss."""
    shapes = {
        name: set(flatten_state_dict(loader.state_dict())[1].values())
        for name, loader in kinds().items()
    }
    for name, shape in shapes.items():
        assert shape == shapes["one source"], name
        assert all(isinstance(key, str) for path in shape for key in path), "a dict in a list"


CASES: dict[str, dict[str, Any]] = {
    "documents": {"lengths": [4, 30, 9, 1] * 9},
    "mixture": {"corpus": mixture([0.5, 0.3, 0.2])},
    "many sources": {
        "corpus": mixed({f"source-{s}": [4, 7] for s in range(40)}, weights=[1.0] * 40)
    },
    "megatron": {"lengths": [40] * 9, **MEGATRON},
    "skipped steps": {"lengths": [4] * 60, "skip": (1, range(4, 6)), "accumulate": 2},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("stop", [0, 1, 5])
def test_a_loader_is_saved_and_loaded_beside_a_model(tmp_path: Path, name: str, stop: int) -> None:
    how = CASES[name]
    loader, model = make(**how), torch.nn.Linear(2, 2)
    assert isinstance(loader, Stateful)
    whole = [pieces(batch) for batch in make(**how)]
    batches = iter(loader)
    assert [pieces(batch) for batch in islice(batches, stop)] == whole[:stop]
    dcp.save({"loader": loader, "model": model}, checkpoint_id=tmp_path)

    fresh, other = make(**{**how, "skip": ()}, num_workers=2), torch.nn.Linear(2, 2)
    dcp.load({"loader": fresh, "model": other}, checkpoint_id=tmp_path)
    assert saved(fresh) == saved(loader)
    assert torch.equal(model.weight, other.weight)
    assert [pieces(batch) for batch in fresh] == whole[stop:]
    assert fresh.stats().all_ranks.tokens == sum(n for batch in whole for _, _, n in batch)


@pytest.mark.parametrize("begun", [False, True])
def test_a_changed_mix_is_saved_and_loaded_into_a_loader_that_never_saw_it(
    tmp_path: Path, begun: bool
) -> None:
    first = after(make(corpus=mixture([0.5, 0.3, 0.2]), seed=5), 4)
    reference = make(corpus=mixture([0.1, 0.1, 0.8]), seed=5)
    reference.load_state_dict(saved(first), allow_mix_change=True)
    wanted = [pieces(batch) for _ in range(2) for batch in reference]

    loader = make(corpus=mixture([0.1, 0.1, 0.8]), seed=5)
    loader.load_state_dict(saved(first), allow_mix_change=True)
    found = [pieces(batch) for batch in islice(loader, 3 * begun)]
    dcp.save({"loader": loader}, checkpoint_id=tmp_path)
    loader.load_state_dict(saved(loader))  # used, so that dropping it warns of nothing
    fresh = make(corpus=mixture([0.1, 0.1, 0.8]), seed=5)
    dcp.load({"loader": fresh}, checkpoint_id=tmp_path)
    found += [pieces(batch) for batch in fresh]
    found += [pieces(batch) for batch in fresh]
    assert found[: len(wanted)] == wanted
    list(loader)


def test_another_corpus_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """torch writes what it loads into the state that it was given; it is the loader's no more."""
    loader = make([4] * 30, seed=1)
    dcp.save({"loader": loader}, checkpoint_id=tmp_path)
    other = make([4] * 31, seed=2)
    before = saved(other)
    for _ in range(2):
        with pytest.raises(bf.StateError, match=r"seed: 1 in the state, 2 here[\s\S]*documents"):
            dcp.load({"loader": other}, checkpoint_id=tmp_path)
        assert saved(other) == before
    many = make(corpus=mixed({f"{s}": [4] for s in range(40)}))
    with pytest.raises(bf.StateError, match="sources: 1 in the state, 40 here"):
        dcp.load({"loader": many}, checkpoint_id=tmp_path)


def test_a_state_may_be_written_to_without_an_effect_on_its_loader() -> None:
    for name, loader in kinds().items():
        state, before = loader.state_dict(), saved(loader)
        spoil(state)
        assert saved(loader) == before, name


def spoil(value: Any) -> None:
    """Overwrites every number and text of nested dicts and lists."""
    for key in value if isinstance(value, dict) else range(len(value)):
        if isinstance(value[key], (dict, list)):
            spoil(value[key])
        else:
            value[key] = "spoilt"


def test_flags_are_given_by_loading_a_plain_state(tmp_path: Path) -> None:
    loader = after(make([4] * 60, batch_size=6), 1)
    dcp.save({"loader": loader}, checkpoint_id=tmp_path)
    fresh = make([4] * 60, batch_size=4)
    with pytest.raises(bf.StateError, match="allow_batch_change"):
        dcp.load({"loader": fresh}, checkpoint_id=tmp_path)
    states = {"loader": fresh.state_dict()}
    dcp.load(states, checkpoint_id=tmp_path)
    fresh.load_state_dict(states["loader"], allow_batch_change=True)
    found = [piece for batch in fresh for piece in pieces(batch)]
    assert 0 < len(found) == 60 - loader.stats().documents


def test_a_checkpoint_in_the_background_is_of_the_moment_it_was_asked_for(tmp_path: Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
    try:
        loader = make([4] * 60)
        batches = iter(loader)
        list(islice(batches, 4))
        wanted = saved(loader)
        writing = dcp.async_save({"loader": loader}, checkpoint_id=tmp_path / "checkpoint")
        rest = [pieces(batch) for batch in batches]
        writing.result()
        fresh = make([4] * 60)
        dcp.load({"loader": fresh}, checkpoint_id=tmp_path / "checkpoint")
        assert saved(fresh) == wanted
        assert [pieces(batch) for batch in fresh] == rest
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("wrap", [lambda loader: loader, PerRank], ids=["itself", "per rank"])
def test_a_trainer_that_keeps_a_dict_of_states_saves_every_step_and_goes_on(
    tmp_path: Path, wrap: Any
) -> None:
    how: dict[str, Any] = {"lengths": [4, 9, 7] * 20, "batch_size": 2, "accumulate": 2}

    def trainer(loader: bf.DataLoader) -> tuple[TrainState, Checkpointer, torch.nn.Module]:
        model, step = torch.nn.Linear(1, 1), TrainState()
        states = {"model": model, "dataloader": wrap(loader), "train_state": step}
        return step, Checkpointer(tmp_path, states), model

    whole = [pieces(batch) for batch in make(**how)]
    loader = make(**how)
    step, checkpointer, model = trainer(loader)
    batches = iter(loader)
    found = []
    for _ in range(4):
        found += [pieces(batch) for batch in islice(batches, 2)]
        step.step += 1
        checkpointer.save(step.step)
    loader = make(**how)
    step, checkpointer, again = trainer(loader)
    assert checkpointer.load() == step.step == 4
    assert torch.equal(again.weight, model.weight)  # type: ignore[arg-type]
    assert found + [pieces(batch) for batch in loader] == whole


def test_loaders_in_one_checkpoint_keep_apart(tmp_path: Path) -> None:
    train, held_out = after(make(corpus=corpus_of([4] * 40)), 5), make(corpus=corpus_of([9] * 10))
    dcp.save({"train": train, "held_out": held_out}, checkpoint_id=tmp_path)
    fresh = {
        "train": make(corpus=corpus_of([4] * 40)),
        "held_out": make(corpus=corpus_of([9] * 10)),
    }
    dcp.load(fresh, checkpoint_id=tmp_path)
    assert saved(fresh["train"]) == saved(train)
    assert saved(fresh["held_out"]) == saved(held_out)
    left = {name: sum(len(pieces(b)) for b in loader) for name, loader in fresh.items()}
    assert left == {"train": 40 - train.stats().documents, "held_out": 10}
