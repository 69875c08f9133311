"""A call of `brimful.DataLoader(...)`: what was given, and torch's loader where that serves."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from brimful.drop_in.path import Path, choose_path
from brimful.extras import require

if TYPE_CHECKING:
    from brimful.drop_in.torch_loader import TorchLoader


def torch_loader_or_path(
    loader_class: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> TorchLoader | Path:
    """torch's loader where the rule says so, made of the arguments; else the path, native.

    Raises:
        TypeError: the dataset is missing, or an argument is given twice or in no place of torch's.
        ModuleNotFoundError: torch's path without torch.
    """
    given = dict(inspect.signature(loader_class).bind(*args, **keywords).arguments)
    given |= given.pop("settings", {})
    dataset = given.pop("dataset")
    path = choose_path(dataset, given)
    if path.native:
        return path
    require("torch", "torch", f"bf.DataLoader on torch's path ({path.reason})")
    torch_path = importlib.import_module("brimful.drop_in.torch_loader")
    loader: TorchLoader = torch_path.make_torch_loader(dataset, given)
    return loader
