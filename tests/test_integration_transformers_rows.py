"""Loaders that a Trainer makes: its arguments, packed rows of others, masks of chat templates."""

from __future__ import annotations

from typing import Any

import datasets
import numpy as np
import pytest
import torch

import brimful as bf
import tiny_llama
import trainer_runs
from brimful.integrations.transformers import Trainer

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


def packed_rows(**columns: Any) -> datasets.Dataset:
    row = {"input_ids": [[1, 2, 3, 4, 5]] * 4, "seq_lengths": [[3, 2]] * 4}
    return datasets.Dataset.from_dict(row | columns)


def positions_of(dataset: Any, tmp_path: Any, **how: Any) -> list[list[int]]:
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    trainer = Trainer(
        tiny_llama.model(),
        args,
        train_dataset=dataset,
        loader={"seq_len": 5, "packing": "concat", "shuffle": False},
        **how,
    )
    batch = next(iter(trainer.get_train_dataloader()))
    return trainer.model_inputs(batch)["position_ids"].tolist()


def test_c29_rows_packed_elsewhere_keep_their_documents_apart(tmp_path):
    assert positions_of(packed_rows(), tmp_path) == [[0, 1, 2, 0, 1]] * 2
    renamed = packed_rows().rename_column("seq_lengths", "sizes")
    assert positions_of(renamed, tmp_path, lengths="sizes") == [[0, 1, 2, 0, 1]] * 2


def test_c29_a_missing_column_of_lengths_is_named(tmp_path):
    stripped = packed_rows().remove_columns("seq_lengths")
    with pytest.raises(bf.FormatError, match="no column 'seq_lengths' with the lengths"):
        positions_of(stripped, tmp_path, lengths="seq_lengths")
    with pytest.raises(bf.FormatError, match="'sizes' names a column of a Dataset"):
        positions_of([np.arange(5)], tmp_path, lengths="sizes")


def test_c29_columns_that_the_trainer_strips_for_a_collator_are_named_by_it(tmp_path):
    def collate(rows):
        return bf.flatten(rows, lengths="seq_lengths").transformers()

    for kept in (False, True):
        args = trainer_runs.arguments(tmp_path, max_steps=1, remove_unused_columns=not kept)
        trainer = Trainer(tiny_llama.model(), args, collate, train_dataset=packed_rows())
        loader = trainer.get_train_dataloader()
        if kept:
            assert next(iter(loader))["position_ids"].tolist() == [[0, 1, 2, 0, 1] * 2]
        else:
            with pytest.raises(bf.FormatError, match="row 0 has no 'seq_lengths'"):
                next(iter(loader))


def test_c29_no_positions_no_batch(tmp_path):
    loader = tiny_llama.loader(fields=("input_ids", "labels"))
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    with pytest.raises(bf.PlanError, match="position_ids are not in this batch"):
        Trainer(tiny_llama.model(), args, train_dataset=loader).train()


@pytest.mark.parametrize("lengths", [[[3, 1]], [[3, 2, 1]], [[]]])
def test_lengths_that_do_not_add_up_are_refused(tmp_path, lengths):
    dataset = packed_rows(seq_lengths=[[3, 2]] * 3 + lengths)
    with pytest.raises(bf.FormatError, match="row 3: seq_lengths add up to"):
        positions_of(dataset, tmp_path)


def test_masks_of_chat_templates_and_completions_are_loss_masks(tmp_path):
    columns = {
        "input_ids": [[1, 2, 3, 4], [5, 6, 7]],
        "assistant_masks": [[0, 1, 1, 1], [0, 1, 1]],
        "completion_mask": [[0, 1, 0, 1], [1, 1, 1]],
    }
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    settings = {"seq_len": 7, "packing": "concat", "shuffle": False}

    def labels(**how):
        dataset = datasets.Dataset.from_dict(columns | how)
        trainer = Trainer(tiny_llama.model(), args, train_dataset=dataset, loader=settings)
        return next(iter(trainer.get_train_dataloader()))["labels"].tolist()

    assert labels() == [[-100, 2, -100, 4, -100, 6, 7]]
    told = [[-100, -100, 3, 4], [5, 6, -100]]
    assert labels(labels=told) == [[-100, -100, 3, 4, -100, 6, -100]]
    parts = [[2, 2], [3]]
    assert labels(seq_lengths=parts) == [[-100, 2, -100, 4, -100, 6, 7]]
    with pytest.raises(bf.FormatError, match="row 1: completion_mask has 2, and input_ids has 3"):
        labels(completion_mask=[[1] * 4, [1] * 2])
    with pytest.raises(bf.FormatError, match="assistant_masks: type"):
        labels(assistant_masks=[["a"] * 4, ["b"] * 3])


def test_lengths_of_a_shuffled_dataset_and_labels_follow_their_rows(tmp_path):
    dataset = datasets.Dataset.from_dict(
        {
            "input_ids": [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]],
            "labels": [[-100, 2, 3, -100, 5], [6, 7, 8, 9, 10]],
            "seq_lengths": [[3, 2], [1, 4]],
        }
    ).select([1, 0])
    args = trainer_runs.arguments(tmp_path, max_steps=1)
    settings = {"seq_len": 10, "packing": "concat", "shuffle": False}
    trainer = Trainer(
        tiny_llama.model(), args, train_dataset=dataset, eval_dataset=dataset, loader=settings
    )
    batch = next(iter(trainer.get_train_dataloader()))
    assert batch["input_ids"].flatten().tolist() == [6, 7, 8, 9, 10, 1, 2, 3, 4, 5]
    assert batch.lengths.tolist() == [1, 4, 3, 2]
    labels = [-100, -100, 8, 9, 10, -100, 2, 3, -100, 5]
    assert batch["labels"].flatten().tolist() == labels
    evaluated = next(iter(trainer.get_eval_dataloader()))
    assert evaluated["labels"].flatten().tolist() == labels


def test_loaders_made_for_the_trainer_follow_its_arguments(tmp_path):
    args = trainer_runs.arguments(
        tmp_path,
        max_steps=1,
        per_device_train_batch_size=3,
        per_device_eval_batch_size=5,
        gradient_accumulation_steps=2,
        dataloader_drop_last=True,
        data_seed=11,
    )
    trainer = Trainer(
        tiny_llama.model(),
        args,
        train_dataset=bf.open(tiny_llama.documents()),
        eval_dataset={"a": tiny_llama.documents(9), "b": tiny_llama.documents(7)},
        loader={"seq_len": 64, "packing": "best_fit_decreasing"},
    )
    config = trainer.get_train_dataloader().loader.config
    assert (config.batch_size, config.accumulate, config.drop_last) == (3, 2, True)
    assert (config.seed, config.shuffle, config.packing) == (11, True, "best_fit_decreasing")
    for name in ("a", "b"):
        assert next(iter(trainer.get_eval_dataloader(name)))["input_ids"].shape[1] == 64
    assert len(trainer.get_eval_dataloader("a").dataset) == 9
