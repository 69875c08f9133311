"""The diagnosis of torch's DataLoader and those made of it, brimful's torch path among them.

It draws no batch of the loader, and leaves the global random generators as they are. Items of a
map-style dataset are read, as anybody else may who indexes it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from torch.utils import data

from brimful import _core
from brimful.drop_in.torch_random import RandomSnapshot
from brimful.drop_in.torch_samplers import is_stateful, samplers_of
from brimful.profiling.diagnosis import Answers, Diagnosis, joined
from brimful.profiling.diagnosis_batches import rank_share
from brimful.profiling.diagnosis_files import disk, profiled_stall
from brimful.profiling.diagnosis_system import system
from brimful.profiling.diagnosis_tokens import profiled_tokens
from brimful.profiling.diagnosis_torch_state import length_of, torch_checkpoint
from brimful.profiling.figures import Profile
from brimful.wording import counted, duration

if TYPE_CHECKING:
    from brimful.profiling.ranks import RankReport

_PACK = "Pack documents: brimful.DataLoader(dataset, seq_len=...) fills batches with their tokens."
_MOST_SECONDS = 1.0  # of reading items
_FEW = 0.005


def diagnose_torch(
    loader: data.DataLoader[Any],
    *,
    documents: int,
    profile: Profile | None,
    ranks: RankReport | None,
) -> Diagnosis:
    """As `diagnose` says."""
    is_map = not isinstance(loader.dataset, data.IterableDataset)
    samplers = samplers_of(loader) if is_map else {}
    return joined(
        (
            profiled_tokens(profile, _PACK),
            _data(loader, documents, is_map),
            _order(loader, samplers, is_map),
            _batches(loader, samplers, is_map),
            _path(loader, profile),
            torch_checkpoint(loader, is_map),
            system(ranks, loader.num_workers, "worker"),
        )
    )


def _data(loader: data.DataLoader[Any], most: int, is_map: bool) -> Answers:
    answers = Answers("data")
    question = "Are documents there twice?"
    if not is_map:
        answers.missing(question, "an iterable dataset can be read once only, by its loader")
    elif is_stateful(loader.dataset):
        answers.missing(question, "reading items might change the state that the dataset has")
    else:
        try:
            _copies(answers, question, cast(Any, loader.dataset), most)
        except Exception as error:  # of code that is not ours
            answers.missing(question, f"an item cannot be read: {error!r}")
    answers.missing("Do sources get their weights?", "the loader knows no sources")
    return answers


def _copies(answers: Answers, question: str, dataset: Any, most: int) -> None:
    prints = []
    with RandomSnapshot.take({}, everything=True).replayed({}):  # items may be made at random
        began = time.perf_counter()
        for number in _spread(len(dataset), most):
            prints.append(_print_of(dataset[number]))
            if time.perf_counter() - began > _MOST_SECONDS:
                break
    known = Counter(print_ for print_ in prints if print_ is not None)
    if not known:
        answers.missing(question, "no item holds input_ids or is an array of numbers")
        return
    read, again = known.total(), known.total() - len(known)
    of = "all" if read == len(dataset) else "a sample of"
    answers.add(
        question,
        again <= _FEW * read,
        f"{counted(again, 'copy', 'copies')} in {of} {counted(read, 'item')}",
        f"Copies are learned by heart; the most frequent item is there "
        f"{max(known.values()):,} times. Deduplicate the dataset.",
    )


def _spread(items: int, most: int) -> range:
    """Numbers of items, evenly spread."""
    return range(0, items, max(1, -(-items // most)))


def _print_of(item: Any) -> int | None:
    """A checksum of an item's tokens."""
    if isinstance(item, Mapping):
        item = item.get("input_ids")
    elif isinstance(item, tuple) and item:
        item = item[0]
    try:
        tokens = np.asarray(item)
    except (TypeError, ValueError, RuntimeError):
        return None
    if tokens.dtype.kind not in "iuf" or not tokens.size:
        return None
    return hash((tokens.shape, _core.xxh3(np.ascontiguousarray(tokens).data)))


def _order(loader: data.DataLoader[Any], samplers: Mapping[str, Any], is_map: bool) -> Answers:
    answers = Answers("sampler")
    question = "Does an epoch draw every document once?"
    if not is_map:
        answers.missing(question, "an iterable dataset draws them itself")
        return answers
    items, inner = length_of(loader.dataset), _inner(samplers)
    if items is None:
        answers.missing(question, "the dataset does not say how many items it has")
    elif isinstance(inner, data.DistributedSampler):
        _dealt(answers, question, inner, items)
    elif getattr(inner, "replacement", False) is True:
        answers.add(
            question,
            False,
            f"{counted(len(inner), 'draw')} of {counted(items, 'item')} with replacement",
            "About a third of the items is not drawn at all: leave replacement=True out.",
        )
    elif type(inner) in (data.SequentialSampler, data.RandomSampler):
        answers.add(question, len(inner) == items, f"{len(inner):,} of {counted(items, 'item')}")
    else:
        answers.missing(question, f"the order is that of a {type(inner).__name__}")
    return answers


def _inner(samplers: Mapping[str, Any]) -> Any:
    """The one that draws items, or at least batches of them."""
    names = ("inner_sampler", "sampler", "batch_sampler")
    return next((samplers[name] for name in names if name in samplers), None)


def _dealt(answers: Answers, question: str, sampler: Any, items: int) -> None:
    """A DistributedSampler makes shares even: by repeating items, or by leaving some out."""
    more = sampler.total_size - items
    what = "repeated" if more > 0 else "left out"
    answers.add(
        question,
        abs(more) <= _FEW * items,
        f"{counted(abs(more), 'item')} {what} for even shares of {sampler.num_replicas} ranks",
        "Metrics over them count these items twice: brimful.DataLoader deals without repeating.",
    )
    answers.add(
        "Does every epoch have an order of its own?",
        not sampler.shuffle or sampler.epoch > 0,
        f"its epoch is {sampler.epoch}",
        "Call sampler.set_epoch(epoch) before each epoch, or all of them come in the same order.",
    )


def _batches(loader: data.DataLoader[Any], samplers: Mapping[str, Any], is_map: bool) -> Answers:
    answers = Answers("batch structure")
    answers.missing(
        "Do batches of a step hold as many labels?", "the loader does not know what a step adds up"
    )
    dealt = [getattr(sampler, "num_replicas", 1) for sampler in samplers.values()]
    if is_map:
        rank_share(answers, max(dealt, default=1))
    else:
        answers.missing(
            "Does every rank get a share of its own?", "an iterable dataset deals itself"
        )
    question = "Are all batches of the same size?"
    drawn = length_of(_inner(samplers))
    if loader.batch_size is None or drawn is None:
        answers.missing(question, "batches are made by others")
        return answers
    rest = 0 if loader.drop_last else drawn % loader.batch_size
    answers.add(
        question,
        not rest,
        f"{loader.batch_size:,} items, the last one {rest or loader.batch_size:,}",
        "A mean over the last batch weighs its items more: drop_last=True, or sum losses.",
    )
    return answers


def _path(loader: data.DataLoader[Any], profile: Profile | None) -> Answers:
    answers = Answers("data path")
    clock = getattr(loader, "_clock", None)
    if profile is None and clock is not None and clock.batches:
        stats = clock.read()
        each = stats.stall_seconds / stats.batches
        answers.missing(
            "Is data waited for?",
            f"{duration(each)} a batch, beside steps that nobody timed",
            "brimful.profile(loader) sets it beside the steps.",
        )
    else:
        profiled_stall(answers, profile)
    disk(answers, _files(loader.dataset), shuffle=False)
    return answers


def _files(dataset: Any) -> list[str]:
    """The Arrow files of a dataset of Hugging Face."""
    entries = getattr(dataset, "cache_files", None)
    if not isinstance(entries, list):
        return []
    return [
        entry["filename"] for entry in entries if isinstance(entry, dict) and "filename" in entry
    ]
