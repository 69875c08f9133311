"""brimful: a token loader that fills every training batch to the brim with real tokens."""

from brimful import device
from brimful._core import (
    BrimfulError,
    DeviceError,
    FormatError,
    LoaderTimeout,
    PlanError,
    ReadError,
    RingExhausted,
    StateError,
)
from brimful.corpus import Corpus
from brimful.mixing import mix
from brimful.opening import open
from brimful.packing import PackPlan, pack
from brimful.shards import ShardWriter

__version__ = "0.1.0"

__all__ = [
    "BrimfulError",
    "Corpus",
    "DeviceError",
    "FormatError",
    "LoaderTimeout",
    "PackPlan",
    "PlanError",
    "ReadError",
    "RingExhausted",
    "ShardWriter",
    "StateError",
    "device",
    "mix",
    "open",
    "pack",
]
