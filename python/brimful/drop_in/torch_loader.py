"""torch's path: torch's own DataLoader, with a clock on top."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from torch.utils import data

from brimful.drop_in.explain import Explanation, explanation
from brimful.drop_in.path import Path, torch_reason
from brimful.drop_in.torch_iterators import Clock, TimedMulti, TimedSingle
from brimful.drop_in.torch_stats import TorchStats


class TorchLoader(data.DataLoader[Any]):
    """torch's DataLoader, which does everything as it always did, and tells how long it was waited
    for. Made by `brimful.DataLoader` for whatever is no token corpus.
    """

    def __init__(self, *args: Any, **arguments: Any) -> None:
        self._clock = Clock()
        self._lap = TorchStats()
        super().__init__(*args, **arguments)

    functools.update_wrapper(__init__, data.DataLoader.__init__, assigned=())

    def _get_iterator(self) -> TimedSingle | TimedMulti:
        if self.num_workers == 0:
            return TimedSingle(self)
        self.check_worker_number_rationality()
        return TimedMulti(self)

    def stats(self, *, lap: bool = False) -> TorchStats:
        """Counts and times since the loader was made; with `lap=True` since the last lap."""
        stats = self._clock.read()
        if not lap:
            return stats
        since, self._lap = stats.since(self._lap), stats
        return since

    def explain(self) -> Explanation:
        """That torch serves the dataset and why; torch's arguments keep their meaning."""
        return explanation(Path(False, torch_reason(self.dataset)))


def make_torch_loader(dataset: Any, given: Mapping[str, Any]) -> TorchLoader:
    """The loader of `brimful.DataLoader(dataset, **given)` on torch's path."""
    arguments = dict(given)
    if arguments.get("num_workers", 0) is None:
        del arguments["num_workers"]
    known = inspect.signature(data.DataLoader.__init__).parameters
    if "in_order" not in known and arguments.pop("in_order", True) is not True:
        raise ValueError("in_order=False needs torch 2.7 or newer")
    return TorchLoader(dataset, **arguments)
