"""TRL: pack_dataset packs a datasets.Dataset and moves the tokens too, so its time is not that of
planning alone. Tokens of one byte are the cheapest it can get."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from rivals.packing.rival import Rival


def prepare(lengths: npt.NDArray[np.int64], capacity: int) -> Any:
    import datasets
    import pyarrow as pa
    import trl.data_utils  # noqa: F401, so that pack() need not wait for it

    lengths = lengths[lengths > 0]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    tokens = pa.ListArray.from_arrays(offsets, np.zeros(offsets[-1], np.uint8))
    return datasets.Dataset(pa.table({"input_ids": tokens}))


def pack(dataset: Any, capacity: int) -> Any:
    from trl.data_utils import pack_dataset

    whole = {"batch_size": len(dataset), "keep_in_memory": True, "load_from_cache_file": False}
    return pack_dataset(dataset, capacity, "bfd_split", whole)


def rivals() -> list[Rival]:
    if find_spec("trl") is None:
        return []
    return [Rival("trl bfd_split, whole table", prepare, pack, len, most_documents=100_000)]
