"""What pack() is given: numbers and arrays of the caller's kinds, as the core takes them."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core


def check_choice(name: str, given: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(given, str) or given not in choices:
        found = f'"{given}"' if isinstance(given, str) else repr(given)
        known = [f'"{choice}"' for choice in choices]
        raise _core.PlanError(
            f"{name}={found} is unknown: choose {', '.join(known[:-1])} or {known[-1]}"
        )


def as_lengths(lengths: npt.ArrayLike) -> npt.NDArray[np.int64]:
    given = _as_integers("lengths", lengths, "they count tokens")
    _check_countable(given, "a length of {} tokens")
    # The plan keeps it: a view, so that the caller's own array can still be written to.
    kept = np.ascontiguousarray(given, np.int64).view()
    kept.flags.writeable = False
    return kept


def as_groups(groups: npt.ArrayLike) -> npt.NDArray[np.int64]:
    # Only equality counts, so that ids over 2**63 - 1 may wrap.
    return np.ascontiguousarray(_as_integers("groups", groups, "they number the groups"), np.int64)


def as_resource(resource: npt.ArrayLike) -> npt.NDArray[np.int64]:
    given = _as_integers("resource", resource, "amounts are counted")
    _check_countable(given, "a resource of {}")
    return np.ascontiguousarray(given, np.int64)


def as_count(name: str, value: Any, unit: str, most: int, least: int = 1) -> int:
    """A whole number; its range is checked in the core, but for what fits no argument of it."""
    try:
        count = as_index(value)
    except TypeError:
        raise TypeError(
            f"{name} is {value!r}; a whole number of {unit} is expected, {least} to {most}"
        ) from None
    if count.bit_length() > 63:
        raise _core.PlanError(f"{name} is {count} {unit}; it must be from {least} to {most}")
    return count


def as_seed(seed: Any) -> int:
    try:
        given = as_index(seed)
    except TypeError:
        raise TypeError(f"seed is {seed!r}; an integer or None is expected") from None
    if not -(2**63) <= given < 2**64:
        raise _core.PlanError(f"seed is {given}; an integer of 64 bits is expected")
    return given % 2**64


def as_seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}; a number of seconds is expected, from 0")
    try:
        seconds = float(value)
    except OverflowError:  # a whole number with more digits than a float
        seconds = -math.inf if value < 0 else math.inf
    if not seconds >= 0:
        raise _core.PlanError(f"{name} is {seconds} seconds; it must be from 0")
    return seconds


def as_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; True or False is expected")
    return bool(value)


def as_index(number: Any) -> int:
    """True is a whole number for Python, but no count."""
    if isinstance(number, bool):
        raise TypeError("a bool")
    return operator.index(number)


def _as_integers(name: str, values: npt.ArrayLike, meaning: str) -> npt.NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: fill it first")
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise _core.PlanError(f"{name} is no array of one number a document: {error}") from error
    if given.ndim != 1:
        raise _core.PlanError(
            f"{name} has the shape {given.shape}; one number a document is expected, "
            f"so one dimension"
        )
    if not given.size:
        return np.empty(0, np.int64)
    if given.dtype.kind not in "iu":
        raise TypeError(f"{name} has the dtype {given.dtype}; integers are expected, as {meaning}")
    return given


def _check_countable(given: npt.NDArray[Any], what: str) -> None:
    if given.dtype == np.uint64 and given.size and given.max() > np.iinfo(np.int64).max:
        i = int(given.argmax())
        raise _core.PlanError(
            f"document {i} has {what.format(given[i])}; at most 2**63 - 1 can be counted"
        )
