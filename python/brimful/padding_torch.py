"""torch tensors unpadded and padded again, with gradients. Imported once a tensor is seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from brimful import _core, padding_device
from brimful.padding_columns import host_runs, within
from brimful.padding_device import DeviceRuns

Where = _core.TokenRuns | DeviceRuns  # for tensors in host memory, and for those on a device


class Torch:
    """Columns that are tensors."""

    def gather(self, where: Where, padded: torch.Tensor, total: int) -> Any:
        return _Gather.apply(padded, where, total)  # type: ignore[no-untyped-call]

    def scatter(self, where: Where, values: torch.Tensor, fill: Any) -> Any:
        return _Scatter.apply(values, where, fill)  # type: ignore[no-untyped-call]

    def holds(self, dtype: torch.dtype, number: float) -> bool:
        if dtype == torch.bool:
            return number in (0, 1)
        if dtype.is_floating_point or dtype.is_complex:
            return within(number, torch.finfo(dtype), whole=False)
        return within(number, torch.iinfo(dtype))


class _Gather(torch.autograd.Function):
    """Each is the other's gradient: a token's goes where the token came from."""

    @staticmethod
    def forward(ctx: Any, padded: torch.Tensor, where: Where, total: int) -> torch.Tensor:
        ctx.where = where
        out = padded.new_empty((total, *padded.shape[2:]))
        if isinstance(where, DeviceRuns):
            padding_device.gather(where, padded, out)
        else:
            _core.gather_tokens(where, _items(padded, 2), _items(out, 1))
        out[where.num_tokens :] = 0
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return Torch().scatter(ctx.where, grad, 0), None, None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, where: Where, fill: Any) -> torch.Tensor:
        ctx.where, ctx.total = where, len(values)
        runs = host_runs(where)
        out = values.new_empty((runs.rows, runs.width, *values.shape[1:]))
        if isinstance(where, DeviceRuns):
            padding_device.scatter(where, values, fill, out)
        else:
            pattern = _items(values.new_full((1,), fill), 1)
            _core.scatter_tokens(where, _items(values, 1), pattern, _items(out, 2))
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return Torch().gather(ctx.where, grad, ctx.total), None, None


def _items(tensor: torch.Tensor, leading: int) -> npt.NDArray[np.uint8]:
    """As `padding_columns.items`; numpy does not know every dtype of torch, but bytes."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    count, each = math.prod(tensor.shape[:leading]), math.prod(tensor.shape[leading:])
    # A single value may be contiguous with any stride, which view() takes for gaps.
    flat = plain.as_strided((plain.numel(),), (1,)).view(torch.uint8).numpy()
    return flat.reshape(count, each * tensor.element_size())
