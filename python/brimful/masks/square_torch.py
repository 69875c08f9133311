"""Dense masks that are tensors. Imported once torch is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from brimful._core import PlanError
from brimful.masks.square import UNSIGNED, Square, check_out

# numpy does not know every dtype of torch, but their bits.
_SIGNED = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def square(shape: tuple[int, ...], dtype: Any, out: Any) -> Square:
    kind = _kind(dtype)
    cleared = out is None and kind == torch.bool
    if out is None:
        out = torch.from_numpy(np.zeros(shape, bool)) if cleared else torch.empty(shape, dtype=kind)
    else:
        kept = isinstance(out, torch.Tensor) and out.device.type == "cpu" and out.is_contiguous()
        check_out(out, shape, kind, kept)
    values = torch.tensor([True, False] if kind == torch.bool else [0, -torch.inf], dtype=kind)
    seen, unseen = _bits(values)
    return Square(out, _bits(out), int(seen), int(unseen), cleared)


def _kind(dtype: Any) -> torch.dtype:
    try:
        kind = (
            dtype if isinstance(dtype, torch.dtype) else torch.from_numpy(np.empty(0, dtype)).dtype
        )
        if kind == torch.bool or torch.isneginf(torch.tensor(-torch.inf, dtype=kind).float()):
            return kind
    except (TypeError, RuntimeError, OverflowError, ValueError):
        pass
    raise PlanError(f"dtype is {dtype}; bool or a float that holds -inf is expected")


def _bits(tensor: torch.Tensor) -> Any:
    size = tensor.element_size()
    return tensor.detach().view(_SIGNED[size]).numpy().view(UNSIGNED[size])
