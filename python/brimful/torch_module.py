"""torch, where it is installed: brimful works without it, on numpy arrays."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def torch_if_installed() -> Any:
    """The module torch, or None where it is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    return torch
