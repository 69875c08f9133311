"""Hooks on how single loaders of torch's make their iterators, kept apart from these: a loader that
is copied or pickled meanwhile has none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Make = Callable[[], Any]
Hook = Callable[[Make], Any]  # gets what makes the iterator, and makes it

_NAME = "_get_iterator"

_hooks: dict[int, list[Hook]] = {}  # by the identity of the loader, the innermost first
_dispatchers: dict[type[Any], Any] = {}  # what stands in the place of the method of a class


@contextmanager
def hooked(loader: Any, hook: Hook) -> Iterator[None]:
    """While it lasts, the loader's iterators are made by `hook`, those of any other as ever."""
    owner = _owner(loader)
    if owner not in _dispatchers:
        _dispatchers[owner] = _dispatcher(owner, vars(owner)[_NAME])
        setattr(owner, _NAME, _dispatchers[owner])
    _hooks.setdefault(id(loader), []).append(hook)
    try:
        yield
    finally:
        _hooks[id(loader)].remove(hook)
        if not _hooks[id(loader)]:
            del _hooks[id(loader)]
        # The last one puts the methods back, but for those that somebody has replaced in turn.
        for kind in [] if _hooks else list(_dispatchers):
            if vars(kind)[_NAME] is _dispatchers[kind]:
                setattr(kind, _NAME, _dispatchers.pop(kind).__wrapped__)


def _owner(loader: Any) -> type[Any]:
    """The class whose method makes its iterators."""
    return next(kind for kind in type(loader).__mro__ if _NAME in vars(kind))


def _dispatcher(owner: type[Any], original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def get_iterator(loader: Any) -> Any:
        make: Make = functools.partial(original, loader)
        called_first = _owner(loader) is owner  # and not by the method of a derived class
        for hook in _hooks.get(id(loader), ()) if called_first else ():
            make = functools.partial(hook, make)
        return make()

    return get_iterator
