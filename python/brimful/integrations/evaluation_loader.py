"""One epoch of a native loader, always the same, for trainers that evaluate; and its mean loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from brimful.batch import Batch
from brimful.loader import DataLoader


class EvaluationLoader:
    """Yields inputs of the model. A dummy row of a rank has no labels, and no weight in the mean.

    Attributes:
        dataset: the corpus: trainers report its length.
    """

    def __init__(self, loader: DataLoader, convert: Callable[[Batch], dict[str, Any]]) -> None:
        self.dataset = loader.corpus
        self._loader = loader
        self._convert = convert
        self._batch: Batch | None = None
        self._sums: list[Any] = []  # of losses by their labels, tensors on their device
        self._items = 0
        loader.set_epoch(0)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._loader:
            self._batch = batch
            yield self._convert(batch)

    def note(self, loss: Any, *, of_all_ranks: bool) -> None:
        """Takes in the loss of the batch that was yielded last.

        Args:
            loss: a tensor of one number, the mean over the labels of this rank's batch; or, with
                `of_all_ranks`, what has as its mean over ranks the mean over the labels of all.
        """
        assert self._batch is not None
        items = self._batch.num_items_step_global if of_all_ranks else self._batch.num_items
        if items:  # a mean over nothing is no number
            self._sums.append(loss.detach().double() * items)
            self._items += items

    def mean_loss(self, accelerator: Any) -> float:
        """The mean over the labels of all batches on all ranks, which add up once."""
        total = torch.zeros(2, dtype=torch.float64, device=accelerator.device)
        if self._sums:
            total[0] = torch.stack(self._sums).sum()
        total[1] = self._items
        summed, items = accelerator.reduce(total, "sum").tolist()
        return float(summed / items) if items else float("nan")
