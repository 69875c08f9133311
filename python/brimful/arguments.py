"""Arguments that the loader does not take, and what to do instead."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping

from brimful._core import PlanError
from brimful.config import LoaderConfig


def refuse_unknown(settings: Mapping[str, object], *, own: Iterable[str]) -> None:
    """Throws TypeError for a setting that is neither the loader's own nor one of LoaderConfig."""
    known = {*own, *(field.name for field in dataclasses.fields(LoaderConfig))} - {"settings"}
    for name in settings.keys() - known:
        alike = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"; did you mean {alike[0]}?" if alike else ""
        raise TypeError(f"DataLoader: unexpected keyword argument {name!r}{hint}")


def refuse_torch_only(**arguments: object) -> None:
    """Throws PlanError for arguments of torch's that brimful has no use for."""
    for name, value in arguments.items():
        if value is not None:
            raise PlanError(
                f"{name}={value!r}: brimful draws and collates documents itself. Leave {name} "
                f"out (shuffle=, seed= and fields= say what it needs to know), or use torch's "
                f"DataLoader for this dataset"
            )
