"""Profiles of loaders as they are used: passes left early, errors, interrupts, wrapped loaders."""

from __future__ import annotations

import copy
import io
import json
import pickle
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset, IterableDataset

import brimful as bf
from brimful.integrations.step_loader import StepLoader
from programs import check_quiet, run

COLUMNS = {
    "input_ids": [[1, 2, 3, 0], [4, 0, 0, 0]] * 6,
    "attention_mask": [[1, 1, 1, 0], [1, 0, 0, 0]] * 6,
}


def native(**how: Any) -> bf.DataLoader:
    documents = [i * 1000 + np.arange(1 + i % 60) for i in range(400)]
    return bf.DataLoader(documents, batch_size=2, seq_len=64, seed=3, shuffle=True, **how)


def ids(batches: Any) -> list[Any]:
    return [batch["input_ids"].tolist() for batch in batches]


# Native loaders


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_a_native_loader_gives_the_same_under_a_profile(num_workers: int) -> None:
    plain, profiled = native(num_workers=num_workers), native(num_workers=num_workers)
    with bf.profile(profiled) as p:
        for _ in range(2):
            assert ids(p) == ids(plain)
        for _ in zip(range(5), p, strict=False):
            pass
        assert profiled.state_dict()["cursor"]["epoch"] == 2
    for _ in zip(range(5), plain, strict=False):
        pass
    assert ids(profiled) == ids(plain), "the next epoch, behind one that was left"


def test_each_batch_of_a_native_loader_has_its_record() -> None:
    loader = native(num_workers=2)
    for _ in zip(range(3), loader, strict=False):  # before the profile
        pass
    with bf.profile(loader) as p:
        drawn = list(p)
        other = iter(loader)
        for number, batch in enumerate(p):
            drawn.append(batch)
            if number % 3 == 0:
                next(other, None)  # draws from the same loader meanwhile
    rows = p.profile().batches
    by_place = {(r.epoch, r.step): r for r in loader.records()}
    assert len(rows) == len(drawn)
    for row, batch in zip(rows, drawn, strict=True):
        record = by_place[batch.epoch, batch._step]
        made = record.plan_seconds + record.read_seconds + record.fill_seconds
        assert row.load == made or record.epoch != batch.epoch
        assert (row.figures.tokens, row.figures.attention_work) == (
            record.tokens,
            record.attention_work,
        )
        assert row.blocked is not None
        assert 0 <= row.blocked <= made + 1e-9


def test_a_collate_function_keeps_no_record_from_its_batch() -> None:
    loader = native(collate_fn=len, num_workers=2)
    with bf.profile(loader) as p:
        drawn = list(p)
    records = loader.records()
    assert [row.load for row in p.profile().batches] == [
        r.plan_seconds + r.read_seconds + r.fill_seconds for r in records
    ]
    assert drawn
    assert p.stats().tokens is None, "it is not a batch any more"


def test_sums_go_on_where_rows_are_let_go(monkeypatch: Any) -> None:
    monkeypatch.setattr("brimful.profiling.rows._MOST_BATCHES", 10)
    monkeypatch.setattr("brimful.profiling.rows._MOST_LENGTHS", 20)
    loader = native(num_workers=1)
    p = bf.profile(loader).run()
    profile, stats = p.profile(), loader.stats()
    assert [row.number for row in profile.batches] == list(range(stats.batches - 10, stats.batches))
    assert profile.stats.batches == stats.batches
    assert profile.stats.tokens == stats.tokens
    assert sum(profile.stats.length_counts) == profile.stats.documents
    kept = [row.figures.lengths for row in profile.batches if row.figures.lengths is not None]
    assert sum(map(len, kept)) <= 20
    assert profile.batches[-1].figures.lengths is not None
    assert all(row.load is not None for row in profile.batches)


# Ends of all kinds


def test_threads_end_with_a_pass_that_is_left() -> None:
    done = run(
        """
        l = loader()
        with bf.profile(l) as p:
            for batch in p:
                check_threads(4)
                break
            check_threads(0)
            try:
                for batch in p:
                    raise KeyError
            except KeyError:
                pass
            check_threads(0)
            iterator = iter(p)
            next(iterator)
            check_threads(4)
        next(iterator)  # behind the block it goes on
        del iterator
        check_threads(0)
        assert p.stats().batches == 3 + 1
        """
    )
    check_quiet(done)


def test_interrupts_end_no_profile_and_lose_no_more_than_the_batch_on_its_way() -> None:
    done = run(
        """
        import random
        l = loader(seq_len=64)
        armed = False
        def interrupt(*_):
            global armed
            if armed:
                armed = False
                raise KeyboardInterrupt
        signal.signal(signal.SIGINT, interrupt)
        over = False
        def shoot():
            rng = random.Random(5)
            while not over:
                time.sleep(rng.random() ** 3 * 0.01)
                os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=shoot, daemon=True).start()
        with bf.profile(l) as p:
            iterator, got, interrupts = iter(p), 0, 0
            while interrupts < 60:
                try:
                    armed = True
                    while True:
                        if next(iterator, None) is None:
                            iterator = iter(p)
                            continue
                        got += 1
                except KeyboardInterrupt:
                    interrupts += 1
            armed, over = False, True
            stats, delivered = p.stats(), l.stats().batches
            assert got <= stats.batches <= delivered <= got + interrupts, (got, stats, delivered)
            unknown = sum(row.load is None for row in p.profile().batches)
            assert unknown <= interrupts, unknown
        """
    )
    check_quiet(done)


class Failing:
    """Raises at one batch and goes on behind it."""

    def __init__(self) -> None:
        self.number = 0

    def __iter__(self) -> Failing:
        return self

    def __next__(self) -> int:
        self.number += 1
        if self.number == 3:
            raise OSError("third")
        if self.number > 5:
            raise StopIteration
        return self.number


def test_an_error_comes_through_and_the_pass_goes_on() -> None:
    with bf.profile(Failing()) as p:
        batches = iter(p)
        assert [next(batches), next(batches)] == [1, 2]
        with pytest.raises(OSError, match="third"):
            next(batches)
        assert list(batches) == [4, 5]
        with pytest.raises(StopIteration):
            next(batches)
    assert p.stats().batches == 4


class Errors(Dataset[float]):
    """Items that sleep the longer, the later they are, and some that raise."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, number: int) -> float:
        began = time.perf_counter()
        time.sleep(0.01 * number)
        if number in (3, 4, 5):
            raise KeyError(number)
        return time.perf_counter() - began


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_a_worker_shifts_no_figures(workers: int) -> None:
    took = []
    with bf.profile(DataLoader(Errors(), batch_size=None, num_workers=workers)) as p:
        batches = iter(p)
        while True:
            try:
                took.append(next(batches))
            except KeyError:
                continue
            except StopIteration:
                break
    loads = [row.load or 0.0 for row in p.profile().batches]
    assert len(loads) == 9
    for load, of_item in zip(loads, took, strict=True):
        assert of_item <= load <= of_item + 0.009


# Loaders of other makes


def test_a_hugging_face_dataset_as_it_is_and_through_torch() -> None:
    dataset = datasets.Dataset.from_dict(COLUMNS)
    rows = bf.profile(dataset).run().stats()
    assert (rows.batches, rows.slots, rows.tokens) == (12, 48, 24)
    streamed = bf.profile(dataset.to_iterable_dataset(num_shards=2).batch(4)).run().stats()
    assert (streamed.batches, streamed.slots, streamed.tokens) == (3, 48, 24)
    loader = DataLoader(dataset.with_format("torch"), batch_size=4, num_workers=1)  # type: ignore[arg-type]
    through = bf.profile(loader).run().stats()
    assert (through.batches, through.slots, through.tokens) == (3, 48, 24)
    assert through.loaded_batches == 2


class Tar(IterableDataset[dict[str, Any]]):
    """Samples out of a tar file, one after the other, as WebDataset has them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._samples()

    def _samples(self) -> Iterator[dict[str, Any]]:
        with tarfile.open(self.path) as tar:
            for member in tar:
                file = tar.extractfile(member)
                assert file is not None
                yield {"__key__": member.name, "input_ids": torch.tensor(json.load(file))}


def test_samples_of_a_tar_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(10):
            content = json.dumps(list(range(number + 1))).encode()
            member = tarfile.TarInfo(f"{number}.json")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    loader = DataLoader(Tar(path), batch_size=5, collate_fn=list, num_workers=1)
    with bf.profile(loader) as p:
        keys = [[sample["__key__"] for sample in batch] for batch in p]
    assert keys == [[f"{i}.json" for i in range(5)], [f"{i}.json" for i in range(5, 10)]]
    stats = p.stats()
    assert (stats.slots, stats.tokens, stats.loaded_batches) == (55, None, 1)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_accelerate_has_prepared(workers: int) -> None:
    rows = [{"input_ids": torch.arange(4)} for _ in range(12)]
    plain = DataLoader(rows, batch_size=3, num_workers=workers)  # type: ignore[arg-type]
    prepared = Accelerator(cpu=True).prepare(plain)
    p = bf.profile(prepared)
    assert (p.facts.kind, p.facts.workers) == ("torch", workers)
    with p:
        assert sum(1 for _ in p) == 4
    loads = [row.load for row in p.profile().batches]
    assert all(load is not None and load > 0 for load in loads)


def test_a_loader_for_trainers_is_profiled_as_the_native_one_in_it() -> None:
    loader = native(num_workers=2)
    p = bf.profile(StepLoader(loader), steps=20).run()
    assert (p.facts.kind, p.facts.workers) == ("brimful", 2)
    profile = p.profile()
    assert profile.stats.tokens == sum(r.tokens for r in loader.records()[:20])
    assert all(row.load is not None for row in profile.batches)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_profile_in_a_profile_leaves_the_loader_as_it_was(workers: int) -> None:
    loader = DataLoader(range(6), batch_size=2, num_workers=workers)  # type: ignore[arg-type]
    before = dict(vars(loader))
    with bf.profile(loader) as outer:
        with bf.profile(loader) as inner:
            assert len(list(inner)) == len(list(outer)) == 3
        assert len(list(outer)) == 3
    assert vars(loader) == before
    assert inner.stats().loaded_batches == 2
    assert outer.stats().loaded_batches == 4


def test_a_copy_of_a_profiled_loader_is_a_loader_of_its_own() -> None:
    loader = DataLoader(Tar(Path("a.tar")), batch_size=2)
    original = DataLoader._get_iterator
    with bf.profile(loader):
        for copied in (
            copy.copy(loader),
            copy.deepcopy(loader),
            pickle.loads(pickle.dumps(loader)),
        ):
            assert copied._get_iterator()._dataset is copied.dataset
            assert "fetch" not in vars(copied._get_iterator()._dataset_fetcher)
        assert "fetch" in vars(loader._get_iterator()._dataset_fetcher)
        with bf.profile(DataLoader(range(3))):  # type: ignore[arg-type]
            assert DataLoader._get_iterator is not original
        assert "fetch" in vars(loader._get_iterator()._dataset_fetcher)
    assert DataLoader._get_iterator is original


def test_what_a_report_is_written_to(tmp_path: Path) -> None:
    loader = native()
    for name in ("page.html", "trace.json", "lines.jsonl"):
        p = bf.profile(loader, steps=6)
        text = p.report(tmp_path / name)
        assert text == p.report()
        assert p.stats().batches == 6
        assert (tmp_path / name).stat().st_size > 100
    assert (tmp_path / "lines.jsonl").read_text().count("\n") == 6
    with pytest.raises(bf.PlanError, match=r"\.html"):
        bf.profile(loader).report(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError, match="no folder"):
        bf.profile(loader).report(tmp_path / "nowhere" / "a.html")
