"""
The native core of brimful. Private: use the names of the package brimful.
"""

from __future__ import annotations

import collections.abc
import typing

import numpy
import numpy.typing

__all__: list[str] = [
    "BrimfulError",
    "Corpus",
    "DeviceError",
    "FormatError",
    "LoaderTimeout",
    "Packing",
    "PlanError",
    "ReadError",
    "RingExhausted",
    "Source",
    "StateError",
    "TokenStore",
    "arrow_store",
    "device_available",
    "device_why_not",
    "find_boundaries",
    "hash_words",
    "lower_bound_bins",
    "open_llmc",
    "open_megatron",
    "open_npy",
    "open_raw",
    "pack",
    "with_offsets",
]

class BrimfulError(Exception):
    """
    The root of all errors that brimful raises.
    """

class FormatError(BrimfulError, ValueError):
    """
    A file, buffer or token is not what its format promises.
    """

class PlanError(BrimfulError, ValueError):
    """
    Lengths or settings that cannot be packed, mixed or planned.
    """

class StateError(BrimfulError, ValueError):
    """
    A saved state that does not belong to this corpus or these settings.
    """

class ReadError(BrimfulError, RuntimeError):
    """
    A file changed, shrank or could not be read while it was in use.
    """

class DeviceError(BrimfulError, RuntimeError):
    """
    The accelerator or its driver failed.
    """

class RingExhausted(BrimfulError, RuntimeError):
    """
    The consumer keeps every slot of the ring and max_slots forbids another.
    """

class LoaderTimeout(BrimfulError, RuntimeError):
    """
    No batch arrived within the timeout.
    """

class TokenStore:
    def __len__(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def has_loss_mask(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def num_tokens(self) -> int: ...

class Source:
    def __init__(
        self,
        name: str,
        stores: collections.abc.Sequence[TokenStore],
        rows: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None = None,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> numpy.typing.NDArray[numpy.int64] | None: ...
    @property
    def stores(self) -> list[TokenStore]: ...

class Corpus:
    def __init__(
        self,
        sources: collections.abc.Sequence[Source],
        weights: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex] = [],
        unit: str = "tokens",
        when_dry: str = "repeat",
    ) -> None: ...
    def document(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> numpy.ndarray: ...
    def lengths(self) -> numpy.typing.NDArray[numpy.int64]: ...
    def lengths_hash(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def source_documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def source_name(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> str: ...
    def source_tokens(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    @property
    def num_documents(self) -> int: ...
    @property
    def num_sources(self) -> int: ...
    @property
    def num_tokens(self) -> int: ...

class Packing:
    @property
    def bin_offsets(self) -> numpy.typing.NDArray[numpy.int64]: ...
    @property
    def capacity(self) -> int: ...
    @property
    def documents(self) -> numpy.typing.NDArray[numpy.int64]: ...
    @property
    def dropped_documents(self) -> int: ...
    @property
    def dropped_tokens(self) -> int: ...
    @property
    def empty_documents(self) -> int: ...
    @property
    def lengths(self) -> numpy.typing.NDArray[numpy.int32]: ...
    @property
    def num_bins(self) -> int: ...
    @property
    def split_documents(self) -> int: ...
    @property
    def starts(self) -> numpy.typing.NDArray[numpy.int64]: ...
    @property
    def tokens(self) -> int: ...
    @property
    def truncated_documents(self) -> int: ...

def arrow_store(
    name: str,
    values: numpy.ndarray,
    offsets: numpy.ndarray,
    loss_mask: typing.Annotated[numpy.typing.ArrayLike, numpy.uint8] | None = None,
) -> TokenStore: ...
def device_available() -> bool: ...
def device_why_not() -> str: ...
def find_boundaries(
    store: TokenStore, rule: str, id: typing.SupportsInt | typing.SupportsIndex
) -> numpy.typing.NDArray[numpy.int64]: ...
def hash_words(words: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]) -> int: ...
def lower_bound_bins(
    lengths: numpy.typing.NDArray[numpy.int32], capacity: typing.SupportsInt | typing.SupportsIndex
) -> int: ...
def open_llmc(path: typing.Any, dtype: str | None) -> TokenStore: ...
def open_megatron(
    bin: typing.Any, idx: typing.Any, loss: typing.Any | None, unit: str, dtype: str | None
) -> TokenStore: ...
def open_npy(path: typing.Any, dtype: str | None) -> tuple[TokenStore, bool]: ...
def open_raw(path: typing.Any, dtype: str) -> TokenStore: ...
def pack(
    lengths: numpy.typing.NDArray[numpy.int64],
    capacity: typing.SupportsInt | typing.SupportsIndex,
    strategy: str,
    overlong: str,
) -> Packing: ...
def with_offsets(
    store: TokenStore, offsets: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]
) -> TokenStore: ...
