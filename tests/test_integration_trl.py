"""TRL's SFTTrainer on native loaders: the losses of the plain loop, states, what TRL prepares."""

from __future__ import annotations

from itertools import islice

import datasets
import pytest
import torch

import brimful as bf
import tiny_llama
import trainer_runs
from tiny_tokenizer import tokenizer
from trainer_ranks import check_two_ranks

pytestmark = pytest.mark.filterwarnings(
    "ignore:`gradient_checkpointing` is deprecated:FutureWarning"  # TRL's own default sets it
)
RUNS = [  # steps, micro-batches of each
    (12, 1),
    (7, 4),
    pytest.param(200, 1, marks=pytest.mark.slow),
]


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """No message to TRL's makers, and one thread, whose sums have one order."""
    monkeypatch.setenv("CI", "1")
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
    }
    whole = trainer_runs.sft_trainer(tmp_path, tiny_llama.loader(accumulate=accumulate), **how)
    whole.train()
    assert trainer_runs.losses(whole) == pytest.approx(plain, abs=2e-5)
    rest = trainer_runs.sft_trainer(tmp_path, tiny_llama.loader(accumulate=accumulate), **how)
    rest.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{stop}"))
    assert trainer_runs.losses(rest)[stop:] == pytest.approx(plain[stop:], abs=2e-5)


def test_tokens_are_counted_in_varlen_batches(tmp_path):
    loader = tiny_llama.loader(layout="varlen")
    run = trainer_runs.sft_trainer(tmp_path, loader, max_steps=3)
    run.train()
    delivered = [batch.num_tokens for batch in islice(tiny_llama.loader(), 3)]
    counts = [entry["num_tokens"] for entry in run.state.log_history if "num_tokens" in entry]
    assert counts == [sum(delivered[: i + 1]) for i in range(3)]


CHATS = [
    [
        {"role": "user", "content": " ".join("abc"[: 1 + i % 3])},
        {"role": "assistant", "content": " ".join("xyz" * (1 + i % 4))},
    ]
    for i in range(40)
]


def test_what_trl_tokenizes_and_masks_is_packed_here(tmp_path):
    dataset = datasets.Dataset.from_dict({"messages": CHATS})
    run = trainer_runs.sft_trainer(
        tmp_path,
        dataset,
        data=dataset,
        made={"seq_len": 32, "num_workers": 0},
        max_steps=3,
        assistant_only_loss=True,
        eval_strategy="steps",
        eval_steps=3,
    )
    run.train()
    loader = run.get_train_dataloader()
    assert loader.loader.config.seq_len == 32
    batch = next(iter(loader))
    assert batch.num_segments > 4
    names = tokenizer()
    for row in range(2):
        ids, labels = batch["input_ids"][row], batch["labels"][row]
        taught = names.convert_ids_to_tokens(ids[labels != -100].tolist())
        assert set(taught) == {"x", "y", "z", "<end>"}
        assert torch.equal(ids[labels != -100], labels[labels != -100])
    corpus = loader.loader.corpus
    assert len(corpus) == len(CHATS)
    assert names.decode(corpus[0].tolist()) == "<user> a <end> <assistant> x y z <end>"
    assert any("eval_loss" in entry for entry in run.state.log_history)


@pytest.mark.parametrize("only", [True, False])
def test_the_mask_of_completions_is_gone_by_unless_the_trainer_is_told_not_to(tmp_path, only):
    rows = {"input_ids": [[1, 2, 3, 4]] * 8, "completion_mask": [[0, 0, 1, 1]] * 8}
    run = trainer_runs.sft_trainer(
        tmp_path,
        datasets.Dataset.from_dict(rows),
        made={"seq_len": 4, "shuffle": False},
        max_steps=1,
        completion_only_loss=only,
    )
    batch = next(iter(run.get_train_dataloader()))
    expected = [-100, -100, 3, 4] if only else [-100, 2, 3, 4]
    assert batch["labels"].tolist() == [expected] * 2


def test_loaders_evaluate_too_and_by_name(tmp_path):
    sets = {"one": tiny_llama.loader(seed=1), "two": tiny_llama.loader(seed=2)}
    run = trainer_runs.sft_trainer(tmp_path, tiny_llama.loader(), data=sets, max_steps=1)
    metrics = run.evaluate()
    assert {"eval_one_loss", "eval_two_loss"} <= set(metrics)
    again = run.evaluate(tiny_llama.loader(seed=2))
    assert again["eval_loss"] == pytest.approx(metrics["eval_two_loss"])


def test_a_collator_that_nothing_uses_is_refused(tmp_path):
    with pytest.raises(bf.PlanError, match="collate by themselves"):
        trainer_runs.sft_trainer(tmp_path, tiny_llama.loader(), collator=list, max_steps=1)


def test_a_corpus_and_settings_make_a_loader(tmp_path):
    corpus = bf.open(tiny_llama.documents())
    run = trainer_runs.sft_trainer(tmp_path, corpus, made={"seq_len": 64}, max_steps=2)
    run.train()
    assert len(trainer_runs.losses(run)) == 2


def test_c29_rows_that_trl_packed_keep_their_documents_apart(tmp_path):
    rows = {"input_ids": [[1, 2, 3, 4, 5]] * 4, "seq_lengths": [[3, 2]] * 4}
    made = {"seq_len": 5, "packing": "concat", "shuffle": False}
    run = trainer_runs.sft_trainer(
        tmp_path,
        datasets.Dataset.from_dict(rows),
        made=made,
        max_steps=1,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    batch = next(iter(run.get_train_dataloader()))
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 1]] * 2


@pytest.mark.slow
def test_two_ranks_equal_one_process_also_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    check_two_ranks(tmp_path, "trl", 12, 2)
