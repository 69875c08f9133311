"""Questions about the way of data: waiting, what of the files is in memory, how long reads take."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping, Sequence

from brimful.profiling.diagnosis import Answers
from brimful.profiling.figures import Profile
from brimful.profiling.residency import resident_share
from brimful.records import BatchRecord
from brimful.telemetry import Stats
from brimful.wording import brief, count, counted, duration, percent

_NOTICED = 1e-3  # seconds of waiting
_OFTEN = 0.05
_STALL = 0.02
_STARVED = 0.02
_READS = 32
_READ_BYTES = 1 << 16
_SLOW_READ = 5e-3


def native_path(
    stats: Stats,
    records: Sequence[BatchRecord],
    ahead: int,
    paths: Sequence[str],
    shuffle: bool | str,
    profile: Profile | None,
) -> Answers:
    """All of the area for brimful's own loader, which makes so many batches `ahead`."""
    answers = Answers("data path")
    if profile is not None:
        profiled_stall(answers, profile)
    else:
        _stall(answers, stats, records, ahead)
    _starvation(answers, stats)
    disk(answers, paths, shuffle)
    return answers


def disk(answers: Answers, paths: Sequence[str], shuffle: bool | str) -> None:
    """What of the files is in memory, and how long reads of them take."""
    memory, latency = "Is the corpus in memory?", "How long does a read take?"
    try:
        sizes = {path: os.path.getsize(path) for path in paths}
        _memory(answers, memory, sizes, shuffle)
        _latency(answers, latency, sizes)
    except OSError as error:
        asked = {line.question for line in answers.lines}
        for question in (memory, latency):
            if question not in asked:
                answers.missing(question, f"a file cannot be opened: {error}")


def _stall(answers: Answers, stats: Stats, records: Sequence[BatchRecord], ahead: int) -> None:
    question = "Is data waited for?"
    if not records or stats.queue_depth is None:
        answers.missing(question, "no batch was delivered yet")
        return
    waited = sum(record.stall_seconds > _NOTICED for record in records)
    ready = f"{stats.queue_depth:.1f} of {ahead} were ready" if ahead else "none is made ahead"
    answers.add(
        question,
        waited <= _OFTEN * len(records),
        f"{count(waited)} of the last {counted(len(records), 'batch', 'batches')} longer than "
        f"{duration(_NOTICED)}, {duration(stats.stall_seconds)} in all; {ready}",
        "brimful.profile(loader) tells why, and what would avoid it.",
    )


def profiled_stall(answers: Answers, profile: Profile | None) -> None:
    """What a profile tells of waiting."""
    question = "Is data waited for?"
    share = None if profile is None else profile.stats.stall_fraction
    if profile is None or share is None:
        answers.missing(question, "no profile was taken", "brimful.profile(loader) measures it.")
        return
    answers.add(
        question,
        share <= _STALL,
        f"{percent(share)} of the time, {duration(profile.stats.stall_seconds)}",
        "The verdict of the profile ranks what would avoid it.",
    )


def _starvation(answers: Answers, stats: Stats) -> None:
    question = "Does the device wait for data?"
    device = stats.starvation
    if device is None:
        answers.missing(question, "batches go to no device of the loader's")
    elif device.fraction is None:
        answers.missing(question, "no two batches were measured yet")
    else:
        answers.add(
            question,
            device.fraction <= _STARVED,
            f"{percent(device.fraction)} of its time, {duration(device.seconds)}",
            "brimful.profile(loader) tells why, and what would avoid it.",
        )


def _memory(answers: Answers, question: str, sizes: Mapping[str, int], shuffle: bool | str) -> None:
    if not sizes:
        answers.missing(question, "no file is known that it is read from")
        return
    share = resident_share(sizes)
    if share is None:
        answers.missing(question, "the system tells the page cache of own files only")
        return
    size = sum(sizes.values())
    room = _available()
    fits = size * (1 - share) < room
    if fits:
        advice = "Memory has room for all of it: later epochs read from there; the first is slower."
    elif shuffle is True:
        advice = 'More than memory has room for, read here and there: shuffle="block" reads runs.'
    else:
        advice = (
            "More than memory has room for: keep it on a disk that reads as fast as it is used."
        )
    answers.add(
        question,
        share >= 0.5,
        f"{percent(share)} of {brief(size)}B are in the page cache; {brief(room)}B of memory free",
        advice,
    )


def _available() -> int:
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def _latency(answers: Answers, question: str, sizes: Mapping[str, int]) -> None:
    """Reads at places of its own random numbers, so that nobody else's move on."""
    if not any(sizes.values()):
        answers.missing(question, "there is no file to read")
        return
    places = random.Random(0)
    taken = []
    for path in places.choices(list(sizes), list(sizes.values()), k=_READS):
        file = os.open(path, os.O_RDONLY)
        try:
            began = time.perf_counter()
            os.pread(file, _READ_BYTES, places.randrange(sizes[path]))
            taken.append(time.perf_counter() - began)
        finally:
            os.close(file)
    taken.sort()
    middle, worst = taken[_READS // 2], taken[-1]
    answers.add(
        question,
        middle <= _SLOW_READ,
        f"{duration(middle)} in the middle, {duration(worst)} at most, of {_READS} reads of "
        f"{_READ_BYTES >> 10} KiB",
        'Far away: io="pread" with more num_workers hides it, a copy on a local disk avoids it.',
    )
