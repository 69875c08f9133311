"""Jobs of torchrun with gloo: all ranks together deliver what one process does, and go on so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp

import rank_job
from rank_job import CASES, make, told, two_epochs

JOB = Path(rank_job.__file__)
# Where a batch's rows are dealt to ranks by their work, or a batch is one line of tokens, a step's
# content is the same and not its order.
UNORDERED = ("varlen", "balance", "bucket")


# A job that torchrun starts again may find, by gloo, addresses of processes that were killed, where
# all attempts share the store of the first one.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """torch's threads spin while they wait, which takes long where there are more than cores."""
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


def torchrun(ranks: int, *arguments: Any, restarts: int = 0) -> int:
    """Runs rank_job.py; returns torchrun's status."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), "--max-restarts", str(restarts), str(JOB)]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode:
        print(done.stderr)  # for whoever did not expect it
    return done.returncode


def run(folder: Path, ranks: int, *arguments: Any, restarts: int = 0) -> list[Any]:
    """What the ranks of a job wrote."""
    assert torchrun(ranks, arguments[0], folder, *arguments[1:], restarts=restarts) == 0
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


@pytest.fixture(
    scope="module",
    params=[2, pytest.param(1, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)],
)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(folder, what each rank found) of one job that does all of `everything`."""
    folder = tmp_path_factory.mktemp(f"job{request.param}")
    return folder, run(folder, request.param, "everything")


def steps(ranks: list[Any], epoch: int, *, ordered: bool) -> dict[int, list[Any]]:
    """Rows of each step of an epoch over all ranks, in the order of the plan; or pieces, sorted."""
    found: dict[int, list[Any]] = {}
    for batches in zip(*(rank["epochs"][epoch] for rank in ranks), strict=True):
        assert len({(batch["step"], batch["micro_batch"]) for batch in batches}) == 1
        rows = found.setdefault(batches[0]["step"], [])
        for j in range(max(len(batch["rows"]) for batch in batches)):
            rows += [batch["rows"][j] for batch in batches if j < len(batch["rows"])]
    if not ordered:
        return {
            step: sorted(piece for row in rows for piece in row) for step, rows in found.items()
        }
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_union_of_ranks_is_the_stream_of_one_process(job: Any, name: str) -> None:
    ranks = [rank["deliver"][name] for rank in job[1]]
    alone = two_epochs(make(name, 1))
    for epoch in range(2):
        assert [rank["lengths"][epoch] for rank in ranks] == [alone["lengths"][epoch]] * len(ranks)
        assert {len(rank["epochs"][epoch]) for rank in ranks} == {alone["lengths"][epoch]}
        ordered = name not in UNORDERED
        found = steps(ranks, epoch, ordered=ordered)
        assert found == steps([alone], epoch, ordered=ordered)
        assert found, "there is something to deliver"
    empty = [b for rank in ranks for epoch in rank["epochs"] for b in epoch if not b["rows"]]
    assert all(batch["num_tokens"] == batch["num_items"] == 0 for batch in empty)
    assert sum(rank["dummy_rows"] for rank in ranks) == len(empty)


@pytest.mark.parametrize("name", CASES)
def test_every_rank_knows_the_labels_of_a_step_without_asking(job: Any, name: str) -> None:
    ranks = [rank["deliver"][name] for rank in job[1]]
    for rank in ranks:
        told = {b["step"]: b["num_items_step_global"] for epoch in rank["epochs"] for b in epoch}
        assert [list(entry) for entry in told.items()] == rank["added_up"]
        assert rank["added_up"] == ranks[0]["added_up"]
    assert sum(items for _, items in ranks[0]["added_up"]) > 0


@pytest.mark.parametrize("name", CASES)
def test_c81_the_state_is_the_same_on_every_rank(job: Any, name: str) -> None:
    states = [rank["deliver"][name]["state"] for rank in job[1]]
    assert all(state == states[0] for state in states)
    alone = json.loads(json.dumps(two_epochs(make(name, 1))["state"]))
    for state in (alone, states[0]):
        for count in ("dummy_rows", "slots"):  # these follow from how many ranks there are
            del state["all_ranks"][count]
    assert states[0] == alone


def test_c38_gradients_of_a_step_over_ranks_and_micro_batches_are_those_of_one_batch(
    job: Any,
) -> None:
    loader = make("accumulate", 1, accumulate=1, batch_size=8)
    whole = rank_job.gradient(rank_job.bigrams(), loader, 1)
    assert any(whole)
    for rank in job[1]:
        assert sorted(rank["gradients"]) == ["ddp", "fsdp"]
        for gradient in rank["gradients"].values():
            assert gradient == pytest.approx(whole, rel=1e-9, abs=1e-15)


def test_c81_a_checkpoint_puts_every_rank_at_its_place(job: Any) -> None:
    for rank in job[1]:
        for name, found in rank["checkpoint"].items():
            assert found["same"] == [True, True], name
            assert found["rest"], name


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_checkpoint_of_several_ranks_is_loaded_by_one(job: Any) -> None:
    folder, ranks = job
    for name in ranks[0]["checkpoint"]:
        loader, model = make(name, 1), torch.nn.Linear(2, 2)
        dcp.load({"model": model, "itself": loader}, checkpoint_id=folder / name)
        rest = {"epochs": [[told(batch) for batch in loader]]}
        saved = [{"epochs": [rank["checkpoint"][name]["rest"]]} for rank in ranks]
        assert steps([json.loads(json.dumps(rest))], 0, ordered=True) == steps(
            saved, 0, ordered=True
        )


def test_c70_evaluation_comes_to_the_same_sum_on_any_number_of_ranks(job: Any) -> None:
    alone = rank_job.evaluation(job[0])
    predicted = {entry[1] for entry in alone}
    assert len(predicted) == 1
    for rank in job[1]:
        for (loss, count, _), (loss_alone, count_alone, _) in zip(
            rank["evaluation"], alone, strict=True
        ):
            assert count == count_alone
            assert loss == pytest.approx(loss_alone, rel=1e-10)
    assert alone[0][0] == pytest.approx(alone[1][0], rel=1e-10)


@pytest.mark.parametrize("names", ["dp cp", "dp tp", "dp_replicate dp_shard", "tp dp"])
def test_a_mesh_deals_data_to_its_data_parallel_ranks(job: Any, names: str) -> None:
    ranks = [rank["meshes"][names] for rank in job[1]]
    world_size = ranks[0]["share"][1]
    data = [name for name in names.split() if name.startswith("dp")]
    same = len(ranks) // world_size
    for rank in ranks:
        cp_rank = rank["place"].get("cp")
        assert rank["cp"] == ([None, 1] if cp_rank is None else [cp_rank, same])
    groups: dict[tuple[int, ...], list[Any]] = {}  # by their place along these dimensions
    for rank in sorted(ranks, key=lambda rank: rank["share"]):
        groups.setdefault(tuple(rank["place"][name] for name in data), []).append(rank)
    shares = [[rank["share"] for rank in group] for group in groups.values()]
    assert shares == [[[number, world_size]] * same for number in range(world_size)]

    whole = list(make("rows", 1, batch_size=world_size))
    for i, batch in enumerate(whole):
        found = [[rank["batches"][i] for rank in group] for group in groups.values()]
        for of_group in found:  # of context parallelism each has a share, and is told of all
            assert all(told == of_group[0][0] for told, _ in of_group)
        rows = [of_group[0][0]["rows"] for of_group in found]
        assert [row for mine in rows for row in mine] == rank_job.rows_of(batch)
        total = sum(tokens for of_group in found for _, tokens in of_group)
        times = 1 if "cp" in names.split() else same
        assert total == times * int(batch["input_ids"].sum())
    assert all(len(rank["batches"]) == len(whole) for rank in ranks)


def log(folder: Path) -> dict[tuple[str, str], dict[int, list[Any]]]:
    """(ranks, attempt) of the job -> what its ranks wrote down, batch by batch."""
    jobs: dict[tuple[str, str], dict[int, list[Any]]] = {}
    for path in folder.glob("*.jsonl"):
        world_size, attempt, rank = path.stem.split("-")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        jobs.setdefault((world_size, attempt), {})[int(rank)] = lines
    return jobs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*tokens were dropped")
def test_c80_a_killed_job_goes_on_with_other_ranks(tmp_path: Path) -> None:
    """4 ranks, one is killed; 2 ranks, one is killed and torchrun starts again; then 3 ranks."""
    assert torchrun(4, "train", tmp_path, 1, 99, "2 3") != 0
    (second, *_) = run(tmp_path, 2, "train", 2, 6, "0 5", restarts=1)
    (third, *others) = run(tmp_path, 3, "train", 1, 9, "")
    assert third["begun"] == 6
    assert second["begun"] == 5, "the attempt that was killed had saved up to there"
    assert all(other == third for other in others), "one state for all ranks"

    alone = make("mixture", 1, batch_size=12, drop_last=True)
    wanted = {batch.step: rank_job.rows_of(batch) for _ in range(3) for batch in alone}
    finished = set()
    jobs = log(tmp_path)
    assert sorted(jobs) == [("2", "0"), ("2", "1"), ("3", "0"), ("4", "0")]
    for ranks in jobs.values():
        # Of a step in which one was killed not all ranks have written down what they got.
        given = min(len(lines) for lines in ranks.values())
        found = [{"epochs": [lines[:given]]} for _, lines in sorted(ranks.items())]
        for step, rows in steps(found, 0, ordered=True).items():
            assert rows == wanted[step][: len(rows)]
            if len(rows) == 12:
                finished.add(step)
    assert finished == set(range(9))
