"""transformers' Trainer on native loaders: losses of the plain loop, counts, refusals."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import brimful as bf
import tiny_llama
import trainer_runs
from brimful.integrations.transformers import Trainer
from trainer_ranks import check_two_ranks

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*pin_memory.*no accelerator is found:UserWarning",  # torch's, for its own loaders
)
RUNS = [  # steps, micro-batches of each
    (12, 1),
    (7, 4),
    pytest.param(200, 1, marks=pytest.mark.slow),
    pytest.param(60, 4, marks=pytest.mark.slow),
]


@pytest.fixture(autouse=True)
def one_thread():
    """The machine has few cores, and sums in one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("steps", "accumulate"), RUNS)
def test_losses_equal_those_of_the_plain_loop_also_after_an_interruption(
    tmp_path, steps, accumulate
):
    plain = tiny_llama.plain_losses(tiny_llama.loader(accumulate=accumulate), steps)
    stop = 5 * steps // 12
    how = {
        "max_steps": steps,
        "gradient_accumulation_steps": accumulate,
        "save_strategy": "steps",
        "save_steps": stop,
        "save_total_limit": 8,
    }
    whole = trainer_runs.trainer(tmp_path, tiny_llama.loader(accumulate=accumulate), **how)
    whole.train()
    assert trainer_runs.losses(whole) == pytest.approx(plain, abs=1e-5)
    # Everything is built anew; nothing but the checkpoint tells where to go on.
    checkpoint = tmp_path / f"checkpoint-{stop}"
    rest = trainer_runs.trainer(tmp_path, tiny_llama.loader(accumulate=accumulate), **how)
    rest.train(resume_from_checkpoint=str(checkpoint))
    assert trainer_runs.losses(rest)[stop:] == pytest.approx(plain[stop:], abs=1e-5)
    assert rest.state.global_step == steps


def test_epochs_of_a_trainer_are_whole_steps_and_leave_no_batch_out(tmp_path):
    delivered = []

    class Recording(Trainer):
        def model_inputs(self, batch):
            delivered.append((batch.epoch, batch.step, batch.micro_batch, batch.num_items))
            return super().model_inputs(batch)

    loader = tiny_llama.loader(accumulate=4)
    expected = [
        (batch.epoch, batch.step, batch.micro_batch, batch.num_items)
        for batch in islice(tiny_llama.endless(tiny_llama.loader(accumulate=4)), 60)
    ]
    args = trainer_runs.arguments(tmp_path, num_train_epochs=2, gradient_accumulation_steps=4)
    trainer = trainer_runs.quiet(Recording(tiny_llama.model(), args, train_dataset=loader))
    steps = -(-len(loader) // 4)
    assert len(loader) % 4  # so that a step is incomplete, and filled up
    trainer.train()
    assert trainer.state.global_step == 2 * steps
    assert len(delivered) == 8 * steps
    taught = [entry for entry in delivered if entry[3]]
    assert taught == expected[: len(taught)]
    assert {epoch for epoch, *_ in taught} == {0, 1}


class Given(torch.nn.Module):
    """A model whose loss is told by how many labels a batch has, and takes a divisor for it."""

    def __init__(self):
        super().__init__()
        self.summed = {9: 18.0, 3: 3.0}
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, labels, num_items_in_batch=None, **kwargs):
        count = int((labels != -100).sum())
        assert num_items_in_batch is not None
        return {"loss": self.weight * self.summed[count] / num_items_in_batch}


def test_c38_steps_have_the_mean_over_their_labels_not_the_mean_of_means(tmp_path):
    masks = [np.ones(10, np.uint8), np.array([0] * 7 + [1] * 3, np.uint8)]
    corpus = bf.open([np.ones(10, np.int64)] * 2, loss_masks=masks)
    loader = bf.DataLoader(corpus, seq_len=10, accumulate=2, num_workers=0)
    args = trainer_runs.arguments(
        tmp_path, max_steps=1, gradient_accumulation_steps=2, per_device_train_batch_size=1
    )
    trainer = trainer_runs.quiet(Trainer(Given(), args, train_dataset=loader))
    trainer.train()
    assert trainer_runs.losses(trainer) == [pytest.approx(21 / 12)]


class Means(torch.nn.Module):
    """A model that knows no divisor."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Embedding(tiny_llama.VOCAB, tiny_llama.VOCAB)

    def forward(self, input_ids, labels, position_ids=None, use_cache=None):
        logits = self.head(input_ids)[:, :-1].flatten(0, 1)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels[:, 1:].flatten())}


def test_a_mean_over_no_label_is_refused_before_it_is_taken(tmp_path):
    args = trainer_runs.arguments(tmp_path, num_train_epochs=1, gradient_accumulation_steps=4)
    trainer = Trainer(Means(), args, train_dataset=tiny_llama.loader(accumulate=4))
    with pytest.raises(bf.PlanError, match=r"mean loss is no number.*drop_last=True"):
        trainer_runs.quiet(trainer).train()
    whole = tiny_llama.loader(accumulate=4, drop_last=True)
    trainer_runs.quiet(Trainer(Means(), args, train_dataset=whole)).train()


# Evaluation


def test_evaluation_delivers_the_same_epoch_each_time_and_all_of_it(tmp_path):
    seen = []

    class Recording(Trainer):
        def prediction_step(self, model, inputs, *more, **how):
            seen.append(inputs["input_ids"])
            return super().prediction_step(model, inputs, *more, **how)

    args = trainer_runs.arguments(
        tmp_path, max_steps=4, eval_strategy="steps", eval_steps=2, per_device_eval_batch_size=2
    )
    trainer = Recording(
        tiny_llama.model(),
        args,
        train_dataset=tiny_llama.loader(),
        eval_dataset=tiny_llama.loader(seed=1),
    )
    trainer_runs.quiet(trainer).train()
    assert len(seen) % 2 == 0
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    expected = [batch["input_ids"] for batch in tiny_llama.loader(seed=1)]
    assert all(torch.equal(a, b) for a, b in zip(first, expected, strict=True))
    losses = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    assert trainer.evaluate()["eval_loss"] == pytest.approx(losses[1])
    assert trainer.predict(tiny_llama.loader(seed=1)).predictions is not None


def test_the_loss_of_evaluation_is_the_mean_over_all_labels(tmp_path):
    how = {"layout": "varlen", "batch_size": 4, "seed": 1}
    loader = tiny_llama.loader(**how)
    model = tiny_llama.model().eval()
    with torch.no_grad():
        batches = [
            (model(**batch, use_cache=False).loss.item(), batch.num_items) for batch in loader
        ]
    assert len({items for _, items in batches}) > 1
    mean = sum(loss * items for loss, items in batches) / sum(items for _, items in batches)
    for across in (True, False):
        args = trainer_runs.arguments(tmp_path, average_tokens_across_devices=across)
        trainer = trainer_runs.quiet(
            Trainer(tiny_llama.model(), args, eval_dataset=tiny_llama.loader(**how))
        )
        assert trainer.evaluate()["eval_loss"] == pytest.approx(mean, abs=1e-5)


def test_one_loader_for_training_and_evaluation_is_refused(tmp_path):
    loader = tiny_llama.loader()
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    trainer = Trainer(tiny_llama.model(), args, train_dataset=loader, eval_dataset=loader)
    with pytest.raises(bf.PlanError, match="make another one for evaluation"):
        trainer.evaluate()


# Refusals


CARRIED = ("input_ids", "shift_labels", "position_ids")


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({"rank": 1, "world_size": 2}, {}, "rank 1 of 2, and the trainer is rank 0 of 1"),
        ({"accumulate": 2}, {}, "accumulate is 2 .*gradient_accumulation_steps is 1"),
        ({"cp_size": 2, "cp_rank": 0}, {}, "leave cp_size out"),
        ({"collate_fn": list}, {}, "collate_fn makes batches of its own kind"),
        ({"fields": CARRIED}, {"label_smoothing_factor": 0.1}, "would shift them once more"),
        ({"positions": "continue"}, {}, "boundaries of documents go unseen"),
        ({}, {"auto_find_batch_size": True}, "auto_find_batch_size=True makes loaders"),
    ],
)
def test_loaders_that_contradict_the_trainer_are_refused(tmp_path, settings, arguments, words):
    args = trainer_runs.arguments(tmp_path, max_steps=1, **arguments)
    loader = tiny_llama.loader(**settings)
    trainer = Trainer(tiny_llama.model(), args, train_dataset=loader)
    with pytest.raises(bf.PlanError, match=words):
        trainer.get_train_dataloader()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"loader": {"batch_size": 3}}, "batch_size .* follows from per_device_train_batch_size"),
        ({"loader": tiny_llama.VOCAB}, "give settings by name"),
        ({"lengths": "sizes"}, "give loader= as well"),
        ({"loader": {"seq_len": 8}, "data_collator": list}, "collate by themselves"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(tmp_path, how, words):
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    with pytest.raises(bf.PlanError, match=words):
        Trainer(tiny_llama.model(), args, train_dataset=tiny_llama.documents(), **how)


def test_a_corpus_needs_settings(tmp_path):
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    corpus = bf.open(tiny_llama.documents())
    with pytest.raises(bf.PlanError, match="seq_len is missing"):
        Trainer(tiny_llama.model(), args, train_dataset=corpus).train()
    with pytest.raises(ValueError, match="requires a train_dataset"):
        Trainer(tiny_llama.model(), args, loader={"seq_len": 8}).train()


def test_an_epoch_without_a_batch_is_refused(tmp_path):
    loader = tiny_llama.loader(batch_size=512, drop_last=True)
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    trainer = Trainer(tiny_llama.model(), args, train_dataset=loader)
    with pytest.raises(bf.PlanError, match="has no batch"):
        trainer.train()


def test_datasets_and_loaders_of_torch_are_the_trainers_affair(tmp_path):
    items = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 8
    args = trainer_runs.arguments(tmp_path, max_steps=2)
    for data in (items, bf.DataLoader(items, batch_size=2, collate_fn=default)):
        trainer = trainer_runs.quiet(Trainer(tiny_llama.model(), args, train_dataset=data))
        trainer.train()
        assert len(trainer_runs.losses(trainer)) == 2
        assert trainer.evaluate(data)["eval_loss"] > 0


def default(items: Any) -> Any:
    return transformers.default_data_collator(items)


def test_labels_carried_over_cuts_reach_the_model(tmp_path):
    documents = [np.arange(1, 60)]
    loader = bf.DataLoader(
        documents, seq_len=16, fields=CARRIED, carry_label=True, num_workers=0, batch_size=4
    )
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    trainer = trainer_runs.quiet(Trainer(tiny_llama.model(), args, train_dataset=loader))
    trainer.train()
    batch = next(iter(loader))
    assert batch.num_items == 58
    with pytest.raises(bf.PlanError, match="Means is trained with would shift them once more"):
        Trainer(Means(), args, train_dataset=loader).train()
    logits = tiny_llama.model()(
        batch["input_ids"], position_ids=batch["position_ids"], use_cache=False
    ).logits
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch["shift_labels"].flatten()
    )
    assert trainer_runs.losses(trainer) == [pytest.approx(expected.item(), abs=1e-5)]


def test_flash_attention_gets_what_it_goes_by(tmp_path):
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    trainer = Trainer(tiny_llama.model(), args, train_dataset=tiny_llama.loader())
    batch = next(iter(trainer.get_train_dataloader()))
    assert "cu_seq_lens_q" not in trainer.model_inputs(batch)
    trainer.model.config._attn_implementation = "flash_attention_2"
    inputs = trainer.model_inputs(batch)
    assert torch.equal(inputs["cu_seq_lens_q"], batch.cu_seqlens)
    assert inputs["input_ids"].shape == (1, 2 * tiny_llama.SEQ_LEN)
    assert inputs["use_cache"] is False


# Ranks


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 4])
def test_two_ranks_equal_one_process_also_after_an_interruption(tmp_path, accumulate):
    steps = 15
    eval_loss = check_two_ranks(tmp_path, "transformers", steps, accumulate)
    # And one process goes on where two stopped.
    plain = tiny_llama.plain_losses(tiny_llama.loader(accumulate=accumulate), steps)
    how = {"max_steps": steps, "gradient_accumulation_steps": accumulate}
    alone = trainer_runs.trainer(tmp_path, tiny_llama.loader(accumulate=accumulate), **how)
    alone.train(resume_from_checkpoint=str(tmp_path / "checkpoint-7"))
    assert trainer_runs.losses(alone)[7:] == pytest.approx(plain[7:], abs=1e-5)
    assert alone.evaluate(trainer_runs.evaluation())["eval_loss"] == pytest.approx(
        eval_loss, abs=1e-4
    )
