"""The tiny Llama under Accelerate, also as ranks: `python -m accelerate_runs FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import accelerate
import torch

import brimful as bf
import tiny_llama
from brimful.integrations.accelerate import prepare
from run_ranks import leave_group


class Run:
    """A training loop that can be asked for the losses of some steps at a time."""

    def __init__(self, accelerator: Any, **settings: Any) -> None:
        self.accelerator = accelerator
        self.loader = prepare(
            accelerator,
            tiny_llama.loader(accumulate=accelerator.gradient_accumulation_steps, **settings),
        )
        model = tiny_llama.model()
        self.model, self.adam = accelerator.prepare(model, tiny_llama.optimizer(model))
        self._steps = self._train()

    def losses(self, steps: int) -> list[float]:
        return [next(self._steps) for _ in range(steps)]

    def close(self) -> None:
        self._steps.close()

    def _train(self) -> Iterator[float]:
        """The loss of each step, over all ranks."""
        accelerator = self.accelerator
        summed = 0.0
        while True:
            for batch in self.loader:
                with accelerator.accumulate(self.model):
                    items = self.loader.num_items_in_batch(batch)
                    loss = self.model(**batch, use_cache=False, num_items_in_batch=items).loss
                    accelerator.backward(loss)
                    self.adam.step()
                    self.adam.zero_grad()
                summed += loss.item() / accelerator.gradient_accumulation_steps
                if accelerator.sync_gradients:
                    of_step, summed = torch.tensor(summed), 0.0
                    yield accelerator.reduce(of_step, "mean").item()


def main(folder: str) -> None:
    """Of a rank of two."""
    torch.set_num_threads(1)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    assert accelerator.num_processes == 2
    steps, stop = 24, 11
    alone = tiny_llama.loader(batch_size=4, accumulate=2, rank=0, world_size=1)
    plain = tiny_llama.plain_losses(alone, steps)
    first = Run(accelerator)
    assert worst_difference(first.losses(stop), plain[:stop]) < 1e-5
    accelerator.save_state(folder)
    accelerator.wait_for_everyone()
    first.close()
    accelerator.free_memory()
    accelerator._custom_objects.clear()
    second = Run(accelerator)
    accelerator.load_state(folder)
    assert worst_difference(second.losses(steps - stop), plain[stop:]) < 1e-5
    second.close()
    check_shares(accelerator)
    accelerator.end_training()
    leave_group()


def worst_difference(found: list[float], expected: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(found, expected, strict=True))


def check_shares(accelerator: Any) -> None:
    """Each rank gets its share, once, of a native loader and of one of torch's path."""
    native = accelerator.prepare(tiny_llama.loader(shuffle=False, batch_size=1))
    numbers = torch.cat([torch.from_numpy(batch.documents) for batch in native])
    padded = accelerator.pad_across_processes(numbers, pad_index=-1)
    seen = set(accelerator.gather(padded).tolist())
    assert seen == {-1, *range(len(native.corpus))}
    alone = tiny_llama.loader(shuffle=False, batch_size=2, rank=0, world_size=1)
    tokens = torch.tensor(sum(batch.num_tokens for batch in native))
    assert accelerator.reduce(tokens).item() == sum(batch.num_tokens for batch in alone)
    items = [torch.tensor([i]) for i in range(12)]
    delegated = accelerator.prepare(bf.DataLoader(items, batch_size=2))
    gathered = torch.cat([accelerator.gather(batch).flatten() for batch in delegated])
    assert sorted(gathered.tolist()) == list(range(12))


if __name__ == "__main__":
    main(*sys.argv[1:])
