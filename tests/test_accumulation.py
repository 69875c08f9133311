"""Counts of an optimizer step over its micro-batches and ranks."""

import json

import numpy as np
import pytest
import torch

import brimful as bf


def batches(*items):
    return [bf.flatten([np.arange(n + 1)]) for n in items]


def test_c38_a_step_knows_its_labels_before_the_first_forward_pass():
    (step,) = bf.accumulate(iter(batches(9, 3)), 2)
    assert [batch.num_items for batch in step] == [9, 3]
    assert [batch.num_items_step for batch in step] == [12, 12]
    assert [batch.num_items_step_global for batch in step] == [12, 12]
    summed = [18.0, 3.0]
    loss = sum(s / b.num_items_step_global for s, b in zip(summed, step, strict=True))
    assert loss == 1.75


def test_the_last_step_may_be_shorter_and_none_is_empty():
    steps = list(bf.accumulate(batches(1, 2, 3, 4, 5), 2))
    assert [[batch.num_items for batch in step] for step in steps] == [[1, 2], [3, 4], [5]]
    assert [step[0].num_items_step for step in steps] == [3, 7, 5]
    assert list(bf.accumulate([], 3)) == []
    assert len(list(bf.accumulate(batches(1, 2, 3, 4), 2))) == 2


def test_batches_are_drawn_a_step_at_a_time():
    drawn = []

    def source():
        for batch in batches(1, 1, 1, 1):
            drawn.append(batch)
            yield batch

    next(bf.accumulate(source(), 2))
    assert len(drawn) == 2


def test_a_loader_with_the_same_steps_says_the_same():
    loader = bf.DataLoader(
        [np.arange(n) for n in (5, 9, 3, 8, 7, 2)], seq_len=10, accumulate=2, num_workers=0
    )
    told = [batch.num_items_step for batch in loader]
    assert len(told) > 2
    counted = [batch.num_items_step for step in bf.accumulate(loader, 2) for batch in step]
    assert counted == told


@pytest.mark.parametrize("steps", [0, -1, True, 1.5, "2", None])
def test_steps_that_are_none_are_refused(steps):
    with pytest.raises(bf.PlanError, match="steps is"):
        bf.accumulate([], steps)


def _count_on(rank, folder):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    mine = batches(9, 3) if rank == 0 else batches(4, 4)
    counts = [
        (batch.num_items_step, batch.num_items_step_global)
        for step in bf.accumulate(mine, 2)
        for batch in step
    ]
    (folder / f"rank{rank}.json").write_text(json.dumps(counts))
    torch.distributed.destroy_process_group()


def test_c38_labels_of_all_ranks_are_added_up(tmp_path):
    torch.multiprocessing.spawn(_count_on, (tmp_path,), 2)
    assert json.loads((tmp_path / "rank0.json").read_text()) == [[12, 20]] * 2
    assert json.loads((tmp_path / "rank1.json").read_text()) == [[8, 20]] * 2
