"""Where a loader stands: what its state speaks of, and where its next iteration begins."""

from __future__ import annotations

from typing import NamedTuple

from brimful import _core
from brimful._core import PlanError
from brimful.config import whole_number
from brimful.state import cursor_dict


class _Pass(NamedTuple):
    """An iterator, where it was to begin and where it began, and what was to come without it."""

    stream: _core.Stream
    begin: _core.Cursor
    start: dict[str, int]
    pending: _core.Cursor
    loaded: bool


class Place:
    """The places of one loader, which go on from its newest iterator.

    An iterator that goes before it delivered anything has not begun its epoch: the next one begins
    where it did. Frameworks make such iterators to see whether an object can be iterated.

    Attributes:
        pending: where the next iterator begins, unless an epoch is pinned.
        loaded: a state waits there to be used.
        pinned_epoch: what every iteration delivers, None where nobody fixed it.
        ignored: nobody has made an iterator of a loaded state.
    """

    def __init__(self) -> None:
        self.pending = _core.Cursor()
        self.loaded = False
        self.ignored = False
        self._newest: _Pass | None = None
        self._left: _core.Cursor | None = None  # where the newest iterator stood when it went
        self.pinned_epoch: int | None = None

    def next_cursor(self) -> _core.Cursor:
        """Where the next iterator begins."""
        epoch = self.pinned_epoch
        if epoch is None or (self.loaded and self.pending.epoch == epoch):
            return self.pending
        return _core.Cursor(epoch)

    def epoch_begin(self) -> _core.Cursor:
        """Where the running iterator began, or the next one will."""
        return self._newest.begin if self._newest is not None else self.next_cursor()

    def standing(self, ledger: _core.Ledger) -> tuple[_core.Cursor, _core.Counts]:
        """Where the newest iterator stands, or else the next one will, with the counts up to there.

        Of one moment, whatever other threads do.
        """
        newest = self._newest
        if newest is not None:
            return newest.stream.standing
        cursor = self._left if self._left is not None else self.next_cursor()
        return cursor, ledger.counts()

    def begin(self, stream: _core.Stream, begin: _core.Cursor) -> None:
        """A new iterator has begun there."""
        start = cursor_dict(stream.cursor)
        self._newest = _Pass(stream, begin, start, self.pending, self.loaded)
        self._left = None
        self.pending = _core.Cursor(stream.epoch + 1)
        self.loaded = False
        self.ignored = False

    def end(self, stream: _core.Stream) -> None:
        """An iterator is gone."""
        newest = self._newest
        if newest is None or newest.stream is not stream:
            return
        self._left = stream.cursor
        self._newest = None
        if stream.epoch_steps is None and cursor_dict(self._left) == newest.start:
            self.pending, self.loaded = newest.pending, newest.loaded

    def pin(self, epoch: int) -> None:
        """Every following iteration is of this epoch, and a state speaks of the next one."""
        self.pinned_epoch = epoch
        self._left = None

    def load(self, cursor: _core.Cursor) -> None:
        """A state puts the loader there."""
        self._newest = None
        self._left = cursor
        self.pending = cursor
        self.loaded = True
        self.ignored = True


def checked_epoch(epoch: int) -> int:
    """The number of an epoch as an int. Throws PlanError for anything else."""
    number = whole_number("epoch", epoch)
    if not 0 <= number < 2**62:
        raise PlanError(f"epoch is {number}; it must be from 0 to 2**62 - 1")
    return number
