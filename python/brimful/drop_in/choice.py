"""A call of `brimful.DataLoader(...)`: what was given, and torch's loader where that serves."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from brimful.drop_in.path import Path, choose_path
from brimful.extras import require

if TYPE_CHECKING:
    from brimful.drop_in.torch_loader import TorchLoader

Initializer = TypeVar("Initializer", bound=Callable[..., None])


def torch_loader_or_path(
    loader_class: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> TorchLoader | Path:
    """torch's loader where the rule says so, made of the arguments; else the path, native.

    Raises:
        TypeError: the dataset is missing, or an argument is given twice or in no place of torch's.
        ModuleNotFoundError: torch's path without torch.
    """
    dataset, given, path = _choose(inspect.signature(loader_class), args, keywords)
    if path.native:
        return path
    torch_path = importlib.import_module("brimful.drop_in.torch_loader")
    loader: TorchLoader = torch_path.TorchLoader(dataset, **given)
    return loader


def choosing_for_derived(init: Initializer) -> Initializer:
    """`__init__` of `brimful.DataLoader` that chooses for classes derived from it: theirs decides
    about the arguments, so that they are not known before. Raises what `torch_loader_or_path` does.
    """
    signature = inspect.signature(init)

    @functools.wraps(init)
    def choose_and_init(loader: Any, *args: Any, **keywords: Any) -> None:
        if not hasattr(loader, "_path"):
            dataset, given, path = _choose(signature, (loader, *args), keywords)
            if not path.native:
                derived = importlib.import_module("brimful.drop_in.derived")
                derived.serve_by_torch(loader, dataset, given)
                return
            loader._path = path
        init(loader, *args, **keywords)

    return cast(Initializer, choose_and_init)


def _choose(
    signature: inspect.Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], Path]:
    """The dataset, the other arguments that were given, and the path, which can be gone."""
    given = dict(signature.bind(*args, **keywords).arguments)
    given.pop("self", None)
    given |= given.pop("settings", {})
    dataset = given.pop("dataset")
    path = choose_path(dataset, given)
    if not path.native:
        require("torch", "torch", f"bf.DataLoader on torch's path ({path.reason})")
    return dataset, given, path
