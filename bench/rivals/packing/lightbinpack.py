"""lightbinpack: C++ packers with a list interface; obfd is its fast best fit decreasing."""

from importlib.util import find_spec
from typing import Any

from rivals.packing.rival import Rival


def rivals() -> list[Rival]:
    if find_spec("lightbinpack") is None:
        return []
    import lightbinpack

    def rival(name: str, pack: Any) -> Rival:
        return Rival(f"lightbinpack {name}", lambda lengths, _: lengths.tolist(), pack, len)

    return [
        rival("nf", lightbinpack.nf),
        rival("ffd", lightbinpack.ffd),
        rival("obfd", lightbinpack.obfd),
        rival("obfdp (all cores)", lightbinpack.obfdp),
    ]
