"""brimful: a token loader that fills every training batch to the brim with real tokens."""

from brimful import device, masks
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
from brimful.accumulation import accumulate
from brimful.balance import Balance, balance
from brimful.batch import Batch
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.distribution import Distribution
from brimful.flatten import flatten
from brimful.loader import DataLoader
from brimful.megatron_blend import (
    MegatronBlend,
    MegatronBlendSizes,
    megatron_blend,
    megatron_blend_sizes,
)
from brimful.megatron_order import MegatronIndices, megatron_order, megatron_split
from brimful.mixing import mix
from brimful.opening import open
from brimful.order import MegatronOrder
from brimful.pack_plan import PackPlan
from brimful.packing import pack
from brimful.padding import Unpadded, repad, unpad
from brimful.profiling.profiler import Profiler, profile
from brimful.progress import progress
from brimful.quarantine import BadDocument
from brimful.records import BatchRecord
from brimful.shards import ShardWriter
from brimful.shuffle_quality import ShuffleQuality
from brimful.steps import StepDocuments
from brimful.telemetry import Stats, Totals
from brimful.times import ThreadTimes

__version__ = "0.1.0"

__all__ = [
    "BadDocument",
    "Balance",
    "Batch",
    "BatchRecord",
    "BrimfulError",
    "Corpus",
    "DataLoader",
    "DeviceError",
    "Distribution",
    "FormatError",
    "LoaderConfig",
    "LoaderTimeout",
    "MegatronBlend",
    "MegatronBlendSizes",
    "MegatronIndices",
    "MegatronOrder",
    "PackPlan",
    "PlanError",
    "Profiler",
    "ReadError",
    "RingExhausted",
    "ShardWriter",
    "ShuffleQuality",
    "StateError",
    "Stats",
    "StepDocuments",
    "ThreadTimes",
    "Totals",
    "Unpadded",
    "accumulate",
    "balance",
    "device",
    "flatten",
    "masks",
    "megatron_blend",
    "megatron_blend_sizes",
    "megatron_order",
    "megatron_split",
    "mix",
    "open",
    "pack",
    "profile",
    "progress",
    "repad",
    "unpad",
]
