"""Launches native kernels where torch works: on its current stream of a device."""

from __future__ import annotations

import torch

from brimful import _core

Kernel = _core.ExpandKernel | _core.BlockMaskKernel | _core.MoveKernel


def launch(kernel: Kernel, device: torch.device) -> None:
    """Enqueues a kernel on the device's current stream and returns at once.

    Raises:
        DeviceError: the launch failed, or this build of brimful has no CUDA backend.
    """
    stream = torch.cuda.current_stream(device)
    with torch.cuda.device(device):  # torch makes no context on the device that it goes back to
        kernel.launch(stream.device_index, stream.cuda_stream)
