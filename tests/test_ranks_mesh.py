"""Coordinates that a DeviceMesh says, on every rank of it, with processes that torch makes up."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

import brimful as bf
from truth import all_pieces, corpus_of

CORPUS = corpus_of([8] * 48)


@pytest.fixture
def as_rank() -> Iterator[Any]:
    """Makes this process a rank of a job of which nobody else is there."""

    def begin(rank: int, world_size: int) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", rank=rank, world_size=world_size, store=FakeStore())

    yield begin
    if dist.is_initialized():
        dist.destroy_process_group()


def loader(mesh: Any, **how: Any) -> bf.DataLoader:
    return bf.DataLoader(CORPUS, seq_len=8, num_workers=0, mesh=mesh, **how)


def coordinates(made: bf.DataLoader) -> tuple[int, int, int, int]:
    config = made.config
    return config.rank, config.world_size, config.cp_rank or 0, config.cp_size


# Sizes and names of meshes, and which of their dimensions are data parallel.
MESHES = {
    "dp": ((4,), ("dp",), "dp"),
    "dp x tp": ((2, 3), ("dp", "tp"), "dp"),
    "dp x cp": ((3, 2), ("dp", "cp"), "dp"),
    "hsdp": ((2, 3), ("dp_replicate", "dp_shard"), "dp_replicate dp_shard"),
    "hsdp of torch's texts": ((2, 2), ("replicate", "shard"), "replicate shard"),
    "ddp x fsdp": ((2, 2), ("ddp", "fsdp"), "ddp fsdp"),
    "pp x hsdp x cp x tp": (
        (2, 2, 2, 2, 2),
        ("pp", "dp_replicate", "dp_shard", "cp", "tp"),
        "dp_replicate dp_shard",
    ),
    "tp in front": ((2, 3), ("tp", "data"), "data"),
    "data parallel in two places": (
        (2, 2, 2),
        ("dp_replicate", "tp", "dp_shard"),
        "dp_replicate dp_shard",
    ),
    "experts borrowed from data": (
        (2, 2, 2),
        ("dp_shard_mod_ep", "dp_shard_in_ep", "tp"),
        "dp_shard_mod_ep dp_shard_in_ep",
    ),
    "tp alone": ((4,), ("tp",), ""),
    "cp alone": ((4,), ("cp",), ""),
}


@pytest.mark.parametrize("name", MESHES)
def test_names_of_dimensions_say_which_share_a_rank_takes(as_rank: Any, name: str) -> None:
    sizes, names, data = MESHES[name]
    count = 1
    for size in sizes:
        count *= size
    dealt: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for rank in range(count):
        as_rank(rank, count)
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
        place = dict(zip(names, mesh.get_coordinate(), strict=True))  # type: ignore[arg-type]
        size = dict(zip(names, sizes, strict=True))
        wanted, world_size = 0, 1
        for dim in data.split():
            wanted = wanted * size[dim] + place[dim]
            world_size *= size[dim]
        found = coordinates(loader(mesh))
        assert found == (wanted, world_size, place.get("cp", 0), size.get("cp", 1))
        if data:  # torch numbers the ranks of these dimensions alike
            flat = mesh[tuple(data.split())]
            flat = flat._flatten() if flat.ndim > 1 else flat
            assert found[:2] == (flat.get_local_rank(), flat.size())
        dealt.setdefault(tuple(place[dim] for dim in data.split()), set()).add(found[:2])
    assert all(len(ranks) == 1 for ranks in dealt.values()), "along other dimensions they agree"
    assert len(set().union(*dealt.values())) == len(dealt), "along data-parallel ones none does"


def test_a_part_of_a_mesh_and_one_without_names(as_rank: Any) -> None:
    as_rank(5, 8)
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "cp"))
    assert coordinates(loader(mesh)) == (0, 2, 1, 2)
    assert coordinates(loader(mesh["dp"])) == (0, 2, 0, 1)
    assert coordinates(loader(mesh["pp", "dp"])) == (0, 2, 0, 1)
    assert coordinates(loader(init_device_mesh("cpu", (8,)))) == (5, 8, 0, 1)
    with pytest.raises(bf.PlanError, match=r"2 dimensions without names, of sizes \(2, 4\)"):
        loader(init_device_mesh("cpu", (2, 4)))


def test_a_part_of_a_mesh_that_deals_nothing_is_pointed_out(as_rank: Any) -> None:
    as_rank(5, 8)
    mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))
    with pytest.warns(UserWarning, match=r"{'tp': 2} has no data-parallel.* 2 of the 8") as caught:
        made = loader(mesh["tp"])
    assert caught[0].filename == __file__
    assert coordinates(made) == (0, 1, 0, 1)


def test_arguments_beside_a_mesh(as_rank: Any) -> None:
    as_rank(3, 4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
    assert coordinates(loader(mesh, cp_size=1)) == (1, 2, 0, 1), "whole batches"
    assert coordinates(loader(mesh, cp_size=2)) == (1, 2, 1, 2)
    assert coordinates(loader(mesh, cp_size=2, cp_rank=1)) == (1, 2, 1, 2)
    assert coordinates(loader(mesh["dp"], cp_size=2, cp_rank=0)) == (1, 2, 0, 2)
    for wrong in (
        {"cp_size": 4},
        {"cp_rank": 0},
        {"cp_size": 2, "cp_rank": 0},
        {"cp_size": 4, "cp_rank": 1},
    ):
        with pytest.raises(bf.PlanError, match="rank 1 of a context-parallel group of 2"):
            loader(mesh, **wrong)
    for both in ({"rank": 1, "world_size": 2}, {"rank": 1}, {"world_size": 2}):
        with pytest.raises(bf.PlanError, match=r"mesh says which.*give the one or the others"):
            loader(mesh, **both)


def test_what_says_nothing_is_refused(as_rank: Any) -> None:
    as_rank(0, 4)
    for names in (("dp_cp", "tp"), ("dp_shard_cp", "tp"), ("dp", "x"), ("DP", "tp")):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=names)
        unknown = next(name for name in names if name not in ("dp", "tp"))
        with pytest.raises(bf.PlanError, match=rf"mesh has dimensions '{unknown}'.*dp_replicate"):
            loader(mesh)
    for nothing in (4, "dp", (2, 2), mesh.mesh):
        with pytest.raises(bf.PlanError, match="DeviceMesh"):
            loader(nothing)


def test_a_process_outside_the_mesh_is_told(as_rank: Any) -> None:
    as_rank(3, 4)
    mesh = DeviceMesh("cpu", [0, 1], mesh_dim_names=("dp",))
    with pytest.raises(bf.PlanError, match=r"rank 3\) is not in the mesh of {'dp': 2}"):
        loader(mesh)


def test_a_mesh_is_an_answer_to_the_warning_of_context_parallelism(as_rank: Any) -> None:
    as_rank(1, 4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader(mesh)
    with pytest.warns(UserWarning, match=r"cp_size=2.*4 processes.*give mesh=") as caught:
        loader(None, cp_size=2, cp_rank=1)
    assert caught[0].filename == __file__


def test_ranks_of_a_mesh_deliver_the_stream_of_one_process(as_rank: Any) -> None:
    whole = all_pieces(loader(None, rank=0, world_size=1, batch_size=4))
    found: dict[int, list[Any]] = {}
    for rank in range(8):
        as_rank(rank, 8)
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp_replicate", "dp_shard", "tp"))
        made = loader(mesh)
        mine = all_pieces(made)
        assert found.setdefault(made.config.rank, mine) == mine
    assert [
        piece for row in zip(*(found[r] for r in range(4)), strict=True) for piece in row
    ] == whole
