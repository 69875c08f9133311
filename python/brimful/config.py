"""The one place where loader settings and their defaults live."""

from __future__ import annotations

import dataclasses
import numbers
import operator
import re
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from brimful._core import PlanError
from brimful.order import MegatronOrder, check_settings, checked_order
from brimful.packing import Overlong, Strategy
from brimful.steps import checked_skip

FIELDS = (
    "input_ids",
    "labels",
    "shift_labels",
    "position_ids",
    "document_ids",
    "loss_weights",
)


# Strategies of bf.pack that are none for a loader, and what serves instead.
_WHOLE_PLANS = {
    "optimal": 'Choose "best_fit_decreasing" or "streaming"',
    "balanced": 'Choose another strategy with balance="attention"',
}
PACKINGS = (*(name for name in get_args(Strategy) if name not in _WHOLE_PLANS), "bucket")


@dataclass(frozen=True, kw_only=True)
class LoaderConfig:
    """Settings of a `brimful.DataLoader`. Lengths count stored tokens, which are model positions.

    Attributes:
        batch_size: bins of `seq_len` tokens a rank and micro-batch.
        seq_len: capacity of a bin, tokens. Required.
        packing: "streaming", "best_fit_decreasing", "first_fit_decreasing", "best_fit", "concat",
            "pad" (one document a row) or "bucket" (one document a row, documents of like length
            in a step, and a batch as wide as its longest row instead of `seq_len`).
        overlong: what becomes of a document longer than `seq_len`: "split", "truncate", "drop" or
            "error". "concat" cuts wherever a bin is full and needs no rule.
        layout: "rows" gives `[batch_size, seq_len]`; "varlen" the same bins flattened to
            `[1, total]`.
        tail: "keep" or "drop" the unused end of a bin; None keeps it in "rows" and drops it in
            "varlen". "rows" cannot drop it.
        balance: "attention" puts bins of like attention work (the sum of squared document lengths)
            into one step, so that no rank waits long for another; None leaves bins in their order.
            The bins are the same, and stay in their window.
        shuffle: documents are permuted in each epoch and bins in each window (steps, where bins
            are put into them by work or length). "block" permutes blocks of `shuffle_block`
            documents instead, and documents among the blocks that a window holds, for storage that
            hates random reads.
        shuffle_block: documents that stay near each other with shuffle="block".
        seed: any integer of 64 bits; with it the order is fixed on every rank and machine.
        window: documents that are packed together.
        buffer: documents of a window that "streaming" chooses from at a time, up to 2**16.
        max_segments: most documents in a bin; None sets no limit. With a limit `cu_seqlens` has the
            same number of entries in every batch: room for that many documents, and a tail where
            tails are kept, in each of `batch_size` bins; behind the last segment it repeats the
            total. Without, it is exact.
        align: slots of every document are a multiple of it; what is behind its tokens is a gap of
            pad tokens without labels. It divides `seq_len`.
        num_workers: threads that fill batches; 0 fills in the calling thread. Beside threads that
            one makes a batch when none is ready, as long as batches take less than 200 us, files
            are in memory and there is no `timeout`: a Ctrl-C is heard when that batch is done.
        depth: batches ready ahead of the consumer.
        accumulate: micro-batches of an optimizer step.
        drop_last: leave out the last, incomplete step of an epoch, counted.
        fields: per-token columns of a batch, any of `FIELDS`.
        positions: "restart" at 0 for every piece, or "continue" from its place in the document.
        carry_label: the last token of a piece of a split document keeps its label in
            `shift_labels`: the document's next token, which stands in another piece. It is counted.
            Needs `fields` with "shift_labels" and without "labels", which has no place for it. None
            does so where it can be done and `order` has the token there, else not.
        rank, world_size: data-parallel coordinates.
        cp_size, cp_rank: ranks of a context-parallel group, which share every batch, and this
            one's number in it. All ranks of a group have the same `rank` and `world_size`.
        cp_split: what is cut into 2 x `cp_size` chunks, of which a rank holds two: every
            "document", or every "sequence" (a row; the whole of a varlen batch). None cuts
            documents in "varlen" and rows in "rows".
        device: "cuda" (torch's current device) or "cuda:1": batches are on the device, in torch's
            memory, and the current stream waits for them. None leaves them in host memory.
        pin_memory: batches in page-locked memory of torch's own, where torch has an accelerator.
            On a device it means nothing.
        io: "mmap" copies tokens out of mapped files; "pread" reads them, which serves better on
            network file systems. The tokens are the same.
        verify: "checksum" compares every MiB of tokens, when it is read first, with the manifest's
            checksum, and a MiB that differs is a ReadError; None reads without.
        timeout: seconds that `next()` waits for a batch; 0 waits for ever.
        vocab_size: tokens outside `[0, vocab_size)` are bad; None looks for negative ones only.
        bad_documents: what becomes of a document with bad tokens, or without a label because all
            of it is masked: "skip" leaves its place to pad tokens, counted and named, so that the
            plan never changes; "error" is a FormatError.
        pad_token_id: what tails hold.
        ingest: "once" reads a map-style dataset of token ids once, before anything else, into
            temporary shards, which are mapped like any others; None opens what holds tokens.
        skip: numbers of optimizer steps, and ranges of them, that are left out and counted. Steps
            are numbered from 0 through all epochs; a skipped one keeps its number.
        order: None for brimful's own; "megatron" for rows that are the samples of Megatron's
            GPTDataset, in its order, or a `MegatronOrder` that says of which split. It packs and
            shuffles by itself; a window is as many rows as hold about `window` documents. Every
            epoch is the same.
        num_samples: rows of an epoch in that order, over all ranks; it is part of what fixes the
            order. None is one epoch of the corpus.
        max_slots: most slots of the ring when the consumer keeps batches; None sets no limit. Not
            with `pin_memory`, whose memory is torch's.
    """

    batch_size: int = 1
    seq_len: int | None = None
    packing: str = "streaming"
    overlong: str = "split"
    layout: str = "rows"
    tail: str | None = None
    balance: str | None = None
    shuffle: bool | str = False
    shuffle_block: int = 256
    seed: int = 0
    window: int = 16384
    buffer: int = 256
    max_segments: int | None = None
    align: int = 1
    num_workers: int = 2
    depth: int = 4
    accumulate: int = 1
    drop_last: bool = False
    fields: tuple[str, ...] = ("input_ids", "labels", "position_ids")
    positions: str = "restart"
    carry_label: bool | None = None
    rank: int = 0
    world_size: int = 1
    cp_size: int = 1
    cp_rank: int | None = None
    cp_split: str | None = None
    device: str | None = None
    pin_memory: bool = False
    io: str = "mmap"
    verify: str | None = None
    timeout: float = 0
    vocab_size: int | None = None
    bad_documents: str = "skip"
    pad_token_id: int = 0
    max_slots: int | None = None
    skip: tuple[int | range, ...] = ()
    order: str | MegatronOrder | None = None
    num_samples: int | None = None
    ingest: str | None = None

    def __post_init__(self) -> None:
        # None asks for the default where torch's users and ours may write it.
        for name in ("fields", "num_workers"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(type(self), name))
        for name, least in _INTEGERS.items():
            value = _checked_integer(name, getattr(self, name), least)
            object.__setattr__(self, name, value)
        if self.shuffle != "block":
            if not isinstance(self.shuffle, (bool, np.bool_)):
                raise PlanError(f'shuffle is {self.shuffle!r}; it must be True, False or "block"')
            object.__setattr__(self, "shuffle", bool(self.shuffle))  # states are fit for JSON
        order = checked_order(self.order)
        object.__setattr__(self, "order", order)
        if self.carry_label is None:
            has_place = "shift_labels" in self.fields and "labels" not in self.fields
            carries = order is not None and order.extra_token and has_place
            object.__setattr__(self, "carry_label", carries)
        for name in ("drop_last", "carry_label", "pin_memory"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise PlanError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        if self.packing in _WHOLE_PLANS:
            raise PlanError(
                f"packing is {self.packing!r}, which bf.pack has for plans of whole sets of "
                f"documents; the loader packs one window after the other. "
                f"{_WHOLE_PLANS[self.packing]}"
            )
        _check_choice("packing", self.packing, PACKINGS)
        _check_choice("overlong", self.overlong, get_args(Overlong))
        _check_choice("layout", self.layout, ("rows", "varlen"))
        _check_choice("tail", self.tail, (None, "keep", "drop"))
        _check_choice("balance", self.balance, (None, "attention"))
        _check_choice("io", self.io, ("mmap", "pread"))
        _check_choice("verify", self.verify, (None, "checksum"))
        _check_choice("positions", self.positions, ("restart", "continue"))
        _check_choice("bad_documents", self.bad_documents, ("skip", "error"))
        object.__setattr__(self, "device", _checked_device(self.device))
        _check_choice("ingest", self.ingest, (None, "once"))
        _check_choice("cp_split", self.cp_split, (None, "document", "sequence"))
        if self.cp_size > 1 and self.cp_rank is None:
            raise PlanError(
                f"cp_size is {self.cp_size} and cp_rank is missing; say which of the group's "
                f"ranks this is, from 0 to {self.cp_size - 1}"
            )
        if self.pin_memory and self.device is None and self.max_slots is not None:
            raise PlanError(
                "max_slots limits memory of brimful's own, and with pin_memory=True batches are in "
                "torch's; leave one of them out"
            )
        if self.layout == "rows" and self.tail == "drop":
            raise PlanError(
                'tail="drop" needs layout="varlen": rows are all seq_len long. '
                'Choose layout="varlen" or leave tail out'
            )
        object.__setattr__(self, "fields", checked_fields(self.fields))
        object.__setattr__(self, "skip", checked_skip(self.skip))
        if self.carry_label and ("shift_labels" not in self.fields or "labels" in self.fields):
            raise PlanError(
                f"carry_label=True gives the last token of a cut piece a label in shift_labels, "
                f"where labels has no place for it, and fields is {self.fields!r}; ask for "
                f'"shift_labels" and leave "labels" out'
            )
        if (
            isinstance(self.timeout, bool)
            or not isinstance(self.timeout, numbers.Real)
            or not 0 <= self.timeout < 1e9
        ):
            raise PlanError(
                f"timeout is {self.timeout!r}; give seconds from 0 up (0 waits for ever)"
            )
        object.__setattr__(self, "timeout", float(self.timeout))
        if order is not None:
            check_settings(self)
            object.__setattr__(self, "packing", "concat")
        elif self.num_samples is not None:
            raise PlanError(
                f'num_samples is {self.num_samples}, which order="megatron" takes; an epoch of '
                f"brimful's own order is every document once"
            )

    @property
    def capacity(self) -> int:
        """Tokens a bin holds: `seq_len`, which every config has once it is checked."""
        assert self.seq_len is not None
        return self.seq_len

    @property
    def megatron(self) -> MegatronOrder | None:
        """Megatron's order, where rows come in it."""
        assert not isinstance(self.order, str)  # once it is checked
        return self.order

    @property
    def keep_tail(self) -> bool:
        """Whether the unused end of a bin is part of the batch."""
        return self.tail == "keep" or (self.tail is None and self.layout == "rows")

    @property
    def cp_unit(self) -> str:
        """What context parallelism cuts into chunks."""
        return self.cp_split or ("document" if self.layout == "varlen" else "sequence")

    @property
    def is_bucket(self) -> bool:
        """Whether rows are single documents, next to others of like length."""
        return self.packing == "bucket"

    def as_dict(self) -> dict[str, Any]:
        """All settings in effect, by name."""
        return dataclasses.asdict(self)


# Names and least values of the settings that are whole numbers.
_INTEGERS = {
    "batch_size": 1,
    "seq_len": 1,
    "seed": None,
    "shuffle_block": 1,
    "window": 1,
    "buffer": 1,
    "max_segments": 1,
    "align": 1,
    "cp_size": 1,
    "cp_rank": 0,
    "num_workers": 0,
    "depth": 1,
    "accumulate": 1,
    "rank": 0,
    "world_size": 1,
    "vocab_size": 1,
    "pad_token_id": None,
    "max_slots": 1,
    "num_samples": 1,
}
_MOST = {"seed": 2**64 - 1, "num_workers": 1024, "depth": 65536}
_OPTIONAL_INTEGERS = ("max_segments", "cp_rank", "vocab_size", "max_slots", "num_samples")


def _checked_integer(name: str, value: Any, least: int | None) -> int | None:
    if value is None and name in _OPTIONAL_INTEGERS:
        return None
    if value is None and name == "seq_len":
        raise PlanError("seq_len is missing; say how many tokens a row of the model holds")
    number = whole_number(name, value)
    if least is not None and number < least:
        raise PlanError(f"{name} is {number}; it must be at least {least}")
    most = _MOST.get(name, 2**63 - 1)
    if not -(2**63) <= number <= most:
        raise PlanError(f"{name} is {number}; it must be at most {most}")
    return number


def _checked_device(device: Any) -> str | None:
    """The name of a CUDA device, also from a torch.device or a number; None for the host."""
    if device is None or str(device) == "cpu":
        return None
    name = f"cuda:{device}" if type(device) is int else str(device)
    if not re.fullmatch(r"cuda(:[0-9]+)?", name):
        raise PlanError(f'device is {device!r}; give "cuda", "cuda:1" or None')
    return name


def whole_number(name: str, value: Any) -> int:
    """An int, also from numpy's integers. Throws PlanError for anything else."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise PlanError(f"{name} is {value!r}; it must be a whole number")
    return operator.index(value)


def checked_fields(fields: object) -> tuple[str, ...]:
    """The names of a batch's columns, at least one and each once."""
    if not isinstance(fields, (tuple, list)):
        raise PlanError(f"fields is {fields!r}; give a list of names among {', '.join(FIELDS)}")
    for field in fields:
        _check_choice("fields", field, FIELDS)
    if not fields or len(set(fields)) != len(fields):
        raise PlanError(f"fields is {fields!r}; ask for at least one column, each only once")
    return tuple(fields)


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise PlanError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")
