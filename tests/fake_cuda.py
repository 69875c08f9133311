"""A CUDA device for the loader that is none: torch's side of the fake device.

Blocks are ordinary memory of the fake device, wrapped as CPU tensors; what a batch holds is read
through a stream, as a kernel would.
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import brimful as bf
from brimful import _core


class FakeStream:
    """A stream as torch hands it out."""

    def __init__(self, handle: int) -> None:
        self.cuda_stream = handle


class FakeCuda:
    """Stands for `brimful.device_torch.TorchCuda`; `stream` is what the caller computes on."""

    def __init__(self, index: int = 0, **config: Any) -> None:
        times = {"call_seconds": 1e-6, "copy_seconds": 5e-6, "expand_seconds": 3e-6}
        self.api = _core.FakeDevice(**{"devices": index + 1, **times, **config})
        self.index = index
        self._blocks: dict[int, tuple[weakref.ref[Any], int]] = {}  # by id of the reference
        self._unused: list[weakref.ref[Any]] = []
        with self.selected():
            self.stream = FakeStream(self.api.create_stream())

    @contextlib.contextmanager
    def selected(self) -> Iterator[None]:
        """torch goes back without making a context, which the fake's own call would do."""
        before = self.api.selected_device
        self.api.select_device(self.index)
        try:
            yield
        finally:
            self.api.go_back(before)

    def current_stream(self) -> FakeStream:
        return self.stream

    def external_stream(self, handle: int) -> FakeStream:
        return FakeStream(handle)

    def allocate(self, num_bytes: int, stream: FakeStream) -> torch.Tensor:
        self._free_unused()
        address = self.api.allocate(num_bytes, stream.cuda_stream)
        memory = (ctypes.c_uint8 * num_bytes).from_address(address)
        # As in torch, no Python code runs when a block goes: there a Ctrl-C would be dropped.
        reference = weakref.ref(memory, self._unused.append)
        self._blocks[id(reference)] = reference, address
        return torch.from_numpy(np.frombuffer(memory, np.uint8))

    def record_use(self, block: torch.Tensor, stream: FakeStream) -> None:
        self.api.record_stream(block.data_ptr(), stream.cuda_stream)

    @property
    def blocks(self) -> int:
        """That tensors are views of."""
        self._free_unused()
        return len(self._blocks)

    def _free_unused(self) -> None:
        while self._unused:
            _, address = self._blocks.pop(id(self._unused.pop()))
            with contextlib.suppress(bf.DeviceError):  # of a device that fails
                self.api.free(address)

    def on_host(self, tensor: torch.Tensor) -> np.ndarray:
        """What a kernel of the caller's would find in a tensor."""
        size = tensor.numel() * tensor.element_size()
        with self.selected():
            found = self.api.read(self.stream.cuda_stream, tensor.data_ptr(), size)
        dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
        return np.frombuffer(found, dtype).reshape(tuple(tensor.shape))

    def fetched(self, batch: bf.Batch) -> dict[str, np.ndarray]:
        """The columns of a batch and its cu_seqlens, read on the caller's stream."""
        tensors = {**batch, "cu_seqlens": batch.cu_seqlens}
        return {name: self.on_host(tensor) for name, tensor in tensors.items()}
