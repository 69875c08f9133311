"""Classes that users derive from `brimful.DataLoader`, served by torch's loader.

Only the call of the base's `__init__` tells what such a loader is of; its class has been chosen by
then, and is exchanged for one that is the user's class in front of torch's loader.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from brimful.drop_in.torch_loader import TorchLoader
from brimful.loader import DataLoader


def serve_by_torch(loader: DataLoader, dataset: Any, given: Mapping[str, Any]) -> None:
    """Makes an instance of a class derived from `brimful.DataLoader` one of torch's path."""
    made: Any = loader
    if not isinstance(made, _Derived):
        del made._call  # by which native loaders are copied
        made.__class__ = _torchs(type(loader))
    TorchLoader.__init__(made, dataset, **given)


class _Mro(ABCMeta):
    def mro(cls) -> list[type]:
        """Without the native loader, whose attributes would hide torch's."""
        of_native = set(DataLoader.__mro__) - set(TorchLoader.__mro__)
        return [kind for kind in super().mro() if kind not in of_native]


class _Derived(TorchLoader):
    """Pickled by the name of the user's class, for the one that stands in for it has none."""

    _users_class: type[DataLoader]

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Called where a framework makes another loader by the class of this one."""
        return object.__new__(cls)

    def __reduce__(self) -> tuple[Callable[[type[DataLoader]], Any], tuple[type], dict[str, Any]]:
        return _blank, (self._users_class,), self.__getstate__()


_classes: WeakKeyDictionary[type, type[Any]] = WeakKeyDictionary()  # by those of the users


def _torchs(users_class: type[DataLoader]) -> type[Any]:
    if users_class not in _classes:
        names = ("__module__", "__qualname__", "__doc__")
        namespace = {name: getattr(users_class, name) for name in names}
        namespace["_users_class"] = users_class
        _classes[users_class] = _Mro(users_class.__name__, (users_class, _Derived), namespace)
    return _classes[users_class]


def _blank(users_class: type[DataLoader]) -> Any:
    """An instance before its state is there."""
    return object.__new__(_torchs(users_class))
