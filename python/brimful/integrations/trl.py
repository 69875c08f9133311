"""TRL's SFTTrainer over native loaders: loaders that are packed already, or datasets that TRL
tokenizes and brimful packs.

Checked with trl 1.16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brimful.extras import require
from brimful.integrations.trainer_loaders import check_collator_is_used
from brimful.integrations.transformers import LoaderMixin
from brimful.loader import DataLoader

trl: Any = require("trl", "trl", "brimful.integrations.trl")
datasets: Any = require("datasets", "trl", "brimful.integrations.trl")
transformers: Any = require("transformers", "trl", "brimful.integrations.trl")


class SFTTrainer(LoaderMixin, trl.SFTTrainer):  # type: ignore[misc]
    """TRL's SFTTrainer that also trains and evaluates on native loaders: see `LoaderMixin`.

    Given a `brimful.DataLoader`, a `Corpus` or a path, the tokens are ready: loss masks of the
    corpus say what is trained on, and TRL prepares nothing. Given a `datasets.Dataset` and
    `loader=`, TRL tokenizes it, applies the chat template, marks what gets no loss and cuts at
    `max_length`, as its settings say; then brimful packs what came out.

    TRL's own `packing` and `padding_free` have no say in native loaders. Its metric `num_tokens`
    takes a batch for one row: it is right under `layout="varlen"`, else one row of a batch counts.
    """

    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        *more: Any,
        loader: Mapping[str, Any] | None = None,
        lengths: str | None = None,
        **kwargs: Any,
    ) -> None:
        if data_collator is not None:
            given = (train_dataset, eval_dataset)
            check_collator_is_used(_is_ready(data) for data in given if data is not None)
        super().__init__(
            model,
            args,
            data_collator,
            _stand_in(train_dataset),
            _stand_in(eval_dataset),
            *more,
            loader=loader,
            lengths=lengths,
            **kwargs,
        )
        # TRL insists on datasets, and has looked into what stood in for the others.
        if _is_ready(train_dataset):
            self.train_dataset = train_dataset
        if _is_ready(eval_dataset):
            self.eval_dataset = eval_dataset
        elif isinstance(eval_dataset, Mapping):
            self.eval_dataset = {
                name: data if _is_ready(data) else self.eval_dataset[name]
                for name, data in eval_dataset.items()
            }

    def _scales_losses(self) -> bool:
        return False  # TRL evaluates each rank's batch by itself

    def evaluate(self, eval_dataset: Any = None, *more: Any, **kwargs: Any) -> Any:
        """As TRL's, without preparing what is ready."""
        if _is_ready(eval_dataset):
            return transformers.Trainer.evaluate(self, eval_dataset, *more, **kwargs)
        return super().evaluate(eval_dataset, *more, **kwargs)


def _is_ready(data: Any) -> bool:
    """Whether it is tokens that TRL has nothing to do with."""
    own = (datasets.Dataset, datasets.IterableDataset, Mapping, type(None))
    return isinstance(data, DataLoader) or not isinstance(data, own)


def _stand_in(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _stand_in(one) for name, one in data.items()}
    if not _is_ready(data):
        return data
    return datasets.Dataset.from_dict({"input_ids": [[0, 0]], "labels": [[0, 0]]})
