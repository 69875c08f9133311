"""Where kernels run in tests: on the host, thread after thread, and on a device where there is one.

Both take bytes and give bytes back. What a kernel writes lies between guards, is poisoned before,
and must come out the same whichever order threads take turns in.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch

import brimful as bf

GUARD = 64  # bytes before and after what a kernel writes
POISON = 0xA5


class Kernel(Protocol):
    def run_on_host(self, *, backward: bool = ..., garbage: int = ...) -> None: ...

    def launch(self, device: int, stream: int) -> None: ...


class Host:
    """Runs a kernel twice, forward and backward, with other bytes in shared memory."""

    compare_orders = True  # not where threads are meant to race

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []
        self.rooms: dict[int, tuple[np.ndarray, Any]] = {}

    def give(self, array: np.ndarray | None) -> int:
        """The address of a copy of the array; 0 for None."""
        if array is None:
            return 0
        block = aligned(array.nbytes)
        block[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.kept.append(block)
        return block.ctypes.data

    def room(self, count: int, dtype: Any) -> int:
        """The address of poisoned room for what a kernel writes."""
        size = count * np.dtype(dtype).itemsize
        block = aligned(size + 2 * GUARD)
        block[:] = POISON
        address = block.ctypes.data + GUARD
        self.rooms[address] = block, dtype
        return address

    def run(self, kernel: Kernel) -> None:
        kernel.run_on_host()
        if not self.compare_orders:
            return
        forward = [block.copy() for block, _ in self.rooms.values()]
        for block, _ in self.rooms.values():
            block[:] = POISON
        kernel.run_on_host(backward=True, garbage=0x7F)
        for block, before in zip(self.rooms.values(), forward, strict=True):
            assert np.array_equal(block[0], before)

    def take(self, address: int) -> np.ndarray:
        """What a kernel wrote there. Its guards are as they were."""
        block, dtype = self.rooms[address]
        return between_guards(block, dtype)


class Cuda:
    """Runs a kernel once, on the current stream."""

    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []
        self.rooms: dict[int, tuple[torch.Tensor, Any]] = {}

    def give(self, array: np.ndarray | None) -> int:
        if array is None:
            return 0
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.kept.append(torch.from_numpy(flat.copy()).cuda())
        return self.kept[-1].data_ptr()

    def room(self, count: int, dtype: Any) -> int:
        size = count * np.dtype(dtype).itemsize
        block = torch.full((size + 2 * GUARD,), POISON, dtype=torch.uint8, device="cuda")
        address = block.data_ptr() + GUARD
        self.rooms[address] = block, dtype
        return address

    def run(self, kernel: Kernel) -> None:
        stream = torch.cuda.current_stream()
        kernel.launch(stream.device_index, stream.cuda_stream)

    def take(self, address: int) -> np.ndarray:
        block, dtype = self.rooms[address]
        return between_guards(block.cpu().numpy(), dtype)


# A machine with a GPU runs every test on both.
PLACES: list[type[Host] | type[Cuda]] = [Host]
if bf.device.available() and torch.cuda.is_available():
    PLACES.append(Cuda)


def aligned(size: int) -> np.ndarray:
    """Bytes that begin at a multiple of 64, as a device's memory does."""
    block = np.empty(size + 64, np.uint8)
    skip = -block.ctypes.data % 64
    return block[skip : skip + size]


def between_guards(block: np.ndarray, dtype: Any) -> np.ndarray:
    assert (block[:GUARD] == POISON).all()
    assert (block[-GUARD:] == POISON).all()
    return block[GUARD:-GUARD].view(dtype)
