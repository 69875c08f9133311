"""Batches that a loader delivers on a device.

Threads of brimful fill page-locked memory and queue copies; what only torch can do is done here, in
the thread that asks for batches: each batch goes into one block of torch's memory, allocated ahead
for the copy stream, and is made of views of it.
"""

from __future__ import annotations

from typing import Any

from brimful import _core
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.device_torch import TorchCuda
from brimful.torch_module import torch_if_installed


def cuda_of(name: str) -> TorchCuda:
    """The device of this name: "cuda", which is torch's current one, or "cuda:1"."""
    return TorchCuda(name)


class DeviceFeed:
    """The device of one loader, and what all its passes share.

    Raises:
        DeviceError: the device cannot be used; it says why.
    """

    def __init__(
        self, name: str, config: LoaderConfig, layout: _core.Layout, corpus: Corpus
    ) -> None:
        self.cuda = cuda_of(name)
        with self.cuda.selected():
            self.transfer = _core.Transfer(self.cuda.api, self.cuda.index)
        self.copies = self.cuda.external_stream(self.transfer.copy_stream)
        self.layout = _core.DeviceLayout(layout, corpus._native)
        self.fields = config.fields
        # Batches that may be begun and not yet taken.
        self.ahead = config.depth if config.num_workers else 1


class DeviceBlocks:
    """The blocks that batches of one stream go to, and the columns of those that are there."""

    def __init__(self, feed: DeviceFeed) -> None:
        torch = torch_if_installed()
        dtypes = {"document_ids": torch.int32, "loss_weights": torch.float32}
        self._columns = [
            (offset, dtypes.get(name, torch.int64))
            for name, offset in zip(feed.fields, feed.layout.offsets, strict=True)
        ]
        self._int32 = torch.int32
        self._feed = feed
        self._filling: dict[int, Any] = {}  # by address
        self.courier = _core.Courier(feed.transfer, feed.layout)
        with feed.cuda.selected():
            self._supply(feed.ahead)

    def _supply(self, blocks: int) -> None:
        """Makes it so many."""
        feed = self._feed
        while len(self._filling) < blocks:
            block = feed.cuda.allocate(feed.layout.bytes, feed.copies)
            self._filling[block.data_ptr()] = block
            self.courier.add_destination(block.data_ptr())

    def next(self, stream: _core.Stream) -> Any:
        """As the stream's own next(). The current stream waits for the batch, the host does not."""
        stream.refuse_if_forked()  # torch would say something else
        feed = self._feed
        with feed.cuda.selected():
            self._supply(feed.ahead + 1)
            compute = feed.cuda.current_stream()
            filled = stream.next_on(compute.cuda_stream)
            if filled is not None:
                feed.cuda.record_use(self._filling[filled[0][0]], compute)
        return filled

    def tensors(self, place: tuple[int, int, int, int], _: Any) -> tuple[list[Any], Any]:
        """The columns [rows, columns] of a batch and its cu_seqlens, as views of its block."""
        address, rows, columns, entries = place
        block = self._filling.pop(address)
        cu_seqlens = block[: entries * 4].view(self._int32)
        return [
            block[offset : offset + rows * columns * dtype.itemsize].view(dtype).view(rows, columns)
            for offset, dtype in self._columns
        ], cu_seqlens
