"""Other packers, each behind the same small face, to be measured beside brimful.

`rivals()` gives those whose package is installed; requirements.txt names the packages.
"""

import warnings

from rivals.packing import (
    axolotl,
    lightbinpack,
    llamafactory,
    megatron,
    olmo_core,
    textbook,
    trl,
)
from rivals.packing.rival import Rival


def rivals() -> list[Rival]:
    modules = (textbook, lightbinpack, trl, llamafactory, axolotl, olmo_core, megatron)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they warn of while they are imported is theirs
        return [rival for module in modules for rival in module.rivals()]
