"""Packages that only some parts need: imported where they are used, with an error that says how to
get them. The core needs numpy alone.
"""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, extra: str, purpose: str) -> Any:
    """The module, or an ImportError of one line that names the extra of brimful that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != missing:
            raise
        raise ModuleNotFoundError(
            f"{purpose} needs {missing}, which is not installed; "
            f"run: pip install 'brimful[{extra}]'",
            name=missing,
        ) from None
