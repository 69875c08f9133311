"""Page-locked memory for batches: blocks of torch's own, which brimful's threads fill.

A non-blocking copy to a device reads host memory later, and torch keeps a block from being used
again until then only if it is one of its own allocator. So a batch is made of views of one block
that torch allocated, in the thread that asks for batches; when the last view dies, the block goes
back to torch.
"""

from __future__ import annotations

from typing import Any

from brimful import _core
from brimful.caller import warn_caller
from brimful.torch_module import torch_if_installed


def pinned_block(num_bytes: int) -> Any:
    """Page-locked memory of torch's: uint8 [num_bytes], unwritten."""
    torch = torch_if_installed()
    # On the CPU, whatever device is torch's default here.
    return torch.empty(num_bytes, dtype=torch.uint8, device="cpu", pin_memory=True)


def can_pin() -> bool:
    """Whether torch can give page-locked memory; says so as torch does where it cannot."""
    torch = torch_if_installed()
    if torch is not None and torch.accelerator.is_available():
        return True
    warn_caller(
        "pin_memory=True but torch has no accelerator here; batches stay in pageable memory"
    )
    return False


class PinnedBlocks:
    """The blocks that one stream is filling, and the columns of what it has filled."""

    def __init__(self, layout: _core.Layout, fields: tuple[str, ...]) -> None:
        torch = torch_if_installed()
        self._num_bytes = layout.slot_bytes
        dtypes = {"document_ids": torch.int32, "loss_weights": torch.float32}
        self._columns = [
            (offset, dtypes.get(name, torch.int64))
            for name, offset in zip(fields, layout.offsets, strict=True)
        ]
        self._filling: dict[int, Any] = {}  # by address; threads write to them until they are taken

    def next(self, stream: _core.Stream) -> Any:
        """As the stream's own next(), which gets as many blocks as it wants before."""
        for _ in range(stream.blocks_wanted):
            block = pinned_block(self._num_bytes)
            self._filling[block.data_ptr()] = block
            stream.supply(block.numpy())
        return stream.next()

    def tensors(self, place: tuple[int, int, int], cu_seqlens: Any) -> tuple[list[Any], Any]:
        """The columns [rows, columns] of a batch, as views of its block, and its cu_seqlens."""
        address, rows, columns = place
        block = self._filling.pop(address)
        return [
            block[offset : offset + rows * columns * dtype.itemsize].view(dtype).view(rows, columns)
            for offset, dtype in self._columns
        ], _pinned(cu_seqlens)


def _pinned(array: Any) -> Any:
    """A copy in page-locked memory of its own, for what is small and known late."""
    tensor = torch_if_installed().from_numpy(array)
    return pinned_block(array.nbytes).view(tensor.dtype).copy_(tensor)
