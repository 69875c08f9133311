"""Python imports this when it starts under `brimful profile -- PROGRAM`, whose PYTHONPATH begins
with this folder; so do the program's own children. It touches nothing until the program imports a
loader: then iterating one is watched (`brimful.profiling.inject`).

The program must not notice: a sitecustomize of the user's runs as ever, sys.path is as it would be
without us, brimful and numpy are imported at the first pass of a loader only, and where they cannot
be the program goes on without being watched.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))
_FOLDER = os.environ.get("BRIMFUL_PROFILE_FOLDER", "")

# Classes with an `__iter__` of their own; what derives from them calls it.
_WATCHED = {
    "torch.utils.data.dataloader": "DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader": "StatefulDataLoader",
    "brimful.loader": "DataLoader",
}


class _Finder:
    """Finds modules as the others do, and patches the watched ones when they have been executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _WATCHED:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _patch(getattr(module, _WATCHED[name]))

        loader.exec_module = exec_module
        return spec


def _patch(loader_class: Any) -> None:
    original = loader_class.__iter__

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        watch = _watcher()
        return original(self) if watch is None else watch(self, original)

    loader_class.__iter__ = __iter__


@functools.cache
def _watcher() -> Any:
    """What to call for `__iter__`; None, with a note for the command, where it cannot be had."""
    try:
        if "brimful" not in sys.modules and importlib.util.find_spec("brimful") is None:
            _import_package()  # the program has a Python environment without brimful
        from pathlib import Path

        from brimful.profiling.inject import watcher

        return watcher(Path(_FOLDER))
    except Exception as error:
        note = f"{sys.executable}: {type(error).__name__}: {error}"
        with open(os.path.join(_FOLDER, f"{os.getpid()}.failed"), "w", encoding="utf-8") as file:
            file.write(note)
        return None


def _import_package() -> None:
    """brimful from where this file lies, without anything else that is installed there."""
    spec = importlib.util.spec_from_file_location(
        "brimful", os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["brimful"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["brimful"]
        raise


def _run_users_own() -> None:
    """The sitecustomize that Python would have imported, if there is one."""
    ours = sys.modules.pop(__name__)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, ours)  # Python looks for it when we return


sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]
if os.path.isdir(_FOLDER):
    sys.meta_path.insert(0, _Finder())
if __name__ == "sitecustomize":
    _run_users_own()
