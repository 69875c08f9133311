"""Runs under test of `brimful verify`: loaders that stop, save and go on, and what they delivered.

Batches are kept as hashes of all they hold, and steps as the pieces that all ranks together got.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import brimful as bf

MOST_RANKS = 8  # of other splits: each is a loader with a ring of its own

Piece = tuple[int, int, int, bytes]  # document, start, length, hash of its tokens and labels
Make = Callable[..., bf.DataLoader]  # (split, rank, **settings): the loader under test


class VerificationFailed(Exception):
    """A run broke a promise in a way that leaves nothing to compare."""


@dataclass(frozen=True)
class Split:
    """How a global batch is dealt out."""

    world_size: int
    batch_size: int
    accumulate: int


def splits_of(given: Split) -> list[Split]:
    """The split given and others of the same global batch: more ranks, fewer, and one row each."""
    rows = given.world_size * given.batch_size * given.accumulate
    found = [given]
    for world_size in range(1, min(rows, MOST_RANKS) + 1):
        if rows % world_size:
            continue
        rest = rows // world_size
        for batch_size in (rest, 1):
            split = Split(world_size, batch_size, rest // batch_size)
            if split not in found:
                found.append(split)
    return found


def batch_hash(batch: bf.Batch) -> bytes:
    """Of everything that a batch holds."""
    digest = hashlib.blake2b(digest_size=16)
    for name, column in batch.items():
        digest.update(f"{name} {tuple(column.shape)}".encode())
        digest.update(np.ascontiguousarray(column).data)
    for values in (batch.cu_seqlens, batch.documents, batch.starts):
        digest.update(np.ascontiguousarray(values).data)
    numbers = (batch.num_items_step, batch.num_items_step_global, batch.step, batch.epoch)
    digest.update(repr((numbers, batch.num_tokens, batch.num_items)).encode())
    return digest.digest()


def pieces_of(batch: bf.Batch) -> Iterator[Piece]:
    """The pieces of a batch, without tails and bad documents."""
    ids, labels = (np.asarray(batch[name]).reshape(-1) for name in ("input_ids", "labels"))
    cu = np.asarray(batch.cu_seqlens).tolist()
    for s, document in enumerate(batch.documents.tolist()):
        if document >= 0:
            digest = hashlib.blake2b(ids[cu[s] : cu[s + 1]].data, digest_size=16)
            digest.update(labels[cu[s] : cu[s + 1]].data)
            yield document, int(batch.starts[s]), cu[s + 1] - cu[s], digest.digest()


@dataclass(frozen=True)
class Turn:
    """One life of a job: how it deals and makes its batches, and how many a rank takes of them.

    `notice_end`: the turn ends an epoch, and asks once more for the batch that is not there.
    """

    split: Split
    batches: int
    settings: dict[str, Any] = field(default_factory=dict)
    notice_end: bool = False


@dataclass
class Run:
    """What one run delivered, over all its ranks.

    Attributes:
        batches: hashes of the batches of each rank, in order; for a run of one split.
        steps: step -> its pieces, of all ranks.
        epochs: epoch -> how many batches of each rank.
        epoch_of: step -> its epoch.
        state: after the last batch.
        exposure: tokens of each source, as counted up to the state.
        bad: step -> tokens of bad documents that were put aside in it.
    """

    batches: list[list[bytes]] = field(default_factory=list)
    steps: dict[int, list[Piece]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    epoch_of: dict[int, int] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    exposure: dict[str, int] = field(default_factory=dict)
    bad: dict[int, int] = field(default_factory=dict)

    @property
    def bad_tokens(self) -> int:
        """Of all steps."""
        return sum(self.bad.values())


def deliver(make: Make, turns: Sequence[Turn], *, start: dict[str, Any] | None = None) -> Run:
    """Runs turn after turn. Each is made of fresh loaders, which know nothing but the state.

    Raises:
        VerificationFailed: where the ranks disagree on the state, or an epoch has no end.
    """
    run = Run(batches=[[] for _ in range(turns[0].split.world_size)])
    state = start
    for turn in turns:
        states = []
        for rank in range(turn.split.world_size):
            loader = make(turn.split, rank, **turn.settings)
            if state is not None:
                loader.load_state_dict(json.loads(json.dumps(state)))
            bad_before = 0
            for batch in _take(loader, turn):
                bad = loader.stats().bad_tokens
                run.bad[batch.step] = run.bad.get(batch.step, 0) + bad - bad_before
                bad_before = bad
                if turn.split == turns[0].split:
                    run.batches[rank].append(batch_hash(batch))
                run.steps.setdefault(batch.step, []).extend(pieces_of(batch))
                run.epoch_of[batch.step] = batch.epoch
                if rank == 0:
                    run.epochs[batch.epoch] = run.epochs.get(batch.epoch, 0) + 1
            states.append(loader.state_dict())
            exposure = loader.stats().exposure
            run.exposure = {name: counts["tokens"] for name, counts in exposure.items()}
            loader.close()
        if any(other != states[0] for other in states):
            raise VerificationFailed("the ranks disagree on the state")
        state = states[0]
    assert state is not None  # there is a turn
    run.state = state
    return run


def _take(loader: bf.DataLoader, turn: Turn) -> Iterator[bf.Batch]:
    """The batches of a turn, through as many epochs as it takes."""
    left = turn.batches
    while left > 0:
        iterator = iter(loader)
        before = left
        while left > 0 and (batch := next(iterator, None)) is not None:
            left -= 1
            yield batch
        if left == before:
            raise bf.PlanError("an epoch has no batch: no document has a token to deliver")
        if left == 0 and turn.notice_end and next(iterator, None) is not None:
            raise VerificationFailed("an epoch goes on behind its end")
