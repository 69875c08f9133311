"""Accelerate beside native loaders, and around loaders of torch's path."""

from __future__ import annotations

import accelerate
import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState

import accelerate_runs
import brimful as bf
import tiny_llama
from brimful.integrations.accelerate import PreparedLoader, prepare
from run_ranks import run_ranks

RUNS = [  # steps, micro-batches of each
    (12, 1),
    (7, 4),
    pytest.param(200, 1, marks=pytest.mark.slow),
    pytest.param(60, 4, marks=pytest.mark.slow),
]


@pytest.fixture(autouse=True)
def _alone():
    """Accelerate keeps its state in classes; and the machine has few cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def accelerator(**how):
    return accelerate.Accelerator(cpu=True, **how)


@pytest.mark.parametrize(("steps", "accumulate"), RUNS)
def test_losses_equal_those_of_the_plain_loop_also_after_an_interruption(
    tmp_path, steps, accumulate
):
    plain = tiny_llama.plain_losses(tiny_llama.loader(accumulate=accumulate), steps)
    stop = 5 * steps // 12
    first = accelerate_runs.Run(accelerator(gradient_accumulation_steps=accumulate))
    assert first.losses(stop) == pytest.approx(plain[:stop], abs=1e-5)
    first.accelerator.save_state(str(tmp_path))
    assert first.losses(1) == pytest.approx(plain[stop : stop + 1], abs=1e-5)
    first.close()
    AcceleratorState._reset_state(reset_partial_state=True)
    # Everything is built anew; nothing but the checkpoint tells where to go on.
    second = accelerate_runs.Run(accelerator(gradient_accumulation_steps=accumulate))
    second.accelerator.load_state(str(tmp_path))
    assert second.losses(steps - stop) == pytest.approx(plain[stop:], abs=1e-5)
    second.close()


def test_prepare_of_the_accelerator_leaves_a_native_loader_alone():
    native = tiny_llama.loader()
    model, same = accelerator().prepare(torch.nn.Linear(1, 1), native)
    assert same is native
    assert isinstance(model, torch.nn.Linear)


def test_a_state_is_saved_without_prepare_too(tmp_path):
    first, second = accelerator(), None
    native = tiny_llama.loader()
    first.register_for_checkpointing(native)
    batches = iter(native)
    for _ in range(5):
        next(batches)
    first.save_state(str(tmp_path))
    expected = next(batches)["input_ids"]
    AcceleratorState._reset_state(reset_partial_state=True)
    second = accelerator()
    native = tiny_llama.loader()
    second.register_for_checkpointing(native)
    second.load_state(str(tmp_path))
    assert torch.equal(next(iter(native))["input_ids"], expected)


def test_the_end_of_an_epoch_is_told_and_closes_an_incomplete_step():
    accumulating = accelerator(gradient_accumulation_steps=4)
    loader = prepare(accumulating, tiny_llama.loader(accumulate=4))
    model = torch.nn.Linear(1, 1)
    synced, ends, steps = [], [], []
    for batch in loader:
        with accumulating.accumulate(model):
            synced.append(accumulating.sync_gradients)
            ends.append(accumulating.gradient_state.end_of_dataloader)
            steps.append(batch.step)
    assert len(synced) == len(loader)
    assert len(synced) % 4  # the last step is incomplete, or nothing is shown here
    changes = [a != b for a, b in zip(steps, [*steps[1:], -1], strict=True)]
    assert synced == changes
    assert ends == [False] * (len(ends) - 1) + [True]
    assert not accumulating.gradient_state.in_dataloader


def test_the_end_is_told_after_resuming_in_an_epoch_and_after_a_break():
    one = accelerator()
    loader = prepare(one, tiny_llama.loader())
    for _ in loader:
        break
    state = loader.loader.state_dict()
    fresh = prepare(one, tiny_llama.loader(), checkpoint=False)
    fresh.loader.load_state_dict(state)
    for wanted in (len(loader) - 1, len(loader)):
        ends = [one.gradient_state.end_of_dataloader for _ in fresh]
        assert ends == [False] * (len(ends) - 1) + [True]
        assert abs(len(ends) - wanted) <= 2  # epochs differ by a batch or two
    assert not one.gradient_state.in_dataloader


def test_c38_steps_have_the_mean_over_their_labels_not_the_mean_of_means():
    tokens = [np.ones(10, np.int64), np.ones(10, np.int64)]
    masks = [np.ones(10, np.uint8), np.array([0] * 7 + [1] * 3, np.uint8)]
    corpus = bf.open(tokens, loss_masks=masks)
    accumulating = accelerator(gradient_accumulation_steps=2)
    loader = prepare(accumulating, bf.DataLoader(corpus, seq_len=10, accumulate=2, num_workers=0))
    losses = {9: 18.0, 3: 3.0}  # summed, by how many labels
    weight = torch.ones((), requires_grad=True)
    for batch in loader:
        summed = weight * losses[batch.num_items]
        accumulating.backward(summed / loader.num_items_in_batch(batch))
    assert weight.grad.item() == pytest.approx(21 / 12)


def test_counts_of_micro_batches_that_differ_are_refused():
    with pytest.raises(bf.PlanError, match=r"accumulate is 1 .*gradient_accumulation_steps is 4"):
        prepare(accelerator(gradient_accumulation_steps=4), tiny_llama.loader())


def test_a_loader_of_other_ranks_is_refused():
    with pytest.raises(bf.PlanError, match=r"rank 1 of 2, and this process is rank 0 of 1"):
        prepare(accelerator(), tiny_llama.loader(rank=1, world_size=2))


def test_loaders_of_torch_are_left_to_the_accelerator():
    with pytest.raises(TypeError, match=r"Accelerator\.prepare serves loaders of torch"):
        prepare(accelerator(), torch.utils.data.DataLoader([1]))
    with pytest.raises(TypeError, match=r"Accelerator\.prepare serves loaders of torch"):
        prepare(accelerator(), bf.DataLoader([1]))


def test_skipping_first_batches_says_what_to_do_instead():
    one = accelerator()
    loader = prepare(one, tiny_llama.loader())
    assert isinstance(loader, PreparedLoader)
    with pytest.raises(AttributeError, match="after load_state there is nothing"):
        one.skip_first_batches(loader, 3)


def test_a_loader_of_torchs_path_is_wrapped_as_torchs_own():
    items = [torch.tensor([i]) for i in range(11)]
    ours, theirs = (
        accelerator().prepare(kind(items, batch_size=4))
        for kind in (bf.DataLoader, torch.utils.data.DataLoader)
    )
    assert type(ours) is type(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine, other)


def test_what_a_collate_fn_makes_is_moved_too():
    loader = prepare(accelerator(), tiny_llama.loader(collate_fn=lambda documents: documents[:1]))
    (document,) = next(iter(loader))
    assert (
        document.tolist()
        == next(iter(tiny_llama.loader()))["input_ids"][0][: len(document)].tolist()
    )


@pytest.mark.slow
def test_two_ranks_shard_once_and_resume(tmp_path):
    run_ranks("accelerate_runs", 2, str(tmp_path))
