"""torch's path: torch's own DataLoader, with a clock on top and a state."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

from torch.utils import data

from brimful.drop_in.explain import Explanation, explanation
from brimful.drop_in.path import Path, torch_reason
from brimful.drop_in.torch_iterators import WatchedMulti, WatchedSingle
from brimful.drop_in.torch_samplers import has_epoch, samplers_of
from brimful.drop_in.torch_state import Resumption, TorchPlace, make_state, read_state
from brimful.drop_in.torch_stats import Clock, TorchStats
from brimful.loader import DataLoader
from brimful.profiling.logged import Logged
from brimful.profiling.notes import Notes
from brimful.profiling.timeline import Timeline
from brimful.profiling.torch_timeline import timeline_of


class TorchLoader(Logged, data.DataLoader[Any]):
    """torch's DataLoader, which does everything as it always did, tells how long it was waited for,
    and goes on from a state. Made by `brimful.DataLoader` for whatever is no token corpus.
    """

    def __init__(self, *args: Any, **arguments: Any) -> None:
        self._clock = Clock()
        self._lap = TorchStats()
        self._place = TorchPlace(ended=True)
        self._resumption: Resumption | None = None
        self._moved_dataset = False  # to a state of its own
        arguments.pop("snapshot_every_n_steps", None)  # states are exact after every batch
        if arguments.get("num_workers", 0) is None:
            del arguments["num_workers"]
        super().__init__(*args, **arguments)

    functools.update_wrapper(__init__, data.DataLoader.__init__, assigned=())

    def _get_iterator(self) -> WatchedSingle | WatchedMulti:
        if self.num_workers == 0:
            return WatchedSingle(self)
        self.check_worker_number_rationality()
        return WatchedMulti(self)

    def __getstate__(self) -> dict[str, Any]:
        """A copy has its own passes: it stands at the beginning, or at a state that was loaded."""
        return {**self.__dict__, "_place": TorchPlace(ended=True)}

    # State

    def state_dict(self) -> dict[str, Any]:
        """The place of the newest pass, counted in batches taken out, at any moment; fit for JSON
        where the states of the user's own samplers and dataset are.

        It holds the generators that the order was drawn from as they stood before, so that the
        order can be drawn again; `sampler.state_dict()` or `sampler.epoch`, where there is one; and
        without workers `dataset.state_dict()`, or that of its iterator.
        """
        if self._resumption is not None:
            return dict(self._loaded)
        return make_state(self, self._place)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next `iter()` go on where `state` was taken; an empty one means the beginning.

        Batches of a map-style dataset that were delivered are not fetched again. An iterable
        dataset that has no state of its own, or is read by workers, is: they are thrown away. The
        number of workers may be another one. torch's global generator is not touched by it.

        Raises:
            StateError: a state of the native path, of another dataset or batch size, or a damaged
                one; nothing is changed then.
        """
        if isinstance(state, Mapping) and not state:
            self._place, self._resumption = TorchPlace(ended=True), None
            return
        self._resumption = resumption = read_state(state, self)
        self._loaded = dict(state)
        for name, sampler in samplers_of(self).items():
            if has_epoch(sampler) and "epoch" in resumption.samplers.get(name, ()):
                sampler.set_epoch(resumption.samplers[name]["epoch"])

    def _resumption_for(self, samplers: Mapping[str, Any]) -> Resumption | None:
        """The loaded state, unless `set_epoch` has asked for another epoch since."""
        resumption = self._resumption
        for name, sampler in samplers.items():
            saved = {} if resumption is None else resumption.samplers.get(name, {})
            if has_epoch(sampler) and saved.get("epoch", sampler.epoch) != sampler.epoch:
                warnings.warn(
                    f"set_epoch({sampler.epoch}) asks for another epoch than the loaded state "
                    f"stands in ({saved['epoch']}): the state has no effect",
                    stacklevel=5,
                )
                return None
        return resumption

    # Telemetry

    def stats(self, *, lap: bool = False) -> TorchStats:
        """Counts and times since the loader was made; with `lap=True` since the last lap."""
        stats = self._clock.read()
        if not lap:
            return stats
        since, self._lap = stats.since(self._lap), stats
        return since

    def _delivered(self) -> int:
        return self._clock.batches

    def _make_timeline(self, notes: Notes) -> Timeline:
        return timeline_of(self._clock, notes)

    def explain(self) -> Explanation:
        """That torch serves the dataset and why; torch's arguments keep their meaning."""
        return explanation(Path(False, torch_reason(self.dataset)))


DataLoader.register(TorchLoader)  # isinstance() is true of loaders on either path
