"""The diagnosis of brimful's own loader. It takes no batch from the loader and moves no place."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from brimful import _core
from brimful._core import BrimfulError, PlanError
from brimful.profiling.diagnosis import Answers, Diagnosis, joined
from brimful.profiling.diagnosis_batches import native_batches
from brimful.profiling.diagnosis_data import files, native_data
from brimful.profiling.diagnosis_files import native_path
from brimful.profiling.diagnosis_order import native_order
from brimful.profiling.diagnosis_system import system
from brimful.profiling.diagnosis_tokens import native_tokens
from brimful.profiling.figures import Profile
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful.loader import DataLoader
    from brimful.profiling.ranks import RankReport

_BATCHES = 4  # compared, two before and two behind the state


def diagnose_native(
    loader: DataLoader, *, documents: int, profile: Profile | None, ranks: RankReport | None
) -> Diagnosis:
    """As `DataLoader.diagnose` says."""
    stats, config, corpus = loader.stats(), loader.config, loader.corpus
    records, state = loader.records(), loader.state_dict()
    ahead = config.depth if config.num_workers else 0
    paths = [path for path, size, _ in files(corpus) if size is not None]
    return joined(
        (
            native_tokens(stats, config, corpus),
            native_data(
                corpus,
                stats,
                documents=documents,
                window=config.window,
                mix_changed=bool(loader._mix_changes),
            ),
            native_order(loader, stats, state),
            native_batches(config, stats, records),
            native_path(stats, records, ahead, paths, config.shuffle, profile),
            _checkpoint(loader, state),
            system(ranks, config.num_workers, "thread"),
        )
    )


def _checkpoint(loader: DataLoader, state: dict[str, Any]) -> Answers:
    """Copies go on from a state, through JSON, and one of them again from the middle of the way."""
    answers = Answers("checkpoint")
    question = "Would a resumed run be equal?"
    try:
        text = json.dumps(state)
        first = _copy(loader, text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batches = iter(first)
            before = list(islice(map(_print_of, batches), _BATCHES // 2))
            middle = json.dumps(first.state_dict())
            behind = list(islice(map(_print_of, batches), _BATCHES // 2))
            first.close()
            whole = list(_prints(_copy(loader, text), len(before) + len(behind)))
            resumed = list(_prints(_copy(loader, middle), len(behind))) if behind else []
    except PlanError as error:  # of a run that is over
        answers.missing(question, f"no batch follows: {error}")
        return answers
    except (BrimfulError, FileNotFoundError) as error:
        answers.add(question, False, f"batches cannot be made: {error}", "Repair that first.")
        return answers
    if not whole + before:  # it is at its end, and has not been told so
        answers.missing(question, "no batch follows: the run is at its end")
        return answers
    answers.add(
        question,
        whole == before + behind and resumed == behind,
        f"{counted(len(whole), 'batch', 'batches')} from here and "
        f"{counted(len(behind), 'batch', 'batches')} from a state among them, compared by "
        f"checksums; the state takes {counted(len(text), 'byte')}",
        "Files changed since they were opened? Compare the corpus with its checksums "
        "(brimful verify), and report it otherwise.",
    )
    return answers


def _copy(loader: DataLoader, state: str) -> DataLoader:
    """A loader of the same batches, made in the calling thread and in host memory, at a state."""
    from brimful.loader import DataLoader as Loader

    config = loader.config
    settings = {name: getattr(config, name) for name in config.__dataclass_fields__}
    settings |= {"num_workers": 0, "device": None, "pin_memory": False, "ingest": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy = Loader(loader.corpus, **settings)
        copy._fingerprint_cache = loader._fingerprint()  # the same, and costs time
        copy.load_state_dict(json.loads(state))
    copy._place.ignored = False  # nobody is told of a run that is over
    return copy


def _prints(loader: DataLoader, number: int) -> Iterator[int]:
    """Checksums of the next batches."""
    yield from islice(map(_print_of, loader), number)
    loader.close()


def _print_of(batch: Any) -> int:
    parts = [batch.documents, batch.starts, batch.cu_seqlens_host, *batch.values()]
    prints = [_core.xxh3(np.ascontiguousarray(part).data) for part in parts]
    return hash((*prints, batch.step, batch.micro_batch))
