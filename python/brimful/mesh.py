"""What a DeviceMesh of torch says about the share of the data that this process takes."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from brimful._core import PlanError
from brimful.caller import warn_caller

# Names of dimensions, as torch, torchtitan, accelerate, Lightning and others have them. Ranks along
# the first kind read different data. Those along the others read the same, which a context-parallel
# group cuts into shares.
DATA_PARALLEL = (
    "dp",
    "dp_replicate",
    "dp_shard",
    "dp_shard_in_ep",
    "dp_shard_mod_ep",
    "data",
    "data_parallel",
    "ddp",
    "fsdp",
    "hsdp",
    "batch",
    "replicate",
    "shard",
)
CONTEXT_PARALLEL = "cp"
MODEL_PARALLEL = (
    "tp",
    "pp",
    "ep",
    "etp",
    "sp",
    "model",
    "tensor",
    "tensor_parallel",
    "pipeline",
    "expert",
    "sequence",
    "ulysses",
)


@dataclass(frozen=True, kw_only=True)
class MeshPlace:
    """Where this process stands in a mesh.

    Attributes:
        rank, world_size: data-parallel coordinates: over all dimensions of that kind, the first
            one of the mesh the slowest.
        cp_size, cp_rank: the context-parallel dimension; None where the mesh has none.
    """

    rank: int
    world_size: int
    cp_size: int | None
    cp_rank: int | None


def mesh_place(mesh: Any) -> MeshPlace:
    """The coordinates that the names of a mesh's dimensions stand for.

    A mesh of one dimension without a name is data parallel.

    Raises:
        PlanError: for what is no DeviceMesh, a dimension whose name says nothing, and a process
            that is not in the mesh.
    """
    if not _is_mesh(mesh):
        raise PlanError(
            f"mesh is {mesh!r}; give a torch.distributed.device_mesh.DeviceMesh, or rank= and "
            f"world_size= of data parallelism"
        )
    sizes = tuple(mesh.size(dim) for dim in range(mesh.ndim))
    names = mesh.mesh_dim_names or (("dp",) if mesh.ndim == 1 else ())
    if not names:
        raise PlanError(
            f"mesh has {mesh.ndim} dimensions without names, of sizes {sizes}; name them "
            f"(mesh_dim_names=), so that the data-parallel ones are known"
        )
    data = _data_parallel(names)
    context = names.index(CONTEXT_PARALLEL) if CONTEXT_PARALLEL in names else None
    coordinate = mesh.get_coordinate()
    described = dict(zip(names, sizes, strict=True))
    distributed = sys.modules["torch"].distributed
    if coordinate is None:
        raise PlanError(
            f"this process (rank {distributed.get_rank()}) is not in the mesh of {described}; make "
            f"loaders in the processes that are"
        )
    if not data and mesh.size() < distributed.get_world_size():
        warn_caller(
            f"the mesh of {described} has no data-parallel dimension, and {mesh.size()} of the "
            f"{distributed.get_world_size()} processes: all such parts read the same data. Give "
            f"the whole mesh where they should not"
        )
    rank = 0
    for dim in data:
        rank = rank * sizes[dim] + coordinate[dim]
    return MeshPlace(
        rank=rank,
        world_size=math.prod(sizes[dim] for dim in data),
        cp_size=None if context is None else sizes[context],
        cp_rank=None if context is None else coordinate[context],
    )


def _is_mesh(mesh: Any) -> bool:
    if "torch" not in sys.modules:  # whoever has one has imported it
        return False
    from torch.distributed.device_mesh import DeviceMesh

    return isinstance(mesh, DeviceMesh)


def _data_parallel(names: tuple[str, ...]) -> list[int]:
    """Numbers of the data-parallel dimensions. Throws PlanError for a name of no known kind."""
    known = {*DATA_PARALLEL, CONTEXT_PARALLEL, *MODEL_PARALLEL}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PlanError(
            f"mesh has dimensions {', '.join(map(repr, unknown))}, and whether ranks along them "
            f"read different data is not known. Data-parallel names are "
            f"{', '.join(DATA_PARALLEL)}; context parallelism is {CONTEXT_PARALLEL}; "
            f"others are {', '.join(MODEL_PARALLEL)}. Rename them, give the data-parallel part of "
            f"the mesh alone, as mesh[names], or rank= and world_size="
        )
    return [dim for dim, name in enumerate(names) if name in DATA_PARALLEL]
