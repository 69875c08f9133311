"""Counts and waits: three counts with three names, and what was lost is visible."""

import time

import numpy as np
import pytest

import brimful as bf
from truth import corpus_of, document

CONSUMER = -1  # among threads


def test_c91_slots_tokens_and_effective_tokens_are_three_counts():
    docs = [
        {"input_ids": document(i, n), "loss_mask": [0] * prompt + [1] * (n - prompt)}
        for i, (n, prompt) in enumerate([(5, 2), (3, 1)])
    ]
    loader = bf.DataLoader(bf.open(docs), seq_len=10)
    list(loader)
    stats = loader.stats()
    assert (stats.slots, stats.tokens, stats.effective_tokens) == (10, 8, 5)
    assert stats.utilization == 0.8
    resumed = bf.DataLoader(bf.open(docs), seq_len=10)
    resumed.load_state_dict(loader.state_dict())
    list(resumed)
    totals = resumed.stats().all_ranks
    assert (totals.slots, totals.tokens, totals.effective_tokens) == (20, 16, 10)
    assert resumed.stats().slots == 10, "this rank's count speaks of this process"


def test_c94_losses_are_visible():
    loader = bf.DataLoader(corpus_of([12, 3, 9]), seq_len=8, overlong="drop")
    with pytest.warns(UserWarning, match="21 tokens were dropped"):
        batches = list(loader)
    assert [batch.num_tokens for batch in batches] == [3]
    stats = loader.stats()
    assert (stats.documents, stats.tokens) == (1, 3)
    assert (stats.dropped_documents, stats.dropped_tokens) == (2, 21)
    assert list(stats.dropped.values()) == [{"documents": 2, "tokens": 21}]
    assert "2 documents dropped, 21 tokens dropped" in stats.summary()


def test_c95_a_cut_is_at_seq_len_and_nowhere_else():
    loader = bf.DataLoader(corpus_of([3000]), seq_len=2048, overlong="truncate")
    with pytest.warns(UserWarning, match="952 tokens were dropped"):
        (batch,) = loader
    assert batch.num_tokens == 2048
    assert (loader.stats().truncated_documents, loader.stats().dropped_tokens) == (1, 952)
    settings = loader.config.as_dict()
    assert (settings["seq_len"], settings["overlong"]) == (2048, "truncate")
    assert loader.state_dict()["fingerprint"]["overlong"] == "truncate"


def test_a_lap_counts_from_the_last_one():
    loader = bf.DataLoader(corpus_of([8] * 10), seq_len=8)
    iterator = iter(loader)
    next(iterator)
    assert loader.stats(lap=True).batches == 1
    next(iterator), next(iterator)
    lap = loader.stats(lap=True)
    assert (lap.batches, lap.tokens, lap.utilization) == (2, 16, 1.0)
    assert loader.stats(lap=True).utilization is None
    assert loader.stats().batches == 3


def test_times_are_counted_and_kept_over_epochs():
    loader = bf.DataLoader(corpus_of([50] * 400), seq_len=64, num_workers=1, depth=1)
    list(loader)
    first = loader.stats()
    assert first.first_batch_seconds > 0
    assert first.fill_seconds > 0
    assert first.plan_seconds > 0
    assert first.starvation_seconds is None
    list(loader)
    second = loader.stats()
    assert second.first_batch_seconds > first.first_batch_seconds
    assert second.fill_seconds > first.fill_seconds
    as_dict = second.as_dict()
    assert as_dict["all_ranks"]["tokens"] == second.tokens == 2 * 50 * 400
    assert isinstance(as_dict["stall_seconds"], float)


def test_split_documents_are_counted_once():
    loader = bf.DataLoader(corpus_of([30, 4, 17]), seq_len=8)
    list(loader)
    stats = loader.stats()
    assert (stats.split_documents, stats.documents, stats.tokens) == (2, 3, 51)
    assert stats.effective_tokens == 51 - (4 + 1 + 3)
    assert np.isclose(stats.utilization, 51 / stats.slots)


def test_c92_attention_work_is_the_sum_of_squared_lengths():
    loader = bf.DataLoader(corpus_of([4, 2, 2, 3]), seq_len=8, packing="concat", num_workers=0)
    first, second = loader
    assert (first.attention_work, first.num_tokens) == (4**2 + 2**2 + 2**2, 8)
    assert (second.attention_work, second.num_tokens) == (3**2, 3), "a tail is no work"
    assert [record.attention_work for record in loader.records()] == [24, 9]


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_records_say_what_the_last_batches_were(num_workers):
    loader = bf.DataLoader(
        corpus_of([5, 3, 8, 2, 7, 6]),
        seq_len=8,
        packing="pad",
        accumulate=2,
        num_workers=num_workers,
    )
    batches = list(loader) + list(loader)
    records = loader.records()
    assert [(r.epoch, r.micro_batch) for r in records] == [
        (e, m) for e in (0, 1) for m in [0, 1] * 3
    ]
    assert [r.step for r in records] == [0, 0, 1, 1, 2, 2] * 2
    assert [r.tokens for r in records] == [batch.num_tokens for batch in batches]
    assert [r.effective_tokens for r in records] == [batch.num_items for batch in batches]
    assert {r.slots for r in records} == {8}
    assert records[0].utilization == 5 / 8
    assert all(0 <= r.queue_depth <= loader.config.depth for r in records)
    assert all(r.slots_in_use >= 1 for r in records)
    assert all(r.fill_seconds > 0 and r.plan_seconds > 0 for r in records)
    assert records[0].stall_seconds == records[6].stall_seconds == 0, "first batches wait apart"


def test_records_keep_to_the_last_10_000():
    loader = bf.DataLoader(corpus_of([4] * 6000), seq_len=4, num_workers=1)
    for _ in range(2):
        for _ in loader:
            pass
    records = loader.records()
    assert [r.number for r in records] == list(range(2000, 12_000))
    assert [r.step for r in records] == [*range(2000, 6000), *range(6000)]
    assert [r.first for r in records] == [n == 6000 for n in range(2000, 12_000)]
    for since, found in ((-5, 10_000), (0, 10_000), (2001, 9999), (11_999, 1), (12_000, 0)):
        assert loader.records(since) == records[len(records) - found :]
    assert loader.records(10**18) == []


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_records_say_who_made_a_batch_where_and_when(num_workers):
    loader = bf.DataLoader(corpus_of([50] * 300), seq_len=64, num_workers=num_workers)
    began = time.perf_counter()
    for _ in range(2):
        for _ in loader:
            pass
    ended = time.perf_counter()
    records = loader.records()
    moments = [(r.leased, r.claimed, r.filled, r.taken) for r in records]
    assert all(list(m) == sorted(m) for m in moments)
    assert all(began <= m[0] and m[-1] <= ended for m in moments)
    assert all(r.entered <= r.taken for r in records)
    taken = [r.taken for r in records]
    assert taken == sorted(taken)
    for r in records:
        assert r.taken - r.entered >= r.stall_seconds
        assert r.plan_seconds + r.read_seconds + r.fill_seconds <= r.filled - r.claimed + 1e-6
    busy: dict[int, float] = {}
    for r in sorted(records, key=lambda r: r.claimed):
        assert busy.get(r.thread, 0) <= r.leased, "a thread makes one batch after the other"
        busy[r.thread] = r.filled
    assert set(busy) <= {*range(num_workers), CONSUMER}
    threads = loader.stats().threads
    for thread in (*range(num_workers), CONSUMER):
        fills = sum(r.fill_seconds for r in records if r.thread == thread)
        assert threads[thread].fill == pytest.approx(fills), "a thread's batches are its own"
    held: dict[int, float] = {}
    for r in sorted(records, key=lambda r: r.leased):
        assert held.get(r.slot, 0) <= r.leased, "a slot holds one batch after the other"
        held[r.slot] = r.taken


@pytest.mark.parametrize("num_workers", [0, 2])
def test_times_add_up(num_workers):
    loader = bf.DataLoader(corpus_of([64] * 200), seq_len=64, num_workers=num_workers)
    for _ in range(2):
        list(loader)
    stats, records = loader.stats(), loader.records()
    assert len(stats.threads) == num_workers + 1, "the consumer has its own"
    for name in ("plan", "read", "fill", "backpressure"):
        summed = sum(getattr(thread, name) for thread in stats.threads)
        assert getattr(stats, f"{name}_seconds") == pytest.approx(summed)
    assert len(records) == stats.batches
    assert stats.fill_seconds == pytest.approx(sum(r.fill_seconds for r in records))
    assert stats.stall_seconds >= sum(r.stall_seconds for r in records), "the end is awaited too"
    assert stats.plan_seconds >= sum(r.plan_seconds for r in records), "and planned"
    assert stats.queue_depth == pytest.approx(np.mean([r.queue_depth for r in records]))
    assert stats.read_seconds == 0, "mapped files are read by filling"


def test_reads_are_timed_apart(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(4096, dtype=np.uint16).reshape(64, 64))
    loader = bf.DataLoader(bf.open(tmp_path / "rows.npy"), seq_len=64, io="pread")
    list(loader)
    assert loader.stats().read_seconds > 0
    assert all(record.read_seconds > 0 for record in loader.records())


def test_a_lap_has_its_own_times():
    loader = bf.DataLoader(corpus_of([8] * 10), seq_len=8, num_workers=0)
    iterator = iter(loader)
    next(iterator)
    first = loader.stats(lap=True)
    next(iterator), next(iterator)
    lap, total = loader.stats(lap=True), loader.stats()
    for name in ("plan_seconds", "fill_seconds", "stall_seconds"):
        both = getattr(first, name) + getattr(lap, name)
        assert getattr(total, name) == pytest.approx(both)
    assert lap.threads[0].fill == pytest.approx(lap.fill_seconds)
    assert lap.queue_depth == 0, "without workers nothing is ready"
    assert loader.stats(lap=True).queue_depth is None


@pytest.mark.parametrize(("num_workers", "step"), [(0, 0.0), (0, 0.002), (1, 0.0), (1, 0.002)])
def test_stall_is_within_5_ms_of_the_consumers_own_clock(num_workers, step):
    rows = np.arange(1 << 21, dtype=np.int32).reshape(-1, 1 << 16)

    def difference():
        loader = bf.DataLoader(
            bf.open(rows), batch_size=4, seq_len=1 << 16, num_workers=num_workers, depth=1
        )
        iterator, waited, over = iter(loader), [], False
        while not over:
            entered = time.perf_counter()
            over = next(iterator, None) is None
            waited.append(time.perf_counter() - entered)
            time.sleep(step)
        stats = loader.stats()
        assert stats.batches == len(waited) - 1 == 8
        if num_workers == 0:
            assert stats.stall_seconds > 0, "every batch is made while the loop waits"
        return abs(sum(waited[1:]) - stats.stall_seconds)

    # What else runs on the machine may come between two clocks, so that one of some tries counts.
    assert any(difference() < 0.005 for _ in range(5))


def test_c93_loading_and_waiting_for_it_are_shown_apart():
    # One window: the first batch waits until all of it is planned.
    loader = bf.DataLoader(corpus_of([2] * 50_000), seq_len=64, window=50_000, num_workers=1)
    for number, _ in enumerate(loader):
        time.sleep(0.005)  # the step that loading hides behind
        if number == 20:
            break
    stats, records = loader.stats(), loader.records()
    assert stats.first_batch_seconds > records[0].plan_seconds > 0
    assert records[0].stall_seconds == 0, "it is counted as the first batch's"
    later = records[1:]
    assert all(record.fill_seconds > 0 for record in later), "loading took time"
    assert np.median([record.stall_seconds for record in later]) == 0, "and nobody waited for it"
    assert stats.stall_seconds == pytest.approx(sum(record.stall_seconds for record in later))
