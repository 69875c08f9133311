"""Batches as arrays of JAX. The loader stays what it is: its state, its length and its counts.

On a CPU JAX takes numpy arrays at 64-byte boundaries as they are, and holds on to them; and a slot
of the loader's memory is used again when the last array over it is gone, JAX's among them. So
columns of a dtype that JAX has are not copied there, and other devices have time to copy. Checked
with jax 0.10 on CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import PlanError
from brimful.batch import Batch
from brimful.extras import require

jax = require("jax", "jax", "brimful.integrations.jax")

# Where XLA takes an array on a CPU as it is.
_ALIGNMENT = 64


def arrays(batch: Batch, *, sharding: Any = None) -> dict[str, Any]:
    """The columns of a batch as `jax.Array`s of the same shapes, and `segment_ids`: a pytree for
    `step(params, arrays(batch))`.

    int64 columns become int32 unless JAX was told to have 64 bits (`jax_enable_x64`), and a value
    that int32 has no room for is an error. Counts are the batch's own: pass
    `batch.num_items_step_global` as an argument. A batch may have fewer rows at the end of an
    epoch, for which jit compiles anew: `drop_last=True` keeps shapes constant, layout "rows" too.

    `segment_ids` are int32 of the columns' shape: 1, 2, ... in each row, and 0 on unused ends. A
    token attends to tokens of its own number: they are the `q` and `kv` of the SegmentIds that
    Pallas' flash and splash attention take, `decoder_segment_ids` of MaxText, and for
    `jax.nn.dot_product_attention(..., is_causal=True, mask=mask)` the mask is
    `ids[:, None, :, None] == ids[:, None, None, :]`.

    Args:
        batch: of a native loader, in host memory.
        sharding: a `jax.sharding.Sharding` over the devices of this process, as
            `NamedSharding(mesh, PartitionSpec("data"))`, or a device. None: JAX's default device.
            A loader's rank and world size are those of processes (`jax.process_index()`).

    Raises:
        PlanError: a value that int32 has no room for; a batch on a device; a share of a
            context-parallel group.
    """
    if not batch._on_host():
        raise PlanError(
            f"the batch is on {batch.cu_seqlens.device}, in torch's memory: leave device= out, and "
            f"JAX copies batches to its own devices"
        )
    batch._refuse_share("brimful.integrations.jax.arrays", "segment ids speak of whole sequences")
    columns = {name: _narrow(name, np.asarray(column)) for name, column in batch.items()}
    columns["segment_ids"] = _segment_ids(batch)
    return dict(zip(columns, jax.device_put([*columns.values()], sharding), strict=True))


def _narrow(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The column in the dtype that JAX would make of it, which cuts off what has no room."""
    dtype = jax.dtypes.canonicalize_dtype(column.dtype)
    if dtype == column.dtype:
        return column
    room = np.iinfo(dtype)
    for value in (column.min(), column.max()):
        if not room.min <= value <= room.max:
            raise PlanError(
                f"{name} holds {value}, and {dtype} of JAX ends at {room.max}: let JAX have 64 "
                f'bits with jax.config.update("jax_enable_x64", True)'
            )
    narrow = _aligned(column.shape, dtype)
    np.copyto(narrow, column, casting="same_kind")
    return narrow


def _segment_ids(batch: Batch) -> npt.NDArray[np.int32]:
    rows, width = batch._shape()
    ends = batch._real_ends()
    of_row = ends[:-1] // max(width, 1)
    numbers = np.arange(1, len(ends), dtype=np.int32)
    numbers -= np.searchsorted(of_row, of_row).astype(np.int32)
    ids = _aligned((rows, width), np.int32)
    ids.reshape(-1)[:] = np.repeat(np.where(batch.documents < 0, 0, numbers), np.diff(ends))
    return ids


def _aligned(shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """An array of its own that JAX need not copy."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    array: npt.NDArray[Any] = memory[begin : begin + size].view(dtype).reshape(shape)
    return array
