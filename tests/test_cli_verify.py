"""`brimful verify`: says that a run is exact where it is, and finds each way in which it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import brimful as bf
from brimful.cli.app import app
from brimful.cli.proof import Check, prove, stretches
from brimful.cli.trial import Split, splits_of

GIVEN = Split(2, 2, 2)
LENGTHS = np.random.default_rng(3).integers(0, 60, 150).tolist()


def corpus(first: int = 0, lengths: list[int] = LENGTHS) -> bf.Corpus:
    return bf.open([np.arange(n) + first for n in lengths])


def checks(make: Callable[..., bf.DataLoader], batches: int = 64) -> dict[str, Check]:
    found = [c for part in stretches(make, GIVEN, batches) for c in prove(make, GIVEN, part)]
    return {check.name: check for check in sorted(found, key=lambda c: not c.passed)}  # the worst


def loader(split: Split, rank: int, kind: type[bf.DataLoader] = bf.DataLoader, **how: Any) -> Any:
    how = {"seq_len": 64, "shuffle": True, "window": 50, **how}
    return kind(how.pop("corpus", None) or CORPUS, rank=rank, **asdict(split), **how)


CORPUS = corpus()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "shards"
    with bf.ShardWriter(folder, dtype="uint16") as writer:
        for i, length in enumerate(LENGTHS):
            writer.add(np.full(length, i, np.uint16))
    return folder


def run(*args: object) -> Any:
    return CliRunner().invoke(app, ["verify", *map(str, args)], env={"COLUMNS": "80"})


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--overlong", "truncate", "--packing", "best_fit"],
        ["--batches", "200", "--no-shuffle", "--world-size", "1"],
    ],
)
def test_a_run_on_shards_is_exact(shards: Path, more: list[str]) -> None:
    result = run(shards, "--seq-len", 40, *more)
    assert result.exit_code == 0, result.stdout
    assert result.stdout.endswith("verdict: the run is exact\n")
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    assert "at the end of an epoch" in result.stdout.replace("\n", " ")
    report = json.loads(run(shards, "--seq-len", 40, *more, "--json").stdout)
    assert report["passed"] is True
    assert list(report["checks"]) == ["beginning", "end of the epoch"]
    assert all(check["passed"] for part in report["checks"].values() for check in part)


def test_bad_documents_are_no_fault_of_the_run(shards: Path) -> None:
    result = run(shards, "--seq-len", 40, "--batches", 200, "--vocab-size", 100)
    assert result.exit_code == 0, result.stdout
    assert "bad documents put aside" in result.stdout.replace("\n", " ")


def test_data_that_fill_no_step_are_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "empty.npy", np.zeros((0, 8), np.int32))
    result = run(tmp_path / "empty.npy", "--seq-len", 8, "--format", "npy")
    assert result.exit_code == 2
    assert "no batch" in result.stderr


def test_splits_keep_the_global_batch() -> None:
    found = splits_of(Split(2, 3, 2))
    assert found[0] == Split(2, 3, 2)
    assert len(set(found)) == len(found) > 4
    assert {s.world_size * s.batch_size * s.accumulate for s in found} == {12}


class Forgetful(bf.DataLoader):
    """Takes a state, and stands at its epoch's beginning."""

    def load_state_dict(self, state: Any, **how: Any) -> None:
        state = json.loads(json.dumps(state))
        state["cursor"] |= {"window": 0, "bin": 0, "step_bins": 0, "step": 0}
        state["step"] = None
        super().load_state_dict(state, **how)


class Overcounting(bf.DataLoader):
    """Counts a token that nobody got."""

    def state_dict(self) -> Any:
        state = super().state_dict()
        state["all_ranks"]["tokens"] += 1
        return state


class OneBehind(bf.DataLoader):
    """Tells of the step before."""

    def documents(self, step: int) -> Any:
        return super().documents(max(step - 1, 0))


def other_threads(split: Split, rank: int, **how: Any) -> bf.DataLoader:
    tokens = corpus(1) if how.get("num_workers") == 4 else CORPUS
    return loader(split, rank, corpus=tokens, **how)


def other_ranks(split: Split, rank: int, **how: Any) -> bf.DataLoader:
    tokens = corpus(1) if split.world_size == 4 else CORPUS
    return loader(split, rank, corpus=tokens, **how)


def of_kind(kind: type[bf.DataLoader]) -> Callable[..., bf.DataLoader]:
    return lambda split, rank, **how: loader(split, rank, kind, **how)


@pytest.mark.filterwarnings("ignore:.*had no effect")
@pytest.mark.parametrize(
    ("make", "name", "detail"),
    [
        (other_threads, "threads", "is another one with"),
        (of_kind(Forgetful), "resume", "batch 0 of rank|batch 1 of rank"),
        (other_ranks, "world size", "holds other pieces"),
        (of_kind(OneBehind), "audit", "holds other documents"),
        (of_kind(Overcounting), "accounts", "tokens counted"),
    ],
)
def test_each_broken_promise_is_found(
    make: Callable[..., bf.DataLoader], name: str, detail: str
) -> None:
    found = checks(make)[name]
    assert not found.passed
    assert any(part in found.detail for part in detail.split("|"))
    right = checks(loader)
    assert all(check.passed for check in right.values()), right


@pytest.mark.filterwarnings("ignore:.*had no effect")
def test_a_document_that_did_not_come_is_named() -> None:
    """A whole epoch, measured against a corpus that has one more token than the loader delivers."""

    def make(split: Split, rank: int, **how: Any) -> bf.DataLoader:
        made = loader(split, rank, **how)
        made.corpus = corpus(lengths=[*LENGTHS[:-1], LENGTHS[-1] + 1])
        return made

    found = checks(make, batches=200)["accounts"]
    assert not found.passed
    n = LENGTHS[-1]
    assert found.detail == f"{n} of {n + 1} tokens of document {len(LENGTHS) - 1} came"


def shards_of(folder: Path, documents: list[np.ndarray]) -> Path:
    with bf.ShardWriter(folder, dtype="uint16") as writer:
        for tokens in documents:
            writer.add(tokens.astype(np.uint16))
    return folder


@pytest.mark.parametrize(
    ("documents", "batches"),
    [
        ([np.full(40, 7)] * 9, 4),  # begun before the stretch, so that nothing lists them in it
        ([np.full(2, 7)] * 1200 + [np.full(2, 3)] * 9, 64),  # more than are listed
    ],
)
def test_bad_documents_that_no_list_names_are_no_fault(
    tmp_path: Path, documents: list[np.ndarray], batches: int
) -> None:
    data = shards_of(tmp_path / "shards", documents)
    how = ["--seq-len", 8, "--batches", batches, "--vocab-size", 7, "--world-size", 1]
    result = run(data, *how)
    assert result.exit_code == 0, result.stdout
    assert "bad documents put aside" in " ".join(result.stdout.split())


def test_few_batches_are_made_enough_to_compare_steps(shards: Path) -> None:
    report = json.loads(
        run(shards, "--seq-len", 40, "--batches", 4, "--accumulate", 5, "--json").stdout
    )
    assert report["passed"] is True
    details = [check["detail"] for part in report["checks"].values() for check in part]
    assert [detail for detail in details if "0 steps" in detail] == []


@pytest.mark.parametrize("layout", ["rows", "varlen"])
@pytest.mark.parametrize("more", [[], ["--weights", "0.8,0.2"], ["--weights", "1,0"]])
def test_several_data_are_a_mixture(
    shards: Path, tmp_path: Path, more: list[str], layout: str
) -> None:
    other = shards_of(tmp_path / "other", [np.full(9, 200)] * 30)
    result = run(shards, other, "--seq-len", 40, "--batches", 80, "--layout", layout, *more)
    assert result.exit_code == 0, result.stdout
    text = " ".join(result.stdout.split())
    assert "counted right for 2 sources" in text
    assert ("none twice in an epoch" in text) == (not more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--weights", "1,2,3"], "--weights '1,2,3' for 1 DATA"),
        (["--weights", "a"], "expected numbers, as in 0.7,0.3"),
        (["--layout", "flat"], "--layout is 'flat'"),
    ],
)
def test_what_cannot_be_verified_is_said(shards: Path, more: list[str], words: str) -> None:
    result = run(shards, "--seq-len", 40, *more)
    assert result.exit_code == 2
    assert words.removeprefix("--") in result.stderr.replace("=", " ")
    assert run(shards, shards, "--seq-len", 40).exit_code == 2


class Misattributing(bf.DataLoader):
    """Counts tokens for another source than they are of."""

    def stats(self, **how: Any) -> Any:
        stats = super().stats(**how)
        counts = list(stats.exposure.values())
        return replace(stats, exposure=dict(zip(stats.exposure, counts[::-1], strict=True)))


@pytest.mark.filterwarnings("ignore:.*had no effect")
def test_tokens_counted_for_another_source_are_found() -> None:
    mixture = bf.mix({"a": corpus(), "b": corpus(1, [9] * 30)})

    def make(split: Split, rank: int, **how: Any) -> bf.DataLoader:
        return loader(split, rank, kind, corpus=mixture, **how)

    kind: type[bf.DataLoader] = Misattributing
    assert "of source 'a' counted" in checks(make)["accounts"].detail
    kind = bf.DataLoader
    assert checks(make)["accounts"].passed
