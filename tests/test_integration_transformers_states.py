"""States of native loaders in checkpoints of a Trainer, whenever they are saved."""

from __future__ import annotations

import json
from itertools import islice

import pytest
import torch
import transformers

import brimful as bf
import tiny_llama
import trainer_runs
from brimful.integrations.transformers import LoaderState

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*pin_memory.*no accelerator is found:UserWarning",  # torch's, for its own loaders
)


@pytest.fixture(autouse=True)
def one_thread():
    """The machine has few cores, and sums in one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_checkpoint_has_the_state_of_the_last_trained_step(tmp_path):
    how = {"max_steps": 3, "save_strategy": "steps", "save_steps": 3}
    trainer = trainer_runs.trainer(tmp_path, tiny_llama.loader(), **how)
    trainer.train()
    state = json.loads((tmp_path / "checkpoint-3" / "trainer_state.json").read_text())
    kept = state["stateful_callbacks"]["LoaderState"]["attributes"]["loader_state"]
    assert kept["step"] == 3  # the next one
    loader = tiny_llama.loader(batch_size=1, accumulate=2)  # the same global batch
    loader.load_state_dict(kept)
    assert next(iter(loader)).step == 3


class SaveInStep(transformers.TrainerCallback):
    """Saves a checkpoint in the middle of a step, as on a signal that ends a job."""

    def __init__(self, event):
        self.trainer = None
        setattr(self, event, self.save)

    def save(self, args, state, control, **kwargs):
        if state.global_step == 3:
            self.trainer._save_checkpoint(self.trainer.model, trial=None)
            control.should_training_stop = True


@pytest.mark.parametrize("event", ["on_step_begin", "on_pre_optimizer_step", "on_step_end"])
def test_a_checkpoint_saved_in_a_step_goes_on_with_that_step(tmp_path, event):
    plain = tiny_llama.plain_losses(tiny_llama.loader(accumulate=2), 6)
    how = {"max_steps": 6, "gradient_accumulation_steps": 2}
    callback = SaveInStep(event)
    first = trainer_runs.trainer(tmp_path, tiny_llama.loader(accumulate=2), **how)
    first.add_callback(callback)
    callback.trainer = first
    first.train()
    rest = trainer_runs.trainer(tmp_path, tiny_llama.loader(accumulate=2), **how)
    rest.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert trainer_runs.losses(rest)[-3:] == pytest.approx(plain[3:], abs=1e-5)


def test_a_checkpoint_saved_at_the_end_of_an_epoch_goes_on_with_the_next_one(tmp_path):
    settings = {"batch_size": 8, "accumulate": 2}
    plain = tiny_llama.plain_losses(tiny_llama.loader(**settings), 12)
    how = {"num_train_epochs": 3, "gradient_accumulation_steps": 2, "save_strategy": "epoch"}
    whole = trainer_runs.trainer(tmp_path, tiny_llama.loader(**settings), **how)
    whole.train()
    steps = whole.state.global_step
    assert trainer_runs.losses(whole) == pytest.approx(plain[:steps], abs=1e-5)
    for epoch in (1, 2):
        at = steps // 3 * epoch
        rest = trainer_runs.trainer(tmp_path, tiny_llama.loader(**settings), **how)
        rest.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{at}"))
        assert trainer_runs.losses(rest)[at:] == pytest.approx(plain[at:steps], abs=1e-5)


def test_random_numbers_of_the_model_go_on_too(tmp_path):
    how = {"max_steps": 6, "save_strategy": "steps", "save_steps": 2}
    runs = []
    for resume in (None, str(tmp_path / "checkpoint-2"), str(tmp_path / "checkpoint-4")):
        trainer = trainer_runs.trainer(tmp_path, tiny_llama.loader(batch_size=16), **how)
        trainer.model.config.attention_dropout = 0.3
        for layer in trainer.model.model.layers:
            layer.self_attn.attention_dropout = 0.3
        trainer.train(resume_from_checkpoint=resume)
        runs.append(trainer_runs.losses(trainer))
    assert runs[1] == pytest.approx(runs[0], abs=1e-6)
    assert runs[2] == pytest.approx(runs[0], abs=1e-6)
    assert runs[0] != pytest.approx(tiny_llama.plain_losses(tiny_llama.loader(batch_size=16), 6))


def test_a_checkpoint_without_a_state_is_refused_or_its_epoch_begun_anew(tmp_path):
    how = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    trainer = trainer_runs.trainer(tmp_path, tiny_llama.loader(), **how)
    trainer.remove_callback(LoaderState)
    trainer.train()
    checkpoint = str(tmp_path / "checkpoint-2")
    trainer = trainer_runs.trainer(tmp_path, tiny_llama.loader(), **how)
    with pytest.raises(bf.StateError, match="step 2 has no state of a brimful loader"):
        trainer.train(resume_from_checkpoint=checkpoint)
    loader = tiny_llama.loader()
    trainer = trainer_runs.trainer(tmp_path, loader, ignore_data_skip=True, **how)
    trainer.train(resume_from_checkpoint=checkpoint)
    assert loader.state_dict()["step"] == 2  # of two that were trained here


def test_another_global_batch_goes_on_with_a_state_that_is_loaded_by_hand(tmp_path):
    how = {"max_steps": 3, "save_strategy": "steps", "save_steps": 3}
    trainer_runs.trainer(tmp_path, tiny_llama.loader(), **how).train()
    checkpoint = tmp_path / "checkpoint-3"
    loader = tiny_llama.loader(batch_size=3)
    larger = {"max_steps": 5, "per_device_train_batch_size": 3}
    trainer = trainer_runs.trainer(tmp_path, loader, **larger)
    with pytest.raises(bf.StateError, match="bins_per_step: 2 in the state, 3 here"):
        trainer.train(resume_from_checkpoint=str(checkpoint))
    saved = json.loads((checkpoint / "trainer_state.json").read_text())
    kept = saved["stateful_callbacks"]["LoaderState"]["attributes"]["loader_state"]
    loader.load_state_dict(kept, allow_batch_change=True)
    trainer = trainer_runs.trainer(tmp_path, loader, ignore_data_skip=True, **larger)
    trainer.train(resume_from_checkpoint=str(checkpoint))
    told = loader.records()
    whole = tiny_llama.loader()
    rows = [batch["input_ids"] for batch in islice(whole, 6)][3:]
    again = tiny_llama.loader(batch_size=3)
    again.load_state_dict(kept, allow_batch_change=True)
    assert torch.equal(torch.cat(rows), torch.cat([b["input_ids"] for b in islice(again, 2)]))
    assert [record.step for record in told] == [3, 4]


def test_states_of_callbacks_may_be_restored_by_the_trainer_too(tmp_path):
    how = {
        "max_steps": 6,
        "save_strategy": "steps",
        "save_steps": 4,
        "restore_callback_states_from_checkpoint": True,
    }
    whole = trainer_runs.trainer(tmp_path, tiny_llama.loader(), **how)
    whole.train()
    rest = trainer_runs.trainer(tmp_path, tiny_llama.loader(), **how)
    rest.train(resume_from_checkpoint=True)
    rest.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert trainer_runs.losses(rest)[4:] == pytest.approx(trainer_runs.losses(whole)[4:], abs=1e-5)
