"""Sets of document lengths that packers are measured on, made from seeds.

Each is (lengths in tokens, int64 [documents]; capacity in tokens). The wide ones have short and
long documents in plenty, as training corpora do; there best fit decreasing is all but optimal. In
the narrow ones a bin holds few documents of like lengths, and it is not. ``code`` is measured, not
drawn: the Python files of the machine, so its size differs from one machine to the next.
"""

import math
import sysconfig
from pathlib import Path

import numpy as np
import numpy.typing as npt

LengthSet = tuple[npt.NDArray[np.int64], int]


def clipped(drawn: npt.NDArray[np.float64], capacity: int) -> LengthSet:
    return np.clip(np.rint(drawn), 1, capacity).astype(np.int64), capacity


def lognormal(n: int, mean: float, sigma: float, capacity: int, seed: int) -> LengthSet:
    """Lognormal lengths of this mean before they are clipped to 1 .. capacity."""
    generator = np.random.default_rng(seed)
    return clipped(generator.lognormal(math.log(mean) - sigma**2 / 2, sigma, n), capacity)


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


def narrow_sets(n: int) -> dict[str, LengthSet]:
    """Images with a text, preference pairs, rollouts: few documents a bin."""
    generator = np.random.default_rng(4)
    tiles = generator.choice([1, 2, 3, 4, 5], n, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    return {
        "normal2700": clipped(generator.normal(2700, 300, n), 8192),
        "normal819": clipped(generator.normal(819, 123, n), 4096),
        "image1024": clipped(1024 + generator.lognormal(math.log(200), 0.7, n), 4096),
        "tiles576": clipped(576 * tiles + generator.lognormal(math.log(150), 0.8, n), 4096),
        "rollouts": clipped(generator.lognormal(math.log(5000), 0.35, n), 16384),
        "pairs": clipped(2 * np.rint(generator.lognormal(math.log(700), 0.4, n)), 4096),
    }


def long_set(n: int) -> LengthSet:
    """A context of 131,072 tokens with documents of 6,000 on average."""
    return lognormal(n, 6000, 1.3, 131072, seed=5)
