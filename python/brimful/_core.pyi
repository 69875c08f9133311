"""
The native core of brimful. Private: use the names of the package brimful.
"""

from __future__ import annotations

import collections.abc
import typing

import numpy
import numpy.typing
import typing_extensions

__all__: list[str] = [
    "BlockChecks",
    "BlockMaskKernel",
    "BrimfulError",
    "CopyEvents",
    "Corpus",
    "Counts",
    "Courier",
    "Course",
    "Cursor",
    "Delta",
    "DeviceApi",
    "DeviceError",
    "DeviceLayout",
    "Entry",
    "ExpandKernel",
    "FakeDevice",
    "FormatError",
    "Geometry",
    "Layout",
    "Ledger",
    "LoaderTimeout",
    "Mix",
    "MoveKernel",
    "PackOptions",
    "Packing",
    "ParcelOffsets",
    "ParcelShape",
    "Plan",
    "PlanError",
    "PrefetchConfig",
    "PrefetchCounters",
    "ReadConfig",
    "ReadError",
    "RingExhausted",
    "RowOrder",
    "Source",
    "StarvationCounts",
    "StarvationMeter",
    "StateError",
    "StepSet",
    "Steps",
    "Stream",
    "StreamEnd",
    "Tally",
    "TokenRuns",
    "TokenStore",
    "Transfer",
    "arrow_store",
    "blend",
    "blend_exactly",
    "block_mask_arrays",
    "check_cu_seqlens",
    "check_cursor",
    "check_rows",
    "check_rule",
    "check_segments",
    "count_batches",
    "count_blocks",
    "count_mask",
    "count_other",
    "count_samples",
    "count_tokens",
    "cuda",
    "cuda_calls",
    "device_available",
    "device_why_not",
    "dual_bound",
    "fill_templates",
    "find_boundaries",
    "find_tokens",
    "flatten",
    "gather_tokens",
    "hash_words",
    "lay_segments",
    "losses_ahead",
    "lower_bound_bins",
    "make_block_mask",
    "make_cu_seqlens",
    "make_expand",
    "make_move",
    "open_llmc",
    "open_megatron",
    "open_npy",
    "open_raw",
    "pack",
    "pack_by_patterns",
    "price_patterns",
    "read_loss_mask",
    "read_structure",
    "read_tokens",
    "sample_index",
    "scatter_tokens",
    "settled",
    "unit_histogram",
    "untouched_window",
    "with_cached_offsets",
    "with_offsets",
    "write_bounds",
    "write_dense_mask",
    "write_document_ids",
    "write_labels",
    "write_loss_weights",
    "write_position_ids",
    "write_shift_labels",
    "xxh3",
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

class Mix:
    def __init__(
        self,
        num_sources: typing.SupportsInt | typing.SupportsIndex,
        *,
        schedule: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex,
                collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex],
            ]
        ] = [],
        unit: str = "tokens",
        when_dry: str = "repeat",
        max_passes: collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex] = [],
        epoch_tokens: typing.SupportsInt | typing.SupportsIndex = 0,
    ) -> None: ...

class TokenStore:
    def __len__(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def has_loss_mask(self) -> bool: ...
    @property
    def in_file(self) -> bool: ...
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
    def __init__(self, sources: collections.abc.Sequence[Source]) -> None: ...
    def document(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> numpy.ndarray: ...
    def lengths(self) -> numpy.typing.NDArray[numpy.int64]: ...
    def lengths_hash(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def renew_files(self) -> int: ...
    def source_documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def source_hashes(self) -> numpy.typing.NDArray[numpy.uint64]: ...
    def source_name(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> str: ...
    def source_tokens(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    @property
    def file_counts(self) -> tuple[int, int]: ...
    @property
    def num_documents(self) -> int: ...
    @property
    def num_sources(self) -> int: ...
    @property
    def num_tokens(self) -> int: ...

class BlockChecks:
    def __init__(
        self,
        corpus: Corpus,
        checksums: collections.abc.Sequence[
            tuple[
                typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
                typing.SupportsInt | typing.SupportsIndex,
                typing.SupportsInt | typing.SupportsIndex | None,
            ]
        ],
    ) -> None: ...

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

class PackOptions:
    def __init__(
        self,
        *,
        strategy: str,
        overlong: str = "split",
        buffer: typing.SupportsInt | typing.SupportsIndex = 256,
        max_segments: typing.SupportsInt | typing.SupportsIndex | None = None,
        align: typing.SupportsInt | typing.SupportsIndex = 1,
        min_piece: typing.SupportsInt | typing.SupportsIndex = 1,
        start_token: bool = False,
        seed: typing.SupportsInt | typing.SupportsIndex | None = None,
        groups: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None = None,
        resource: typing.Annotated[numpy.typing.ArrayLike, numpy.int64] | None = None,
        resource_capacity: typing.SupportsInt | typing.SupportsIndex = 0,
        bins: typing.SupportsInt | typing.SupportsIndex | None = None,
        world_size: typing.SupportsInt | typing.SupportsIndex = 1,
    ) -> None: ...
    @property
    def align(self) -> int: ...
    @property
    def max_segments(self) -> int | None: ...
    @property
    def min_piece(self) -> int: ...

class TokenRuns:
    @property
    def cu_seqlens(self) -> numpy.typing.NDArray[numpy.int32]: ...
    @property
    def max_seqlen(self) -> int: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def width(self) -> int: ...

class RowOrder:
    def __init__(
        self,
        samples: collections.abc.Sequence[tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]],
        rows: typing.SupportsInt | typing.SupportsIndex,
        blend: tuple[numpy.ndarray, numpy.ndarray] | None,
    ) -> None: ...
    @property
    def rows(self) -> int: ...

class Plan:
    def __init__(
        self,
        *,
        corpus: Corpus,
        seq_len: typing.SupportsInt | typing.SupportsIndex,
        packing: str,
        overlong: str,
        buffer: typing.SupportsInt | typing.SupportsIndex,
        max_segments: typing.SupportsInt | typing.SupportsIndex | None,
        window: typing.SupportsInt | typing.SupportsIndex,
        shuffle: str,
        shuffle_block: typing.SupportsInt | typing.SupportsIndex,
        seed: typing.SupportsInt | typing.SupportsIndex,
        balance: bool,
        align: typing.SupportsInt | typing.SupportsIndex,
        carry_label: bool,
        mixes: collections.abc.Sequence[
            tuple[
                Mix,
                typing.SupportsInt | typing.SupportsIndex,
                typing.SupportsInt | typing.SupportsIndex,
            ]
        ],
        rows: RowOrder | None,
    ) -> None: ...
    def draws(
        self,
        epoch: typing.SupportsInt | typing.SupportsIndex,
        first: typing.SupportsInt | typing.SupportsIndex,
        count: typing.SupportsInt | typing.SupportsIndex,
    ) -> numpy.typing.NDArray[numpy.int64]: ...
    def epoch_draws(self, epoch: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def num_windows(self, epoch: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def window(
        self,
        epoch: typing.SupportsInt | typing.SupportsIndex,
        window: typing.SupportsInt | typing.SupportsIndex,
    ) -> dict[str, numpy.ndarray]: ...

class Cursor:
    def __init__(
        self,
        epoch: typing.SupportsInt | typing.SupportsIndex = 0,
        window: typing.SupportsInt | typing.SupportsIndex = 0,
        bin: typing.SupportsInt | typing.SupportsIndex = 0,
        step_bins: typing.SupportsInt | typing.SupportsIndex = 0,
        order_step: typing.SupportsInt | typing.SupportsIndex = 0,
        order_phase: typing.SupportsInt | typing.SupportsIndex = 0,
        step: typing.SupportsInt | typing.SupportsIndex = 0,
    ) -> None: ...
    @property
    def bin(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def order_phase(self) -> int: ...
    @property
    def order_step(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def step_bins(self) -> int: ...
    @property
    def window(self) -> int: ...

class Geometry:
    def __init__(
        self,
        *,
        batch_size: typing.SupportsInt | typing.SupportsIndex,
        world_size: typing.SupportsInt | typing.SupportsIndex,
        rank: typing.SupportsInt | typing.SupportsIndex,
        accumulate: typing.SupportsInt | typing.SupportsIndex,
        drop_last: bool,
        trim: bool,
    ) -> None: ...
    @property
    def bins_per_step(self) -> int: ...

class Delta:
    def __init__(self) -> None: ...

class Tally:
    def __init__(self) -> None: ...
    @property
    def bins(self) -> int: ...
    @bins.setter
    def bins(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def documents(self) -> int: ...
    @documents.setter
    def documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def dropped_documents(self) -> int: ...
    @dropped_documents.setter
    def dropped_documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def dropped_tokens(self) -> int: ...
    @dropped_tokens.setter
    def dropped_tokens(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def dummy_rows(self) -> int: ...
    @dummy_rows.setter
    def dummy_rows(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def effective_tokens(self) -> int: ...
    @effective_tokens.setter
    def effective_tokens(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def empty_documents(self) -> int: ...
    @empty_documents.setter
    def empty_documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def skipped_documents(self) -> int: ...
    @skipped_documents.setter
    def skipped_documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def skipped_steps(self) -> int: ...
    @skipped_steps.setter
    def skipped_steps(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def skipped_tokens(self) -> int: ...
    @skipped_tokens.setter
    def skipped_tokens(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def slots(self) -> int: ...
    @slots.setter
    def slots(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def split_documents(self) -> int: ...
    @split_documents.setter
    def split_documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def tokens(self) -> int: ...
    @tokens.setter
    def tokens(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    @property
    def truncated_documents(self) -> int: ...
    @truncated_documents.setter
    def truncated_documents(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...

class StepSet:
    def __init__(
        self,
        ranges: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex
            ]
        ],
    ) -> None: ...
    def contains(self, step: typing.SupportsInt | typing.SupportsIndex) -> bool: ...
    def count(
        self,
        begin: typing.SupportsInt | typing.SupportsIndex,
        end: typing.SupportsInt | typing.SupportsIndex,
    ) -> int: ...
    def from_step(self, step: typing.SupportsInt | typing.SupportsIndex) -> StepSet: ...
    @property
    def ranges(self) -> list[tuple[int, int]]: ...

class Steps:
    def __init__(
        self,
        plan: Plan,
        geometry: Geometry,
        origin: Cursor,
        number: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def before(self, epoch: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def begin(self, step: typing.SupportsInt | typing.SupportsIndex) -> Cursor: ...
    def known_before(self, epoch: typing.SupportsInt | typing.SupportsIndex) -> int | None: ...
    def learn_before(
        self,
        epoch: typing.SupportsInt | typing.SupportsIndex,
        steps: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def learn_count(
        self,
        epoch: typing.SupportsInt | typing.SupportsIndex,
        steps: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def pieces(
        self, step: typing.SupportsInt | typing.SupportsIndex
    ) -> tuple[int, dict[str, numpy.ndarray]]: ...
    @property
    def number(self) -> int: ...
    @property
    def origin(self) -> Cursor: ...

class DeviceApi:
    pass

class FakeDevice(DeviceApi):
    def __init__(
        self,
        *,
        devices: typing.SupportsInt | typing.SupportsIndex = 1,
        call_seconds: typing.SupportsFloat | typing.SupportsIndex = 0.0,
        copy_seconds: typing.SupportsFloat | typing.SupportsIndex = 0.0,
        copy_byte_seconds: typing.SupportsFloat | typing.SupportsIndex = 0.0,
        expand_seconds: typing.SupportsFloat | typing.SupportsIndex = 0.0,
        forgotten: collections.abc.Set[str] = set(),
    ) -> None: ...
    def advance(self, seconds: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    def allocate(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
    ) -> int: ...
    def allocate_pinned(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def begin_capture(
        self, stream: typing.SupportsInt | typing.SupportsIndex, mode: str = "global"
    ) -> None: ...
    def copy_to_device(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
        arg2: typing.SupportsInt | typing.SupportsIndex,
        arg3: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def count(self, call: str) -> int: ...
    def create_event(self) -> int: ...
    def create_stream(self) -> int: ...
    def end_capture(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def fail(self, error: str) -> None: ...
    def free(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def free_pinned(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def go_back(self, device: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def host_writes(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def launch(
        self,
        stream: typing.SupportsInt | typing.SupportsIndex,
        seconds: typing.SupportsFloat | typing.SupportsIndex,
        reads: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex
            ]
        ] = [],
        writes: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex
            ]
        ] = [],
        what: str = "a kernel",
    ) -> None: ...
    def reached(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> bool: ...
    def read(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
        arg2: typing.SupportsInt | typing.SupportsIndex,
    ) -> bytes: ...
    def record(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def record_stream(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def seconds_between(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
    ) -> float: ...
    def select_device(self, device: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def sleep_until(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def synchronize(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def time_of(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> float: ...
    def wait(
        self,
        arg0: typing.SupportsInt | typing.SupportsIndex,
        arg1: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    @property
    def contexts(self) -> set[int]: ...
    @property
    def faults(self) -> list[str]: ...
    @property
    def now(self) -> float: ...
    @property
    def pinned_bytes(self) -> int: ...
    @property
    def selected_device(self) -> int: ...
    @property
    def sleepers(self) -> set[str]: ...

class CopyEvents:
    @property
    def slot_asked(self) -> float: ...
    @slot_asked.setter
    def slot_asked(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...
    @property
    def slot_granted(self) -> float: ...
    @slot_granted.setter
    def slot_granted(self, arg0: typing.SupportsFloat | typing.SupportsIndex) -> None: ...

class Entry:
    pass

class Course:
    pass

class StarvationCounts:
    @property
    def batches(self) -> int: ...
    @property
    def copy(self) -> float: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def handoff(self) -> float: ...
    @property
    def headroom(self) -> float | None: ...
    @property
    def load(self) -> float: ...
    @property
    def ring(self) -> float: ...
    @property
    def starved(self) -> float: ...

class StarvationMeter:
    def __init__(self, device: DeviceApi) -> None: ...
    def abandon(self, arg0: Entry) -> None: ...
    def begin_copy(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> CopyEvents: ...
    def begin_course(self) -> Course: ...
    def end_copy(
        self, arg0: CopyEvents, arg1: typing.SupportsInt | typing.SupportsIndex
    ) -> None: ...
    def enter(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> Entry: ...
    def harvest(self) -> None: ...
    def leave(
        self,
        arg0: Entry,
        arg1: typing.SupportsInt | typing.SupportsIndex,
        arg2: CopyEvents,
        arg3: Course,
    ) -> None: ...
    @property
    def counts(self) -> StarvationCounts: ...

class Layout:
    def __init__(
        self,
        *,
        fields: collections.abc.Sequence[str],
        varlen: bool,
        keep_tail: bool,
        batch_size: typing.SupportsInt | typing.SupportsIndex,
        seq_len: typing.SupportsInt | typing.SupportsIndex,
        pad_token_id: typing.SupportsInt | typing.SupportsIndex,
        continue_positions: bool,
        vocab_size: typing.SupportsInt | typing.SupportsIndex | None,
        quarantine: bool,
        trimmed: bool,
        align: typing.SupportsInt | typing.SupportsIndex,
        carry_label: bool,
        max_segments: typing.SupportsInt | typing.SupportsIndex | None,
        cp_size: typing.SupportsInt | typing.SupportsIndex,
        cp_rank: typing.SupportsInt | typing.SupportsIndex,
        cp_split: str,
    ) -> None: ...
    @property
    def offsets(self) -> list[int]: ...
    @property
    def slot_bytes(self) -> int: ...

class ReadConfig:
    def __init__(self, *, io: str, checks: BlockChecks | None) -> None: ...

class PrefetchConfig:
    def __init__(
        self,
        *,
        num_workers: typing.SupportsInt | typing.SupportsIndex,
        depth: typing.SupportsInt | typing.SupportsIndex,
        max_slots: typing.SupportsInt | typing.SupportsIndex | None,
        timeout: typing.SupportsFloat | typing.SupportsIndex,
        supplied: bool,
    ) -> None: ...

class PrefetchCounters:
    @property
    def first_batch_seconds(self) -> float: ...
    @property
    def queue_depths(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def slots_grown(self) -> int: ...
    @property
    def stall_seconds(self) -> float: ...
    @property
    def threads(self) -> list[typing.Annotated[list[float], "FixedSize(4)"]]: ...

class Counts:
    @property
    def all_ranks(self) -> Tally: ...
    @property
    def bad_documents(self) -> int: ...
    @property
    def bad_tokens(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def exposure(self) -> dict[str, numpy.typing.NDArray[numpy.int64]]: ...
    @property
    def imbalance(self) -> float: ...
    @property
    def rank(self) -> Tally: ...
    @property
    def steps(self) -> int: ...

class Ledger:
    def __init__(self, num_sources: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def bad_documents(
        self, corpus: Corpus, first: typing.SupportsInt | typing.SupportsIndex
    ) -> list[tuple[int, str, str, bool, int, int, int, int]]: ...
    def counts(self) -> Counts: ...
    def records(
        self, since: typing.SupportsInt | typing.SupportsIndex
    ) -> list[
        tuple[
            tuple[int, int, int, int, bool],
            typing.Annotated[list[int], "FixedSize(4)"],
            typing.Annotated[list[float], "FixedSize(5)"],
            typing.Annotated[list[int], "FixedSize(2)"],
            typing.Annotated[list[float], "FixedSize(5)"],
            tuple[int, int],
            int | None,
        ]
    ]: ...
    def restart(self) -> None: ...
    def restore(
        self,
        all_ranks: Tally,
        exposure: collections.abc.Mapping[
            str, typing.Annotated[numpy.typing.ArrayLike, numpy.int64]
        ],
        ahead: Delta,
    ) -> None: ...
    @property
    def num_records(self) -> int: ...

class Transfer:
    def __init__(
        self, api: DeviceApi, device: typing.SupportsInt | typing.SupportsIndex
    ) -> None: ...
    def starved_batches(
        self, since: typing.SupportsInt | typing.SupportsIndex
    ) -> list[tuple[int, typing.Annotated[list[float], "FixedSize(5)"]]]: ...
    @property
    def copy_stream(self) -> int: ...
    @property
    def pinned_bytes(self) -> int: ...
    @property
    def starvation(self) -> StarvationCounts: ...

class DeviceLayout:
    def __init__(self, layout: Layout, corpus: Corpus) -> None: ...
    @property
    def bytes(self) -> int: ...
    @property
    def offsets(self) -> list[int]: ...

class Courier:
    def __init__(self, transfer: Transfer, layout: DeviceLayout) -> None: ...
    def add_destination(self, address: typing.SupportsInt | typing.SupportsIndex) -> None: ...

class Stream:
    def __init__(
        self,
        plan: Plan,
        layout: Layout,
        geometry: Geometry,
        cursor: Cursor,
        read: ReadConfig,
        prefetch: PrefetchConfig,
        ledger: Ledger,
        skip: StepSet,
        steps_before: typing.SupportsInt | typing.SupportsIndex,
        courier: Courier | None = None,
    ) -> None: ...
    def close(self) -> None: ...
    def next(self) -> typing.Any: ...
    def next_on(self, compute_stream: typing.SupportsInt | typing.SupportsIndex) -> typing.Any: ...
    def refuse_if_forked(self) -> None: ...
    def supply(self, block: numpy.typing.NDArray[numpy.uint8]) -> None: ...
    @property
    def blocks_wanted(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def counters(self) -> PrefetchCounters: ...
    @property
    def cursor(self) -> Cursor: ...
    @property
    def epoch(self) -> int: ...
    @property
    def epoch_steps(self) -> int | None: ...
    @property
    def passed_steps(self) -> int: ...
    @property
    def standing(self) -> tuple[Cursor, Counts]: ...

class StreamEnd:
    def __init__(self, stream: Stream, kept: typing.Any) -> None: ...

class ParcelOffsets:
    @property
    def bytes(self) -> int: ...
    @property
    def cu_seqlens(self) -> int: ...
    @property
    def document_ids(self) -> int: ...
    @property
    def first_positions(self) -> int: ...
    @property
    def label_bits(self) -> int: ...
    @property
    def lengths(self) -> int: ...
    @property
    def next_tokens(self) -> int: ...
    @property
    def tokens(self) -> int: ...

class ParcelShape:
    def __init__(
        self,
        *,
        segments: typing.SupportsInt | typing.SupportsIndex,
        total: typing.SupportsInt | typing.SupportsIndex,
        token_bytes: typing.SupportsInt | typing.SupportsIndex,
        first_positions: bool = False,
        next_tokens: bool = False,
        label_bits: bool = False,
    ) -> None: ...
    @property
    def offsets(self) -> ParcelOffsets: ...

class ExpandKernel:
    def launch(
        self,
        device: typing.SupportsInt | typing.SupportsIndex,
        stream: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def run_on_host(
        self, *, backward: bool = False, garbage: typing.SupportsInt | typing.SupportsIndex = 165
    ) -> None: ...
    @property
    def blocks(self) -> int: ...
    @property
    def threads(self) -> int: ...

class BlockMaskKernel:
    def launch(
        self,
        device: typing.SupportsInt | typing.SupportsIndex,
        stream: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def run_on_host(
        self, *, backward: bool = False, garbage: typing.SupportsInt | typing.SupportsIndex = 165
    ) -> None: ...
    @property
    def blocks(self) -> int: ...
    @property
    def threads(self) -> int: ...

class MoveKernel:
    def launch(
        self,
        device: typing.SupportsInt | typing.SupportsIndex,
        stream: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def run_on_host(
        self, *, backward: bool = False, garbage: typing.SupportsInt | typing.SupportsIndex = 165
    ) -> None: ...
    @property
    def blocks(self) -> int: ...
    @property
    def threads(self) -> int: ...

def arrow_store(
    name: str,
    values: numpy.ndarray,
    offsets: numpy.ndarray,
    loss_mask: typing.Annotated[numpy.typing.ArrayLike, numpy.uint8] | None = None,
) -> TokenStore: ...
def blend(
    weights: numpy.typing.NDArray[numpy.float64], samples: typing.SupportsInt | typing.SupportsIndex
) -> tuple[numpy.typing.NDArray[numpy.int16], numpy.typing.NDArray[numpy.int64]]: ...
def blend_exactly(
    sizes: numpy.typing.NDArray[numpy.int64], samples: typing.SupportsInt | typing.SupportsIndex
) -> tuple[numpy.typing.NDArray[numpy.int16], numpy.typing.NDArray[numpy.int64]]: ...
def block_mask_arrays(
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    rows: typing.SupportsInt | typing.SupportsIndex,
    with_rows: bool,
    block_q: typing.SupportsInt | typing.SupportsIndex,
    block_kv: typing.SupportsInt | typing.SupportsIndex,
    window: typing.SupportsInt | typing.SupportsIndex | None,
    prefix_lengths: numpy.typing.NDArray[numpy.int64] | None,
    out: tuple[typing.Annotated[numpy.typing.ArrayLike, numpy.int32], ...] | None,
) -> tuple[numpy.typing.NDArray[numpy.int32], ...]: ...
def check_cu_seqlens(cu_seqlens: numpy.typing.NDArray[numpy.int32]) -> None: ...
def check_cursor(plan: Plan, cursor: Cursor) -> None: ...
def check_rows(
    cu_seqlens: numpy.typing.NDArray[numpy.int32], rows: typing.SupportsInt | typing.SupportsIndex
) -> int: ...
def check_rule(
    window: typing.SupportsInt | typing.SupportsIndex | None,
    prefix_lengths: numpy.typing.NDArray[numpy.int64] | None,
) -> None: ...
def check_segments(where: TokenRuns, cu_seqlens: numpy.typing.NDArray[numpy.int64]) -> None: ...
def count_batches(
    plan: Plan,
    geometry: Geometry,
    cursor: Cursor,
    skip: StepSet,
    steps_before: typing.SupportsInt | typing.SupportsIndex,
) -> int: ...
def count_blocks(
    slots: typing.SupportsInt | typing.SupportsIndex,
    size: typing.SupportsInt | typing.SupportsIndex,
) -> int: ...
@typing.overload
def count_mask(
    mask: numpy.typing.NDArray[numpy.int64],
) -> tuple[numpy.typing.NDArray[numpy.int64], bool]: ...
@typing.overload
def count_mask(
    mask: numpy.typing.NDArray[numpy.int32],
) -> tuple[numpy.typing.NDArray[numpy.int64], bool]: ...
@typing.overload
def count_mask(
    mask: numpy.typing.NDArray[numpy.uint8],
) -> tuple[numpy.typing.NDArray[numpy.int64], bool]: ...
@typing.overload
def count_other(
    values: numpy.typing.NDArray[numpy.int64],
    number: typing.SupportsInt | typing.SupportsIndex,
    *,
    skip_first: bool,
) -> int: ...
@typing.overload
def count_other(
    values: numpy.typing.NDArray[numpy.int32],
    number: typing.SupportsInt | typing.SupportsIndex,
    *,
    skip_first: bool,
) -> int: ...
@typing.overload
def count_other(
    values: numpy.typing.NDArray[numpy.uint8],
    number: typing.SupportsInt | typing.SupportsIndex,
    *,
    skip_first: bool,
) -> int: ...
def count_samples(
    tokens: typing.SupportsInt | typing.SupportsIndex,
    seq_len: typing.SupportsInt | typing.SupportsIndex,
    extra_token: bool,
    drop_partial: bool,
) -> int: ...
def count_tokens(
    lengths: numpy.typing.NDArray[numpy.int64],
    width: typing.SupportsInt | typing.SupportsIndex,
    multiple: typing.SupportsInt | typing.SupportsIndex,
) -> TokenRuns: ...
def cuda() -> DeviceApi: ...
def cuda_calls() -> int: ...
def device_available() -> bool: ...
def device_why_not() -> str: ...
def dual_bound(
    sizes: numpy.typing.NDArray[numpy.int32],
    counts: numpy.typing.NDArray[numpy.int64],
    capacity: typing.SupportsInt | typing.SupportsIndex,
    max_items: typing.SupportsInt | typing.SupportsIndex,
    values: numpy.typing.NDArray[numpy.float64],
    grid: typing.SupportsInt | typing.SupportsIndex,
) -> int: ...
def fill_templates(
    sizes: numpy.typing.NDArray[numpy.int32],
    counts: numpy.typing.NDArray[numpy.int64],
    capacity: typing.SupportsInt | typing.SupportsIndex,
    starts: numpy.typing.NDArray[numpy.int64],
    offsets: numpy.typing.NDArray[numpy.int64],
    buckets: numpy.typing.NDArray[numpy.int32],
    copies: numpy.typing.NDArray[numpy.int32],
    times: numpy.typing.NDArray[numpy.int64],
    slack: typing.SupportsInt | typing.SupportsIndex,
    seconds: typing.SupportsFloat | typing.SupportsIndex,
) -> tuple[
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int32],
    numpy.typing.NDArray[numpy.int32],
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int64],
]: ...
def find_boundaries(
    store: TokenStore, rule: str, id: typing.SupportsInt | typing.SupportsIndex
) -> numpy.typing.NDArray[numpy.int64]: ...
def find_tokens(
    mask: numpy.typing.NDArray[numpy.uint8], multiple: typing.SupportsInt | typing.SupportsIndex
) -> TokenRuns: ...
def flatten(
    tokens: collections.abc.Sequence[numpy.ndarray],
    *,
    masks: collections.abc.Sequence[numpy.ndarray | None],
    labels: collections.abc.Sequence[numpy.ndarray | None],
    fields: collections.abc.Sequence[str],
    pad_token_id: typing.SupportsInt | typing.SupportsIndex,
    multiple: typing.SupportsInt | typing.SupportsIndex,
    align: typing.SupportsInt | typing.SupportsIndex,
    max_segments: typing.SupportsInt | typing.SupportsIndex | None,
) -> typing.Any: ...
def gather_tokens(
    where: TokenRuns,
    padded: numpy.typing.NDArray[numpy.uint8],
    values: numpy.typing.NDArray[numpy.uint8],
) -> None: ...
def hash_words(words: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]) -> int: ...
def lay_segments(
    cu_seqlens: numpy.typing.NDArray[numpy.int64],
    rows: typing.SupportsInt | typing.SupportsIndex,
    width: typing.SupportsInt | typing.SupportsIndex,
    pad_left: bool,
) -> TokenRuns: ...
def losses_ahead(
    plan: Plan,
    cursor: Cursor,
    place: Cursor,
    bins_per_step: typing.SupportsInt | typing.SupportsIndex,
) -> Delta: ...
def lower_bound_bins(packing: Packing, options: PackOptions) -> int: ...
def make_block_mask(
    cu_seqlens: typing.SupportsInt | typing.SupportsIndex,
    *,
    segments: typing.SupportsInt | typing.SupportsIndex,
    rows: typing.SupportsInt | typing.SupportsIndex,
    length: typing.SupportsInt | typing.SupportsIndex,
    block_q: typing.SupportsInt | typing.SupportsIndex,
    block_kv: typing.SupportsInt | typing.SupportsIndex,
    out: collections.abc.Mapping[str, typing.SupportsInt | typing.SupportsIndex],
    window: typing.SupportsInt | typing.SupportsIndex = 0,
    prefix_lengths: typing.SupportsInt | typing.SupportsIndex = 0,
) -> BlockMaskKernel: ...
def make_cu_seqlens(
    lengths: numpy.typing.NDArray[numpy.int64],
    row_sizes: numpy.typing.NDArray[numpy.int64],
    total: typing.SupportsInt | typing.SupportsIndex | None,
    max_segments: typing.SupportsInt | typing.SupportsIndex | None,
    align: typing.SupportsInt | typing.SupportsIndex,
    keep_empty: bool,
) -> numpy.typing.NDArray[numpy.int32]: ...
def make_expand(
    shape: ParcelShape,
    block: typing.SupportsInt | typing.SupportsIndex,
    columns: collections.abc.Mapping[str, typing.SupportsInt | typing.SupportsIndex],
    *,
    row: typing.SupportsInt | typing.SupportsIndex,
    pad_token_id: typing.SupportsInt | typing.SupportsIndex = 0,
    weigh_shifted: bool = False,
    cp_size: typing.SupportsInt | typing.SupportsIndex = 1,
    cp_rank: typing.SupportsInt | typing.SupportsIndex = 0,
    per_document: bool = False,
) -> ExpandKernel: ...
def make_move(
    token_of_slot: typing.SupportsInt | typing.SupportsIndex,
    *,
    slots: typing.SupportsInt | typing.SupportsIndex,
    item_bytes: typing.SupportsInt | typing.SupportsIndex,
    rows: typing.SupportsInt | typing.SupportsIndex,
    tokens: typing.SupportsInt | typing.SupportsIndex,
    fill: typing.Any,
) -> MoveKernel: ...
def open_llmc(path: typing.Any, dtype: str | None) -> TokenStore: ...
def open_megatron(
    bin: typing.Any, idx: typing.Any, loss: typing.Any | None, unit: str, dtype: str | None
) -> TokenStore: ...
def open_npy(path: typing.Any, dtype: str | None) -> tuple[TokenStore, bool]: ...
def open_raw(path: typing.Any, dtype: str) -> TokenStore: ...
def pack(
    lengths: numpy.typing.NDArray[numpy.int64],
    capacity: typing.SupportsInt | typing.SupportsIndex,
    options: PackOptions,
) -> Packing: ...
def pack_by_patterns(
    lengths: numpy.typing.NDArray[numpy.int64],
    capacity: typing.SupportsInt | typing.SupportsIndex,
    options: PackOptions,
    offsets: numpy.typing.NDArray[numpy.int64],
    items: numpy.typing.NDArray[numpy.int32],
    copies: numpy.typing.NDArray[numpy.int32],
    times: numpy.typing.NDArray[numpy.int64],
) -> Packing: ...
def price_patterns(
    sizes: numpy.typing.NDArray[numpy.int32],
    counts: numpy.typing.NDArray[numpy.int64],
    capacity: typing.SupportsInt | typing.SupportsIndex,
    max_items: typing.SupportsInt | typing.SupportsIndex,
    values: numpy.typing.NDArray[numpy.float64],
    groups: numpy.typing.NDArray[numpy.int32],
    backwards: bool,
) -> tuple[
    float,
    numpy.typing.NDArray[numpy.int64],
    numpy.typing.NDArray[numpy.int32],
    numpy.typing.NDArray[numpy.int32],
]: ...
def read_loss_mask(
    store: TokenStore,
    begin: typing.SupportsInt | typing.SupportsIndex,
    count: typing.SupportsInt | typing.SupportsIndex,
) -> numpy.typing.NDArray[numpy.uint8]: ...
def read_structure(
    store: TokenStore,
    first: typing.SupportsInt | typing.SupportsIndex,
    count: typing.SupportsInt | typing.SupportsIndex,
) -> tuple[int, numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]: ...
def read_tokens(
    store: TokenStore,
    begin: typing.SupportsInt | typing.SupportsIndex,
    count: typing.SupportsInt | typing.SupportsIndex,
) -> numpy.ndarray: ...
@typing.overload
def sample_index(
    lengths: numpy.typing.NDArray[numpy.int32],
    order: numpy.typing.NDArray[numpy.int32],
    count: typing.SupportsInt | typing.SupportsIndex,
    seq_len: typing.SupportsInt | typing.SupportsIndex,
    extra_token: bool,
    wide: bool,
) -> numpy.ndarray: ...
@typing.overload
def sample_index(
    lengths: numpy.typing.NDArray[numpy.int64],
    order: numpy.typing.NDArray[numpy.int32],
    count: typing.SupportsInt | typing.SupportsIndex,
    seq_len: typing.SupportsInt | typing.SupportsIndex,
    extra_token: bool,
    wide: bool,
) -> numpy.ndarray: ...
def scatter_tokens(
    where: TokenRuns,
    values: numpy.typing.NDArray[numpy.uint8],
    fill: numpy.typing.NDArray[numpy.uint8],
    padded: numpy.typing.NDArray[numpy.uint8],
) -> None: ...
def settled(
    plan: Plan, cursor: Cursor, bins_per_step: typing.SupportsInt | typing.SupportsIndex
) -> Cursor: ...
def unit_histogram(
    lengths: numpy.typing.NDArray[numpy.int64],
    capacity: typing.SupportsInt | typing.SupportsIndex,
    options: PackOptions,
) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64]]: ...
def untouched_window(
    plan: Plan, cursor: Cursor, bins_per_step: typing.SupportsInt | typing.SupportsIndex
) -> Cursor: ...
def with_cached_offsets(
    store: TokenStore,
    path: typing.Any,
    begin: typing.SupportsInt | typing.SupportsIndex,
    entries: typing.SupportsInt | typing.SupportsIndex,
    hash: typing.SupportsInt | typing.SupportsIndex,
) -> TokenStore: ...
def with_offsets(
    store: TokenStore, offsets: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]
) -> TokenStore: ...
def write_bounds(
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    rows: typing.SupportsInt | typing.SupportsIndex,
    prefix_lengths: numpy.typing.NDArray[numpy.int64] | None,
    begin: numpy.typing.NDArray[numpy.int32] | None,
    end: numpy.typing.NDArray[numpy.int32] | None,
    prefix_end: numpy.typing.NDArray[numpy.int32] | None,
) -> None: ...
def write_dense_mask(
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    rows: typing.SupportsInt | typing.SupportsIndex,
    causal: bool,
    window: typing.SupportsInt | typing.SupportsIndex | None,
    prefix_lengths: numpy.typing.NDArray[numpy.int64] | None,
    seen: typing.SupportsInt | typing.SupportsIndex,
    unseen: typing.SupportsInt | typing.SupportsIndex,
    cleared: bool,
    out: numpy.ndarray,
) -> None: ...
def write_document_ids(
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    num_documents: typing.SupportsInt | typing.SupportsIndex,
    lengths: numpy.typing.NDArray[numpy.int64] | None,
    out: numpy.typing.NDArray[numpy.int32],
) -> None: ...
def write_labels(
    ids: numpy.ndarray,
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    loss_mask: numpy.typing.NDArray[numpy.uint8] | None,
    num_documents: typing.SupportsInt | typing.SupportsIndex,
    lengths: numpy.typing.NDArray[numpy.int64] | None,
    out: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def write_loss_weights(
    labels: numpy.typing.NDArray[numpy.int64],
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    out: numpy.typing.NDArray[numpy.float32],
) -> None: ...
def write_position_ids(
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    starts: numpy.typing.NDArray[numpy.int64] | None,
    out: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def write_shift_labels(
    ids: numpy.ndarray,
    cu_seqlens: numpy.typing.NDArray[numpy.int32],
    loss_mask: numpy.typing.NDArray[numpy.uint8] | None,
    num_documents: typing.SupportsInt | typing.SupportsIndex,
    lengths: numpy.typing.NDArray[numpy.int64] | None,
    next_tokens: numpy.typing.NDArray[numpy.int64] | None,
    out: numpy.typing.NDArray[numpy.int64],
) -> None: ...
def xxh3(data: typing_extensions.Buffer) -> int: ...
