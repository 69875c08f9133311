"""Where a pass on torch's path stands, and the state that another loader goes on from.

A state is flat, its keys are always the same, and what has an inner shape is text: so it is fit for
JSON, and for torch.distributed.checkpoint, which loads into a state of the same shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch.utils import data

from brimful._core import StateError
from brimful.drop_in.torch_random import RandomSnapshot, check_fits, pack, unpack
from brimful.drop_in.torch_samplers import (
    draw_from_anywhere,
    generators_of,
    is_stateful,
    samplers_of,
    take_states,
)

_VERSION = 1
_KEYS = (
    "loader", "version", "batches", "early", "random", "first_batch", "samplers",
    "dataset", "iterable", "batch_size", "length", "num_workers",
)  # fmt: skip


@dataclass(kw_only=True)
class TorchPlace:
    """One pass: what was taken out of it, and what its order was drawn from.

    Attributes:
        before_iter: generators before `iter()` drew the workers' seed.
        before_order: generators before the first index was drawn; None until then.
        samplers: what samplers told of themselves before `iter()`.
        first_batch: checksum of the first batch's indices.
        base, base_early: batches, as below, of a state that the pass went on from.
        taken: batches taken out since, delivered or failed.
        early: numbers of later ones that were taken out too (in_order=False), counted likewise.
        source: the dataset, or its iterator, where it has a state of its own.
        fetcher: what torch reads it with.
        ended: the end was noticed; the next pass is a new epoch.
    """

    before_iter: RandomSnapshot | None = None
    before_order: RandomSnapshot | None = None
    samplers: dict[str, Any] = field(default_factory=dict)
    first_batch: int | None = None
    base: int = 0
    base_early: tuple[int, ...] = ()
    taken: int = 0
    early: tuple[int, ...] = ()
    source: Any = None
    fetcher: Any = None
    ended: bool = False
    _text: str | None = None

    def random_text(self) -> str:
        """Both snapshots as text; made once where they are final, so that saving is cheap."""
        if self._text is None or self.before_order is None:
            text = pack(self.before_iter, self.before_order)
            self._text = None if self.before_order is None else text
            return text
        return self._text

    def position(self) -> tuple[int, list[int]]:
        """Batches taken out without a gap, and the numbers of those behind the gap."""
        batches = self._number(self.taken)
        early = {*map(self._number, self.early), *(n for n in self.base_early if n > batches)}
        return batches, sorted(early)

    def _number(self, count: int) -> int:
        """The number in the epoch of the batch that was drawn as number `count` of this pass."""
        number = self.base + count
        for early in self.base_early:
            number += early <= number
        return number


@dataclass(frozen=True, kw_only=True)
class Resumption:
    """A state, checked: what the next `iter()` goes on from. Attributes as in `TorchPlace`."""

    batches: int
    early: tuple[int, ...]
    before_iter: RandomSnapshot
    before_order: RandomSnapshot | None
    first_batch: int | None
    samplers: dict[str, Any]
    dataset: dict[str, Any] | None
    num_workers: int


def make_state(loader: data.DataLoader[Any], place: TorchPlace) -> dict[str, Any]:
    """The state of a loader whose newest pass stands at `place`."""
    if place.ended:  # the next pass is drawn from what is there by now
        samplers = samplers_of(loader)
        generators = generators_of(loader, samplers)
        everything = draw_from_anywhere(loader, samplers)
        now = RandomSnapshot.take(generators, everything=everything)
        place = TorchPlace(
            before_iter=now,
            # Persistent workers keep their seed, so that the order is the next thing to be drawn.
            before_order=None if loader._iterator is None else now,
            samplers=take_states(samplers),
        )
    batches, early = place.position()
    dataset = None
    if place.source is not None:
        level = "dataset" if place.source is loader.dataset else "iterator"
        dataset = {
            level: place.source.state_dict(),
            "ended": getattr(place.fetcher, "ended", False),
        }
    return {
        "loader": "torch",
        "version": _VERSION,
        "batches": batches,
        "early": " ".join(map(str, early)),
        "random": place.random_text(),
        "first_batch": place.first_batch,
        "samplers": _packed(place.samplers),
        "dataset": _packed(dataset),
        "iterable": isinstance(loader.dataset, data.IterableDataset),
        "batch_size": loader.batch_size,
        "length": _length(loader),
        "num_workers": loader.num_workers,
    }


def read_state(state: Mapping[str, Any], loader: data.DataLoader[Any]) -> Resumption:
    """The state, checked against the loader that is to go on from it.

    Raises:
        StateError: it is none of torch's path, damaged, or of another dataset or batch size.
    """
    if not isinstance(state, Mapping) or state.get("loader") != "torch":
        raise StateError(
            "this is no state of a loader on torch's path; give what state_dict() of one returned "
            "(explain() tells the path of a loader)"
        )
    if state.get("version") != _VERSION:
        raise StateError(
            f"the state has version {state.get('version')!r}; this brimful reads {_VERSION}"
        )
    missing = [key for key in _KEYS if key not in state]
    if missing:
        raise StateError(f"the state lacks {', '.join(missing)}; give it whole")
    try:
        early = tuple(_count("early", int(number)) for number in state["early"].split())
        samplers, dataset = _unpacked(state["samplers"]), _unpacked(state["dataset"])
        before_iter, before_order = unpack(state["random"])
    except (AttributeError, TypeError, ValueError) as error:
        if isinstance(error, StateError):
            raise
        raise _damaged(error) from None
    if before_iter is None or not isinstance(dataset, dict | None) or not _are_told(samplers):
        raise _damaged("no samplers, dataset or random numbers")
    generators = generators_of(loader, samplers_of(loader))
    for snapshot in (before_iter, before_order or before_iter):
        check_fits(snapshot, generators)
    batches = _count("batches", state["batches"])
    if batches or early or state["first_batch"] is not None:
        _check_same(state, loader)
    return Resumption(
        batches=batches,
        early=early,
        before_iter=before_iter,
        before_order=before_order,
        first_batch=state["first_batch"],
        samplers=samplers,
        dataset=dataset,
        num_workers=_count("num_workers", state["num_workers"]),
    )


def _damaged(what: object) -> StateError:
    return StateError(f"the state is damaged ({what}); give it as state_dict() returned it")


def _are_told(samplers: Any) -> bool:
    """Whether these are `take_states`."""
    return isinstance(samplers, dict) and all(
        isinstance(told, dict) and isinstance(told.get("epoch", 0), int)
        for told in samplers.values()
    )


def _check_same(state: Mapping[str, Any], loader: data.DataLoader[Any]) -> None:
    """In the middle of an epoch batches are counted, so they must be the same ones."""
    found = {
        "iterable": isinstance(loader.dataset, data.IterableDataset),
        "batch_size": loader.batch_size,
        "length": _length(loader),
    }
    for name, now in found.items():
        if state[name] != now:
            raise StateError(
                f"the state stands in the middle of an epoch of a loader whose {name} is "
                f"{state[name]!r}, and here it is {now!r} (length counts the batches of an epoch); "
                f"make the loader as it was, also for as many ranks, or load a state from between "
                f"epochs. (Packed loading, which seq_len= asks for, goes on with other ranks)"
            )
    length, batches = found["length"], state["batches"]
    if length is not None and batches > length:
        raise _damaged(f"{batches} batches are out of {length}")


def _length(loader: data.DataLoader[Any]) -> int | None:
    """Draws of an epoch; None where that is not known before."""
    if isinstance(loader.dataset, data.IterableDataset):
        return None
    try:
        return len(loader._index_sampler)
    except (TypeError, NotImplementedError):
        return None


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise StateError(f"the state's {name} is {value!r}; a number from 0 up is expected")
    return value


def _packed(states: Any) -> Any:
    """As text, where JSON keeps all of it; else as it is."""
    try:
        text = json.dumps(states)
        return text if json.loads(text) == states else states
    except (TypeError, ValueError, RuntimeError):  # tensors refuse to be compared
        return states


def _unpacked(states: Any) -> Any:
    return json.loads(states) if isinstance(states, str) else states


def dataset_with_state(dataset: Any, iterator: Any) -> Any:
    """Whichever of the two has a state of its own, the iterator first; None where none has."""
    for source in (iterator, dataset):
        if is_stateful(source):
            return source
    return None


def begin_again(dataset: Any) -> None:
    """The epoch after one that went on from a state: datasets of Hugging Face would begin every
    epoch at that state, others end where they began.
    """
    if type(dataset).__module__.split(".")[0] == "datasets":
        dataset.load_state_dict({})
