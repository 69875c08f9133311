"""The share of the data that this process takes: from arguments, a mesh, or what started it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from brimful._core import PlanError
from brimful.caller import warn_caller
from brimful.config import whole_number
from brimful.mesh import MeshPlace, mesh_place


def share_of_process(
    rank: int | None, world_size: int | None, mesh: Any, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings `rank` and `world_size`, and with a mesh also `cp_size` and `cp_rank`.

    Args:
        rank, world_size: as they were given, or None.
        mesh: a DeviceMesh of torch, or None.
        settings: all others that were given. cp_size=1 counts before what a mesh says: whole
            batches, for trainers that cut them themselves.

    Raises:
        PlanError: for arguments that contradict each other, or make no sense.
    """
    if mesh is not None:
        if rank is not None or world_size is not None:
            raise PlanError(
                f"mesh says which data-parallel rank this is, and so do rank={rank} and "
                f"world_size={world_size}; give the one or the others"
            )
        place = mesh_place(mesh)
        share = _context_parallel(place, settings.get("cp_size"), settings.get("cp_rank"))
        return {"rank": place.rank, "world_size": place.world_size, **share}
    given = rank is not None
    rank, world_size = data_parallel_coordinates(rank, world_size)
    cp_size = settings.get("cp_size", 1)
    if not given and world_size > 1 and cp_size != 1:
        warn_caller(
            f"cp_size={cp_size}, and the {world_size} processes that torch.distributed or torchrun "
            f"numbers were taken for as many data-parallel ranks. Ranks of a context-parallel "
            f"group read the same batches: give mesh=, or rank= and world_size= of data "
            f"parallelism alone"
        )
    return {"rank": rank, "world_size": world_size}


def _context_parallel(place: MeshPlace, cp_size: Any, cp_rank: Any) -> dict[str, Any]:
    """What a mesh adds to the settings `cp_size` and `cp_rank`, None where they were not given."""
    if place.cp_size is None or (cp_size == 1 and cp_rank is None):
        return {}
    if cp_size not in (None, place.cp_size) or cp_rank not in (None, place.cp_rank):
        raise PlanError(
            f"cp_size is {cp_size} and cp_rank is {cp_rank}, and in the mesh this is rank "
            f"{place.cp_rank} of a context-parallel group of {place.cp_size}; leave both out, or "
            f"give cp_size=1 alone for whole batches"
        )
    return {"cp_size": place.cp_size, "cp_rank": place.cp_rank}


def data_parallel_coordinates(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """(rank, world_size) from the arguments, torch.distributed, torchrun's environment, or (0, 1).

    torch is asked only when the program has imported it already. Rank and world size come from
    one place: one of them without the other is a PlanError.
    """
    if (rank is None) != (world_size is None):
        raise PlanError(f"rank is {rank} and world_size is {world_size}; give both or neither")
    if rank is not None and world_size is not None:
        return whole_number("rank", rank), whole_number("world_size", world_size)
    torch = sys.modules.get("torch")
    if (
        torch is not None
        and torch.distributed.is_available()
        and torch.distributed.is_initialized()
    ):
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return _of_environment(os.environ.get("RANK"), os.environ.get("WORLD_SIZE"))


def _of_environment(rank: str | None, world_size: str | None) -> tuple[int, int]:
    """What torchrun says, or a single rank where nobody speaks of several."""
    if rank is None and world_size in (None, "1"):
        return 0, 1
    try:
        return int(rank or ""), int(world_size or "")
    except ValueError:
        raise PlanError(
            f"the environment says RANK={rank!r} and WORLD_SIZE={world_size!r}; both must be "
            f"whole numbers, as torchrun sets them. Set both or neither, or give rank= and "
            f"world_size="
        ) from None
