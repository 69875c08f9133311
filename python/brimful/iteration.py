"""One pass over one epoch: takes what the native stream filled and hands it out as batches."""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from brimful import _core
from brimful._core import BrimfulError
from brimful.batch import Batch
from brimful.device_loader import DeviceBlocks
from brimful.pinned import PinnedBlocks
from brimful.torch_module import torch_if_installed

if TYPE_CHECKING:
    from brimful.loader import DataLoader


class LoaderIterator:
    """One pass over one epoch. Made by `iter(loader)`; dropping it ends its threads."""

    def __init__(
        self,
        loader: DataLoader,
        stream: _core.Stream,
        blocks: DeviceBlocks | PinnedBlocks | None,
        begin: _core.Cursor,
    ) -> None:
        self._loader = loader
        self._begin = begin
        self._stream: _core.Stream | None = stream
        # Threads, and the memory they write to, end with this object in whatever way it goes; a
        # `__del__` or any other finalizer in Python would swallow a Ctrl-C that it hears first.
        self._end: _core.StreamEnd | None = _core.StreamEnd(stream, blocks)
        self._steps = loader._steps
        self._fields = loader.config.fields
        self._collate = loader._collate
        self._blocks = blocks  # None: batches lie in memory of brimful's own
        torch = torch_if_installed()
        # Over the same memory; the arrays themselves where torch is not installed.
        self._to_tensor = None if torch is None else torch.from_numpy
        _running.add(weakref.ref(self, _running.discard))
        if _exiting.is_set():
            self._stop_if_daemon()

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        """Batches of the whole pass, those delivered already with them, as torch counts them."""
        return self._loader._batches_from(self._begin)

    def __next__(self) -> Any:
        """A Batch, or what the loader's `collate_fn` makes of it."""
        stream = self._stream
        if stream is None:
            raise StopIteration
        blocks = self._blocks
        try:
            filled = stream.next() if blocks is None else blocks.next(stream)
        except BrimfulError:
            if _exiting.is_set():
                self._stop_if_daemon()
            raise
        if filled is None:
            counted = stream.epoch_steps
            assert counted is not None  # the epoch is at its end
            self._steps.learn_count(stream.epoch, counted)
            self.close()
            self._loader._loss_warning.warn_once()
            raise StopIteration
        columns, cu_seqlens, lengths, documents, starts, *numbers, num_bad = filled
        if num_bad:
            self._loader._quarantine.warn_once(self._steps)
        cu_seqlens_host = cu_seqlens
        if blocks is not None:
            columns, cu_seqlens = blocks.tensors(columns, cu_seqlens)
        elif self._to_tensor is not None:
            columns = map(self._to_tensor, columns)
            cu_seqlens = self._to_tensor(cu_seqlens)
        config = self._loader.config
        batch = Batch(
            dict(zip(self._fields, columns, strict=True)),
            cu_seqlens=cu_seqlens,
            cu_seqlens_host=cu_seqlens_host,
            lengths=lengths,
            documents=documents,
            starts=starts,
            max_seqlen=numbers[0],
            num_tokens=numbers[1],
            num_items=numbers[2],
            num_items_step=numbers[3],
            num_items_step_global=numbers[4],
            epoch=stream.epoch,
            step=numbers[5],
            micro_batch=numbers[6],
            steps=self._steps,
            attention_work=numbers[7],
            cp_size=config.cp_size,
            cp_rank=config.cp_rank or 0,
            cp_split=config.cp_unit if config.cp_size > 1 else None,
        )
        return batch if self._collate is None else self._collate(batch)

    def __reduce__(self) -> NoReturn:
        raise NotImplementedError(  # as torch's iterators say it
            "an iterator cannot be pickled or copied: ask its loader for another one"
        )

    def close(self) -> None:
        """Ends the threads; the iterator is then at its end."""
        stream = self._stream
        if stream is not None:
            self._loader._retire(stream)
            self._stream = None
            self._blocks = None
            self._end = None

    def _stop_if_daemon(self) -> None:
        """While the interpreter ends, a daemon thread gets no batch, and no error to print either.

        It stays here, as Python keeps such threads itself once the interpreter is gone.
        """
        if threading.current_thread() is not threading.main_thread():
            self.close()
            threading.Event().wait()


_running: set[weakref.ref[LoaderIterator]] = set()

_exiting = threading.Event()


@atexit.register
def _close_all() -> None:
    """Threads must not outlive the interpreter that owns what they were given."""
    _exiting.set()
    for reference in list(_running):
        iterator = reference()
        if iterator is not None:
            iterator.close()
