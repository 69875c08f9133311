"""torch's attributes of a loader, on the native path: read as torch's users read them, and set
where torch lets them be set.

What torch refuses to change is a ValueError here too. What is set takes effect with the next
iteration.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
from typing import Any, NoReturn

from brimful import _core, native
from brimful.arguments import (
    TorchArguments,
    as_flag,
    check_collate_fn,
    checked_context,
    depth_of,
)
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.device_loader import DeviceFeed
from brimful.drop_in.collate import Collator, check_collating, has_loss_masks
from brimful.drop_in.ingest import form_of_items, is_mapped
from brimful.drop_in.samplers import SamplerEpoch
from brimful.pinned import can_pin
from brimful.torch_module import torch_if_installed


def _fixed(name: str, doc: str, get: Any) -> property:
    """An attribute that cannot be set once the loader is there."""

    def refuse(self: Any, _: Any) -> NoReturn:
        raise ValueError(
            f"{name} cannot be set once the loader is there: make another one, and give it this "
            "one's state_dict() to go on"
        )

    return property(get, refuse, doc=doc)


def _given(name: str, doc: str, *, fixed: bool = False) -> property:
    """An argument as it was given, which brimful's threads have no use for."""

    def get(self: TorchAttributes) -> Any:
        return getattr(self._torch, name)

    def put(self: TorchAttributes, value: Any) -> None:
        self._torch = dataclasses.replace(self._torch, **{name: value})

    return _fixed(name, doc, get) if fixed else property(get, put, doc=doc)


class TorchAttributes:
    """The attributes of `torch.utils.data.DataLoader`, of a loader that packs."""

    corpus: Corpus
    config: LoaderConfig
    _torch: TorchArguments
    _sampler_epoch: SamplerEpoch
    _feed: DeviceFeed | None
    _first_item: Any  # of a dataset that was read
    _pins: bool  # whatever it delivers
    _pin: bool  # batches of its own
    _prefetch: _core.PrefetchConfig
    _collate: Collator | None

    dataset = _fixed(
        "dataset",
        "What the loader was given; of paths and tables, the corpus of their documents.",
        lambda self: self.corpus if is_mapped(self._torch.dataset) else self._torch.dataset,
    )
    persistent_workers = _given(
        "persistent_workers", "As given: threads start at once.", fixed=True
    )
    worker_init_fn = _given("worker_init_fn", "As given: threads run no Python.")
    pin_memory_device = _given("pin_memory_device", "As given: torch's accelerator decides.")
    in_order = _given("in_order", "As given: batches always come in order.")
    generator = _fixed(
        "generator", "As given: its seed was taken.", lambda self: self._torch.generator
    )
    batch_size = _fixed("batch_size", "Rows of a batch.", lambda self: self.config.batch_size)
    drop_last = _fixed(
        "drop_last", "Whether the last step is left out.", lambda self: self.config.drop_last
    )

    @property
    def multiprocessing_context(self) -> Any:
        """As given, a start method as its context: threads need none."""
        context = self._torch.multiprocessing_context
        return multiprocessing.get_context(context) if isinstance(context, str) else context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        checked_context(context, self.config.num_workers)
        self._torch = dataclasses.replace(self._torch, multiprocessing_context=context)

    @property
    def num_workers(self) -> int:
        """Threads that fill batches."""
        return self.config.num_workers

    @num_workers.setter
    def num_workers(self, number: int) -> None:
        self._reconfigure(num_workers=number)

    @property
    def timeout(self) -> float:
        """Seconds that `next()` waits for a batch."""
        return self.config.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._reconfigure(timeout=seconds)

    @property
    def pin_memory(self) -> bool:
        """Whether batches are in page-locked memory, where torch has an accelerator."""
        return self.config.pin_memory

    @pin_memory.setter
    def pin_memory(self, pin: bool) -> None:
        self._reconfigure(pin_memory=as_flag(pin))

    @property
    def prefetch_factor(self) -> int | None:
        """Batches ready ahead for each thread; None without threads."""
        workers = self.config.num_workers
        return max(1, self.config.depth // workers) if workers else None

    @prefetch_factor.setter
    def prefetch_factor(self, factor: int) -> None:
        self._reconfigure(depth=depth_of(factor, self.config.num_workers))

    @property
    def collate_fn(self) -> Any:
        """The function that gets the documents of a batch, or None: brimful makes batches."""
        return self._torch.collate_fn

    @collate_fn.setter
    def collate_fn(self, function: Any) -> None:
        check_collate_fn(function)
        check_collating(self.config)
        self._torch = dataclasses.replace(self._torch, collate_fn=function)
        self._reconfigure()

    def _sampler(self) -> Any:
        """The user's own; else torch's of the same kind over the corpus, for those who look."""
        torch = torch_if_installed()
        if self._torch.sampler is not None or torch is None:
            return self._torch.sampler
        if self.config.shuffle and len(self.corpus):
            return torch.utils.data.RandomSampler(self.corpus, generator=self._torch.generator)
        return torch.utils.data.SequentialSampler(self.corpus)

    def _batch_sampler(self) -> Any:
        """torch's, of this sampler and batch size; packing decides what a batch holds."""
        torch = torch_if_installed()
        if torch is None:
            return None
        return torch.utils.data.BatchSampler(
            self._sampler(), self.config.batch_size, self.config.drop_last
        )

    sampler = _fixed("sampler", _sampler.__doc__ or "", _sampler)
    batch_sampler = _fixed("batch_sampler", _batch_sampler.__doc__ or "", _batch_sampler)

    def _reconfigure(self, **changes: Any) -> None:
        """Other settings of threads and memory, from the next iteration on."""
        self.config = dataclasses.replace(self.config, **changes)
        self._prepare(look_for_pinned="pin_memory" in changes)

    def _prepare(self, *, look_for_pinned: bool = True) -> None:
        """What follows from these settings: the next iteration's memory and collate function."""
        config = self.config
        if look_for_pinned:  # which may warn
            self._pins = self._feed is None and config.pin_memory and can_pin()
        function = self._torch.collate_fn
        self._pin = self._pins and function is None
        self._prefetch = native.make_prefetch(config, supplied=self._pin)
        self._collate = None
        if function is not None:
            masked = has_loss_masks(self.corpus)
            form = form_of_items(self._torch.dataset, self._first_item, masked=masked)
            self._collate = Collator(
                function, form, self.corpus, pad_token_id=config.pad_token_id, pin=self._pins
            )
