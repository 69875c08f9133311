"""What a profile says of producers and consumers whose times are known."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, IterableDataset

import brimful as bf
from brimful.profiling.figures import ProfileStats
from timed import one_of_three
from virtual_time import VirtualTime, virtual_time


@dataclass(frozen=True)
class Times:
    """Of one batch, in ticks of virtual time: its making, asleep and at work, and its step."""

    asleep: int
    at_work: int
    collating: int
    step: int


ticks = st.integers(0, 1000)
passes = st.lists(st.lists(st.builds(Times, ticks, ticks, ticks, ticks), max_size=5), max_size=3)


class Producer:
    """Makes batches in `next()`; `iter()` and the end of a pass take their time, too."""

    def __init__(self, clock: VirtualTime, passes: list[list[Times]]) -> None:
        self.clock, self.passes = clock, iter(passes)

    def __iter__(self) -> Iterator[Times]:
        self.clock.sleep(7)
        return self._batches(next(self.passes))

    def _batches(self, batches: list[Times]) -> Iterator[Times]:
        for times in batches:
            self.clock.sleep(times.asleep)
            self.clock.work(times.at_work + times.collating)
            yield times
        self.clock.sleep(3)


def consume(p: bf.Profiler, clock: VirtualTime, passes: list[list[Times]]) -> None:
    for _ in passes:
        for times in p:
            clock.sleep(times.step)


def summed(values: Any) -> float:
    return sum(values) / 1024


@given(passes)
def test_waits_and_steps_are_exactly_those_of_producer_and_consumer(
    passes: list[list[Times]],
) -> None:
    with virtual_time() as clock, bf.profile(Producer(clock, passes)) as p:
        consume(p, clock, passes)
        clock.sleep(99)  # is nobody's
    stats = p.stats()
    made = [[t.asleep + t.at_work + t.collating for t in batches] for batches in passes]
    assert stats.batches == sum(map(len, passes))
    assert stats.first_batches == sum(1 for batches in passes if batches)
    assert stats.first_batch_seconds == summed(7 + times[0] for times in made if times)
    assert stats.stall_seconds == summed(sum(times[1:]) for times in made)
    assert stats.step_seconds == summed(t.step for batches in passes for t in batches)
    assert stats.end_seconds == summed(3 for _ in passes)
    empty = sum(1 for batches in passes if not batches)
    assert stats.wall_seconds == pytest.approx(
        stats.first_batch_seconds
        + stats.stall_seconds
        + stats.step_seconds
        + stats.end_seconds
        + summed([7] * empty)
    )
    rows = p.profile().batches
    assert [row.wait for row in rows if row.first] == [
        (7 + times[0]) / 1024 for times in made if times
    ]
    assert [row.blocked for row in rows] == [t.asleep / 1024 for batches in passes for t in batches]
    assert [row.load for row in rows] == [None] * len(rows)


class Made(Dataset[Times]):
    """Items that take their time."""

    def __init__(self, clock: VirtualTime, items: list[Times]) -> None:
        self.clock, self.items = clock, items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: int) -> Times:
        times = self.items[number]
        self.clock.sleep(times.asleep)
        self.clock.work(times.at_work)
        return times


class MadeInOrder(IterableDataset[Times]):
    def __init__(self, clock: VirtualTime, items: list[Times]) -> None:
        self.made = Made(clock, items)

    def __iter__(self) -> Iterator[Times]:
        return (self.made[number] for number in range(len(self.made)))


@given(
    st.lists(st.builds(Times, ticks, ticks, ticks, ticks), max_size=7),
    st.integers(1, 3),
    st.sampled_from([Made, MadeInOrder]),
    st.sampled_from([DataLoader, bf.DataLoader]),
)
def test_load_is_exactly_what_fetching_takes_in_the_consumer(
    items: list[Times], batch_size: int, dataset: Any, make: Any
) -> None:
    with virtual_time() as clock:

        def collate(items: list[Times]) -> list[Times]:
            for times in items:
                clock.work(times.collating)
            return items

        loader = make(dataset(clock, items), batch_size=batch_size, collate_fn=collate)
        with bf.profile(loader) as p:
            for batch in p:
                clock.sleep(sum(times.step for times in batch))
    rows = p.profile().batches
    groups = [items[i : i + batch_size] for i in range(0, len(items), batch_size)]
    assert [row.load for row in rows] == [
        summed(t.asleep + t.at_work + t.collating for t in group) for group in groups
    ]
    assert [row.wait for row in rows] == [row.load for row in rows]
    assert [row.blocked for row in rows] == [summed(t.asleep for t in g) for g in groups]
    assert [row.collate for row in rows] == [summed(t.collating for t in g) for g in groups]
    assert [row.step for row in rows] == [summed(t.step for t in g) for g in groups]
    stats = p.stats()
    assert stats.loaded_batches == max(len(groups) - 1, 0)
    assert (stats.load_seconds or 0.0) == sum(row.load or 0.0 for row in rows[1:])


class TwoStages:
    """A thread makes batches ahead; says itself how long it was waited for."""

    def __init__(self, makes: list[float], depth: int) -> None:
        self.makes, self.depth = makes, depth
        self.first = self.waited = 0.0

    def __iter__(self) -> Iterator[int]:
        ready: queue.Queue[int | None] = queue.Queue(self.depth)

        def make() -> None:
            for number, seconds in enumerate(self.makes):
                time.sleep(seconds)
                ready.put(number)
            ready.put(None)

        began = time.perf_counter()
        thread = threading.Thread(target=make)
        thread.start()
        while True:
            number = ready.get()
            waited = time.perf_counter() - began
            if number is None:
                break
            if number == 0:
                self.first += waited
            else:
                self.waited += waited
            yield number
            began = time.perf_counter()
        thread.join()


def near(seconds: float) -> Any:
    return pytest.approx(seconds, rel=0.05, abs=0.005)


@pytest.mark.parametrize(
    ("makes", "depth", "step"),
    [
        ([0.3] + [0.004] * 30, 4, 0.010),  # hidden behind steps, but for the first
        ([0.010] * 30, 4, 0.002),  # too slow
        ([0.001] * 8 + [0.080] + [0.001] * 8 + [0.080], 1, 0.005),  # in bursts, nothing ahead
        ([0.001] * 8 + [0.080] + [0.001] * 8 + [0.080], 16, 0.005),  # and with much ahead
    ],
)
@one_of_three
def test_the_waits_for_a_loader_that_works_ahead(
    makes: list[float], depth: int, step: float
) -> None:
    loader = TwoStages(makes, depth)
    slept = 0.0
    with bf.profile(loader) as p:
        for _ in p:
            began = time.perf_counter()
            time.sleep(step)
            slept += time.perf_counter() - began
    stats = p.stats()
    assert stats.first_batch_seconds == near(loader.first)
    assert stats.stall_seconds == near(loader.waited)
    assert stats.step_seconds == near(slept)
    assert stats.load_seconds is None


class Sleeping(Dataset[Any]):
    """The first item comes late, and others say how long they took."""

    def __init__(self, first: float, seconds: float, count: int) -> None:
        self.first, self.seconds, self.count = first, seconds, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> float:
        began = time.perf_counter()
        time.sleep(self.first if number == 0 else self.seconds)
        return time.perf_counter() - began


@one_of_three
def test_c93_load_and_wait_are_both_shown_and_the_first_batch_apart() -> None:
    loader = DataLoader(Sleeping(3.0, 0.010, 20), batch_size=None, num_workers=1)
    took = []
    with bf.profile(loader) as p:
        for seconds in p:
            took.append(float(seconds))
            time.sleep(0.05)
    stats = p.stats()
    assert stats.first_batch_seconds >= 3.0
    assert stats.load_seconds is not None
    assert stats.load_seconds == near(sum(took[1:]))
    assert stats.load_seconds / stats.loaded_batches < 0.5, "the first is not in the mean"
    # Batches lie ready: what is left of the wait is the way from the worker, far below the load.
    assert stats.stall_seconds < stats.load_seconds / 2
    assert "From iter() to the first batch it takes 3." in p.report()


def corpus_of(lengths: list[int], prompts: list[int] | None = None) -> bf.Corpus:
    """Documents with loss behind their prompts."""
    return bf.open(
        [
            {
                "input_ids": np.arange(length),
                "loss_mask": (np.arange(length) >= (0 if prompts is None else prompts[i])).astype(
                    np.uint8
                ),
            }
            for i, length in enumerate(lengths)
        ]
    )


def padded(lengths: list[int], prompts: list[int], capacity: int) -> dict[str, torch.Tensor]:
    """The same as another loader has it: padded rows with a mask and labels."""
    ids = torch.zeros(len(lengths), capacity, dtype=torch.int64)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for row, (length, prompt) in enumerate(zip(lengths, prompts, strict=True)):
        mask[row, :length] = 1
        labels[row, prompt:length] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def counts(stats: ProfileStats) -> tuple[Any, ...]:
    return stats.slots, stats.tokens, stats.effective_tokens, stats.utilization


def test_c91_slots_tokens_and_effective_tokens_of_any_loader() -> None:
    loader = bf.DataLoader(corpus_of([5, 3], [2, 1]), seq_len=10, packing="concat")
    assert counts(bf.profile(loader).run().stats()) == (10, 8, 5, 0.8)
    rows = padded([5, 3], [2, 1], 5)
    assert counts(bf.profile([rows]).run().stats()) == (10, 8, 5, 0.8)


def test_c92_attention_work_is_the_sum_of_squared_lengths_of_any_loader() -> None:
    loader = bf.DataLoader(corpus_of([4, 2, 2]), seq_len=8, packing="concat")
    for batches in (
        loader,
        [{"input_ids": np.zeros((1, 8)), "cu_seqlens": np.array([0, 4, 6, 8])}],
    ):
        p = bf.profile(batches).run()
        (batch,) = p.profile().batches
        assert (batch.figures.attention_work, batch.figures.tokens) == (24, 8)
        assert p.stats().attention_work == 24


def test_c94_a_profile_counts_what_was_delivered_and_the_loader_what_was_dropped() -> None:
    loader = bf.DataLoader(corpus_of([12, 3, 9]), seq_len=8, overlong="drop")
    with pytest.warns(UserWarning, match="2 documents dropped"):  # at the epoch's end
        p = bf.profile(loader).run()
    stats, told = p.stats(), loader.stats()
    assert (stats.batches, stats.documents, stats.tokens) == (1, 1, 3)
    assert (told.dropped_documents, told.dropped_tokens) == (2, 21)
    assert sum(source["tokens"] for source in told.dropped.values()) == 21
    assert "2 documents dropped" in told.summary()


def test_c49_memory_is_told_apart_by_who_can_give_it_back(tmp_path: Any) -> None:
    path = tmp_path / "a.bin"
    with path.open("wb") as file:
        file.truncate(64 << 20)  # sparse
    corpus = bf.open(str(path), format="raw", dtype="uint16")
    loader = bf.DataLoader(corpus, seq_len=1 << 16, packing="concat")
    before = bf.profile([]).stats()
    with bf.profile(loader) as p:
        for _ in p:
            pass
    stats = p.stats()
    assert stats.tokens == 32 << 20
    assert stats.file_backed_bytes - before.file_backed_bytes > 48 << 20
    assert stats.anonymous_bytes - before.anonymous_bytes < 48 << 20
    told = loader.stats()
    assert told.file_backed_bytes - before.file_backed_bytes > 48 << 20
    assert told.anonymous_bytes - before.anonymous_bytes < 48 << 20
