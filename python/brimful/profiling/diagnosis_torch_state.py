"""Whether a loader of torch's would resume equally: copies of it draw, from stand-ins for items."""

from __future__ import annotations

import copy
import json
import warnings
from itertools import islice
from typing import Any, cast

from torch.utils import data

from brimful._core import BrimfulError
from brimful.drop_in.torch_loader import TorchLoader
from brimful.drop_in.torch_random import RandomSnapshot
from brimful.drop_in.torch_samplers import generators_of, is_stateful, samplers_of
from brimful.profiling.diagnosis import Answers
from brimful.wording import counted

_BATCHES = 4  # compared, two before and two behind the state


def length_of(sized: Any) -> int | None:
    """Of a dataset or sampler; None where it does not tell."""
    try:
        return len(sized)
    except (TypeError, NotImplementedError):
        return None


def torch_checkpoint(loader: data.DataLoader[Any], is_map: bool) -> Answers:
    """All of the area for a loader of torch's."""
    answers = Answers("checkpoint")
    question = "Would a resumed run be equal?"
    if not is_stateful(loader):
        answers.add(
            question,
            False,
            "the loader has no state: a resumed run begins its epoch again",
            "brimful.DataLoader takes the same arguments and saves its place.",
        )
    elif not isinstance(loader, TorchLoader):
        answers.missing(question, f"the state is that of a {type(loader).__name__}")
    elif is_map and length_of(loader.dataset) is None:
        answers.missing(question, "the dataset does not say how many items it has")
    elif is_map:
        _compare(answers, question, loader)
    else:
        own = is_stateful(loader.dataset)
        answers.add(
            question,
            own and loader.num_workers == 0,
            "the dataset goes on by a state of its own" if own else "the dataset has no state",
            "Delivered batches are then read again and thrown away: give it state_dict() and "
            "load_state_dict(), and num_workers=0.",
        )
    return answers


class _Numbers(data.Dataset[int]):
    """Stands for a dataset: its items are their own numbers."""

    def __init__(self, items: int) -> None:
        self._items = items

    def __len__(self) -> int:
        return self._items

    def __getitem__(self, number: int) -> int:
        return number


def _compare(answers: Answers, question: str, loader: TorchLoader) -> None:
    """Which items copies would fetch that go on from a state, without fetching them."""
    try:
        text = json.dumps(loader.state_dict())
        first = _copy(loader)
    except (TypeError, RuntimeError) as error:
        answers.missing(question, f"the sampler cannot be copied, or its state not saved: {error}")
        return
    before = RandomSnapshot.take({}, everything=True)
    try:
        with before.replayed({}), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first.load_state_dict(json.loads(text))
            batches = iter(first)
            early = _drawn(batches)
            middle = json.dumps(first.state_dict())
            late = _drawn(batches)
            # Their samplers have drawn before: what no state holds has moved on in them.
            again, resumed = _copy(first), _copy(first)
            again.load_state_dict(json.loads(text))
            batches = iter(again)
            whole = _drawn(batches) + _drawn(batches)
            resumed.load_state_dict(json.loads(middle))
            behind = _drawn(iter(resumed)) if late else []
    except BrimfulError as error:
        answers.add(question, False, f"the state is refused: {error}", "Make the loader as it was.")
        return
    answers.add(
        question,
        whole == early + late and behind == late,
        f"{counted(len(whole), 'batch', 'batches')} from here and "
        f"{counted(len(late), 'batch', 'batches')} from a state among them draw the same items; "
        f"the state takes {counted(len(text), 'byte')}",
        "The sampler draws from something that no state holds: give it state_dict() and "
        "load_state_dict(), or a generator=.",
    )


def _drawn(batches: Any) -> list[Any]:
    return list(islice(batches, _BATCHES // 2))


def _copy(loader: TorchLoader) -> TorchLoader:
    """A loader without workers that draws as this one does, from samplers of its own."""
    stand_in = _Numbers(len(cast(Any, loader.dataset)))
    # What samplers refer to: the dataset, and generators, which they may have in common.
    own: dict[int, Any] = {id(loader.dataset): stand_in}
    for generator in generators_of(loader, samplers_of(loader)).values():
        own[id(generator)] = generator.clone_state()
    arguments: dict[str, Any] = {"generator": copy.deepcopy(loader.generator, own)}
    if type(loader.batch_sampler) is data.BatchSampler or loader.batch_sampler is None:
        arguments |= {
            "batch_size": loader.batch_size,
            "sampler": copy.deepcopy(loader.sampler, own),
            "drop_last": loader.drop_last,
        }
    else:
        arguments["batch_sampler"] = copy.deepcopy(loader.batch_sampler, own)
    if loader.batch_size is not None or loader.batch_sampler is not None:
        arguments["collate_fn"] = list
    return TorchLoader(stand_in, **arguments)
