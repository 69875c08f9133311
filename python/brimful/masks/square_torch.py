"""Dense masks that are tensors. Imported once torch is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from brimful._core import PlanError
from brimful.masks.square import UNSIGNED, Square, check_out

# numpy does not know every dtype of torch, but their bits.
_BITS: dict[int, Any] = {
    1: (np.uint8, torch.uint8),
    2: (np.int16, torch.int16),
    4: (np.int32, torch.int32),
    8: (np.int64, torch.int64),
}


def square(shape: tuple[int, ...], dtype: Any, out: Any) -> Square:
    kind = _kind(dtype)
    cleared = out is None and kind == torch.bool
    if out is None:
        # Memory of numpy, which asks for huge pages.
        bits = (np.zeros if cleared else np.empty)(shape, _BITS[kind.itemsize][0])
        out = torch.from_numpy(bits).view(kind)
    else:
        kept = isinstance(out, torch.Tensor) and out.device.type == "cpu" and out.is_contiguous()
        check_out(out, shape, kind, kept)
    seen_unseen = [True, False] if kind == torch.bool else [0, -torch.inf]
    values = torch.tensor(seen_unseen, dtype=kind, device="cpu")  # whatever the default is here
    seen, unseen = _bits(values)
    return Square(out, _bits(out), int(seen), int(unseen), cleared)


def _kind(dtype: Any) -> torch.dtype:
    try:
        if not isinstance(dtype, torch.dtype):
            dtype = torch.from_numpy(np.empty(0, dtype)).dtype
        kind: torch.dtype = dtype
        if kind == torch.bool:
            return kind
        if kind.is_floating_point:
            least = torch.tensor(-torch.inf, dtype=kind, device="cpu")
            if torch.isneginf(least.float()):
                return kind
    except (TypeError, RuntimeError, OverflowError, ValueError):
        pass
    raise PlanError(f"dtype is {dtype}; bool or a float that holds -inf is expected")


def _bits(tensor: torch.Tensor) -> Any:
    size = tensor.element_size()
    return tensor.detach().view(_BITS[size][1]).numpy().view(UNSIGNED[size])
