"""Messages of the library as the command line says it: overlong="split" is --overlong split."""

from __future__ import annotations

import re
from collections.abc import Iterable


def in_flags(message: str, options: Iterable[str]) -> str:
    """The message with each name="value" whose name is one of `options` ("--eos", ...) as a flag.

    Only values in quotes: the name of a folder may well be dtype=uint16.
    """
    names = "|".join(option[2:].replace("-", "_") for option in options if option[:2] == "--")

    def flag(found: re.Match[str]) -> str:
        return f"--{found['name'].replace('_', '-')} {found['value']}"

    written = rf"""\b(?P<name>{names})=(?P<quote>["'])(?P<value>[\w.-]+)(?P=quote)"""
    return re.sub(written, flag, message) if names else message
