"""Sets of document lengths that packers are measured on, made from seeds.

Each is (lengths in tokens, int64 [documents]; capacity in tokens). They are broad: short and long
documents in plenty, as training corpora have them. ``code`` is measured, not drawn: the Python
files of the machine, so its size differs from one machine to the next.
"""

import math
import sysconfig
from pathlib import Path

import numpy as np
import numpy.typing as npt

LengthSet = tuple[npt.NDArray[np.int64], int]


def lognormal(n: int, mean: float, sigma: float, capacity: int, seed: int) -> LengthSet:
    """Lognormal lengths of this mean before they are clipped to 1 .. capacity."""
    drawn = np.random.default_rng(seed).lognormal(math.log(mean) - sigma**2 / 2, sigma, n)
    return np.clip(np.rint(drawn), 1, capacity).astype(np.int64), capacity


def wikipedia(n: int, seed: int) -> LengthSet:
    """Drawn from the lengths of Wikipedia texts cut at 512; see wiki512.txt."""
    counts = np.loadtxt(Path(__file__).with_name("wiki512.txt"), dtype=np.int64).ravel()
    lengths = np.arange(1, len(counts) + 1)
    return np.random.default_rng(seed).choice(lengths, n, p=counts / counts.sum()), 512


def code(capacity: int) -> LengthSet:
    """A quarter of the bytes of each .py file of the standard library, up to `capacity` each."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in sorted(root.rglob("*.py")) if path.is_file()]
    sizes = np.array([path.stat().st_size // 4 for path in files], np.int64)
    return sizes[sizes > 0].clip(max=capacity), capacity


def wide_sets(n: int) -> dict[str, LengthSet]:
    return {
        "pretrain": lognormal(n, 600, 1.0, 4096, seed=1),
        "sft": lognormal(n, 250, 0.9, 2048, seed=2),
        "code": code(8192),
        "wiki": wikipedia(n, seed=3),
    }
