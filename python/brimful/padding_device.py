"""Padded rows and tokens end to end in a device's memory, which a kernel moves there.

How long results are is known there only, so that `unpad`, and `repad` of cu_seqlens or a mask in a
device's memory, wait for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from brimful import _core, kernels
from brimful._core import PlanError


class DeviceRuns:
    """Where tokens stand, as `_core.TokenRuns` says it, with a map in the device's memory."""

    def __init__(self, runs: _core.TokenRuns, token_of_slot: torch.Tensor) -> None:
        self.runs = runs
        self.token_of_slot = token_of_slot  # int32 [rows * width], -1 where there is none

    @property
    def num_tokens(self) -> int:
        return self.runs.num_tokens


def find_tokens(mask: torch.Tensor, multiple: int) -> DeviceRuns:
    """Where a mask in device memory is 1; PlanError where it holds anything but 0 and 1."""
    if mask.ndim != 2:
        raise PlanError(
            f"attention_mask has the shape {list(mask.shape)}; [rows, width] is expected, "
            "a value a slot"
        )
    given = mask.detach()
    given = given.double() if given.is_floating_point() else given
    tokens = given == 1
    strange = ~tokens & (given != 0)
    # One look at the device for everything that the host must know.
    seen = torch.cat([tokens.sum(1), strange.sum().reshape(1)]).tolist()
    if seen[-1]:
        raise PlanError(
            f"attention_mask holds {given[strange][0].item()}; 1 for a token and 0 for padding "
            "are expected"
        )
    runs = _core.count_tokens(np.array(seen[:-1], np.int64), mask.shape[1], multiple)
    flat = tokens.reshape(-1)
    return DeviceRuns(runs, torch.where(flat, flat.cumsum(0) - 1, -1).to(torch.int32))


def lay_segments(runs: _core.TokenRuns, pad_left: bool, device: torch.device) -> DeviceRuns:
    """The map of segments that are rows, with the padding on one side."""
    cu_seqlens = torch.from_numpy(runs.cu_seqlens).to(device, torch.int64)
    begins, ends = cu_seqlens[:-1, None], cu_seqlens[1:, None]
    slots = torch.arange(runs.width, device=device)
    token = ends - runs.width + slots if pad_left else begins + slots
    inside = (token >= begins) & (token < ends)
    return DeviceRuns(runs, torch.where(inside, token, -1).to(torch.int32).reshape(-1))


def gather(where: DeviceRuns, padded: torch.Tensor, out: torch.Tensor) -> None:
    """The tokens of padded [rows, width, ...] -> out [total, ...], which begins with them."""
    _move(where, padded, out, None)


def scatter(where: DeviceRuns, values: torch.Tensor, fill: Any, out: torch.Tensor) -> None:
    """values [total, ...] -> out [rows, width, ...], with `fill` where there is no token."""
    one = torch.full((1,), fill, dtype=values.dtype, device="cpu")
    pattern = one.view(torch.uint8).numpy().tobytes()
    _move(where, out, values, pattern * (16 // len(pattern)))


def _move(where: DeviceRuns, rows: torch.Tensor, tokens: torch.Tensor, fill: bytes | None) -> None:
    rows, tokens = _plain(rows), _plain(tokens)
    items = where.token_of_slot.numel()
    kernel = _core.make_move(
        where.token_of_slot.data_ptr(),
        slots=items,
        item_bytes=rows.numel() // items * rows.element_size() if items else 0,
        rows=rows.data_ptr(),
        tokens=tokens.data_ptr(),
        fill=fill,
    )
    kernels.launch(kernel, rows.device)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as they lie in memory one after the other; itself where they do."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()
