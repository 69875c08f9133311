"""Other packers, each behind the same small face, to be measured beside brimful.

`rivals()` gives those whose package is installed; requirements.txt names the packages.
"""

from rivals.packing import lightbinpack, textbook, trl
from rivals.packing.rival import Rival


def rivals() -> list[Rival]:
    return [*textbook.rivals(), *lightbinpack.rivals(), *trl.rivals()]
