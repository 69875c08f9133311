"""Where a loader stands: what its state speaks of, and where its next iteration begins."""

from __future__ import annotations

from brimful import _core
from brimful._core import PlanError
from brimful.config import whole_number


class Place:
    """The places of one loader, which go on from its newest iterator.

    Attributes:
        pending: where the next iterator begins, unless an epoch is pinned.
        loaded: a state waits there to be used.
    """

    def __init__(self) -> None:
        self.pending = _core.Cursor()
        self.loaded = False
        self._newest: tuple[_core.Stream, _core.Cursor] | None = None  # and where it began
        self._left: _core.Cursor | None = None  # where the newest iterator stood when it went
        self._pinned_epoch: int | None = None

    def next_cursor(self) -> _core.Cursor:
        """Where the next iterator begins."""
        epoch = self._pinned_epoch
        if epoch is None or (self.loaded and self.pending.epoch == epoch):
            return self.pending
        return _core.Cursor(epoch)

    def epoch_begin(self) -> _core.Cursor:
        """Where the running iterator began, or the next one will."""
        return self._newest[1] if self._newest is not None else self.next_cursor()

    def cursor(self) -> _core.Cursor:
        """Of the next batch to be delivered by the newest iterator, or else by the next one."""
        if self._newest is not None:
            return self._newest[0].cursor
        return self._left if self._left is not None else self.next_cursor()

    def begin(self, stream: _core.Stream, begin: _core.Cursor) -> None:
        """A new iterator has begun there."""
        self._newest = (stream, begin)
        self._left = None
        self.pending = _core.Cursor(stream.epoch + 1)
        self.loaded = False

    def end(self, stream: _core.Stream) -> None:
        """An iterator is gone."""
        if self._newest is not None and self._newest[0] is stream:
            self._left = stream.cursor
            self._newest = None

    def pin(self, epoch: int) -> None:
        """Every following iteration is of this epoch, and a state speaks of the next one."""
        self._pinned_epoch = epoch
        self._left = None

    def load(self, cursor: _core.Cursor) -> None:
        """A state puts the loader there."""
        self._newest = None
        self._left = cursor
        self.pending = cursor
        self.loaded = True


def checked_epoch(epoch: int) -> int:
    """The number of an epoch as an int. Throws PlanError for anything else."""
    number = whole_number("epoch", epoch)
    if not 0 <= number < 2**62:
        raise PlanError(f"epoch is {number}; it must be from 0 to 2**62 - 1")
    return number
