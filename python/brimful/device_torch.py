"""torch's side of a CUDA device: memory, streams, and which device a thread works on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from brimful import _core
from brimful._core import DeviceError
from brimful.extras import require


class TorchCuda:
    """One CUDA device, as the thread that asks for batches uses it.

    Attributes:
        api: what brimful's own threads call.
        index: number of the device.
    """

    def __init__(self, name: str) -> None:
        torch = self._torch = require("torch", "torch", f"device={name!r}")
        self.api = _core.cuda()
        if not torch.cuda.is_available():
            raise DeviceError(
                f"device={name!r}: torch {torch.__version__} finds no CUDA device; install a build "
                "of torch for CUDA, or leave device= out"
            )
        index = torch.device(name).index
        self.index: int = torch.cuda.current_device() if index is None else index
        count = torch.cuda.device_count()
        if self.index >= count:
            raise DeviceError(
                f"device={name!r}: this process sees {count} devices, numbered from 0"
            )

    def selected(self) -> AbstractContextManager[Any]:
        """Makes the thread work on the device, as torch does it: no other gets a context."""
        manager: AbstractContextManager[Any] = self._torch.cuda.device(self.index)
        return manager

    def current_stream(self) -> Any:
        """The stream that the calling thread computes on."""
        return self._torch.cuda.current_stream(self.index)

    def external_stream(self, handle: int) -> Any:
        """A stream of brimful's, for torch."""
        return self._torch.cuda.ExternalStream(handle, device=self.index)

    def allocate(self, num_bytes: int, stream: Any) -> Any:
        """Memory of torch's for work on `stream`: uint8 [num_bytes], unwritten."""
        torch = self._torch
        with torch.cuda.stream(stream):
            return torch.empty(num_bytes, dtype=torch.uint8, device=f"cuda:{self.index}")

    def record_use(self, block: Any, stream: Any) -> None:
        """Tells torch that work on `stream` uses the block: it is lent again only after that."""
        block.record_stream(stream)
