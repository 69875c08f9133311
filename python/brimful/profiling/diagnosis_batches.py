"""Questions about batches: whether steps, micro-batches and ranks hold alike, and get a share."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from brimful.config import LoaderConfig
from brimful.profiling.diagnosis import Answers
from brimful.records import BatchRecord
from brimful.telemetry import Stats
from brimful.wording import count, counted, percent

_FEWEST = 8  # batches, of which a spread can be told
_UNEVEN = 0.05
_IMBALANCE = 1.1
_COSTLY = 1.5


def native_batches(config: LoaderConfig, stats: Stats, records: Sequence[BatchRecord]) -> Answers:
    """All of the area for brimful's own loader."""
    answers = Answers("batch structure")
    _accumulation(answers, config, records)
    rank_share(answers, config.world_size * config.cp_size)
    _balance(answers, config, stats)
    _cost(answers, config, records)
    return answers


def _accumulation(answers: Answers, config: LoaderConfig, records: Sequence[BatchRecord]) -> None:
    """Labels of the micro-batches that one step adds up, here and on other ranks."""
    question = "Do batches of a step hold as many labels?"
    together = config.accumulate * config.world_size
    if together == 1:
        answers.add(question, True, "a step is a single batch")
        return
    if len(records) < _FEWEST:
        answers.missing(question, f"{counted(len(records), 'batch', 'batches')}, too few to tell")
        return
    labels = np.array([record.effective_tokens for record in records], np.float64)
    spread = float(labels.std() / labels.mean()) if labels.any() else 0.0
    answers.add(
        question,
        spread <= _UNEVEN,
        f"{count(together)} add up to a step; their labels differ by {percent(spread)} "
        "(standard deviation)",
        "A mean of means weighs tokens of small batches more: divide the summed loss by "
        "batch.num_items_step_global.",
    )


def rank_share(answers: Answers, shares: int) -> None:
    """Whether as many processes read different data as there are."""
    question = "Does every rank get a share of its own?"
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        answers.add(question, True, f"{counted(shares, 'share')}, and no process group is set up")
        return
    world = distributed.get_world_size()
    answers.add(
        question,
        shares == world,
        f"{counted(shares, 'share')} for {counted(world, 'process', 'processes')}",
        "Ranks of tensor or pipeline parallelism read the same batches, and mesh= says so; all "
        "others need rank= and world_size=.",
    )


def _balance(answers: Answers, config: LoaderConfig, stats: Stats) -> None:
    question = "Do ranks get as much work?"
    if config.world_size == 1:
        answers.add(question, True, "a single rank")
    elif stats.imbalance is None:
        answers.missing(question, "no step was delivered yet")
    else:
        answers.add(
            question,
            stats.imbalance <= _IMBALANCE,
            f"the busiest has {stats.imbalance:.3f} times the mean attention work",
            'balance="attention" deals bins of like work to the ranks of a step.',
        )


def _cost(answers: Answers, config: LoaderConfig, records: Sequence[BatchRecord]) -> None:
    question = "Do batches cost alike?"
    work = np.array([record.attention_work for record in records if record.slots], np.float64)
    if len(work) < _FEWEST:
        answers.missing(question, f"{counted(len(work), 'batch', 'batches')}, too few to tell")
        return
    ratio = float(np.quantile(work, 0.95) / work.mean()) if work.any() else 1.0
    advice = 'balance="attention" puts bins of like work into a step.'
    if config.is_bucket:
        advice = "Buckets sort documents by length, so that batches differ; their slots do too."
    answers.add(
        question,
        ratio <= _COSTLY,
        f"one in twenty takes {ratio:.2f} times the mean attention work or more",
        advice,
    )
