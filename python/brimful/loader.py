"""The loader: a drop-in for `torch.utils.data.DataLoader` that packs full batches."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import warnings
from abc import ABCMeta
from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Any

from brimful import _core, native
from brimful import state as state_module
from brimful._core import PlanError
from brimful.arguments import TorchArguments, refuse_unknown, resolve
from brimful.config import LoaderConfig, whole_number
from brimful.device_loader import DeviceBlocks, DeviceFeed
from brimful.drop_in.attributes import TorchAttributes
from brimful.drop_in.choice import choosing_for_derived, torch_loader_or_path
from brimful.drop_in.collate import check_collating
from brimful.drop_in.copies import reduced
from brimful.drop_in.explain import Explanation, explanation
from brimful.drop_in.ingest import corpus_of
from brimful.drop_in.path import Path
from brimful.drop_in.samplers import SamplerEpoch
from brimful.iteration import LoaderIterator
from brimful.loss_warning import LossWarning
from brimful.mix_rule import unchanged
from brimful.mix_state import history_entries
from brimful.pinned import PinnedBlocks
from brimful.place import Place, checked_epoch
from brimful.profiling.logged import Logged
from brimful.profiling.native_timeline import Numberings, timeline_of
from brimful.profiling.notes import Notes
from brimful.profiling.timeline import Timeline
from brimful.quarantine import BadDocument, Quarantine
from brimful.ranks import share_of_process
from brimful.records import BatchRecord, records
from brimful.resume import resume
from brimful.shuffle_quality import ShuffleQuality, shuffle_quality
from brimful.steps import StepDocuments, documents_of
from brimful.telemetry import Stats, gather
from brimful.times import Times
from brimful.torch_module import torch_if_installed
from brimful.wording import counted

# A state of so many documents or fewer can be taken while an index is broken: what it says of them
# is worked out when an iteration begins, in some hundredths of a second at most.
_PROMPT_DOCUMENTS = 4_000_000


class DataLoader(TorchAttributes, Logged, metaclass=ABCMeta):
    """Batches of packed documents, made ahead by threads, the same for any number of them.

    One iteration is one epoch; the next one, also after a `break`, is the next epoch by itself.
    Iterators are independent of each other. Every rank delivers equally many batches; a rank that
    has no row left in the last one gets a dummy row (`batch.num_tokens == 0`).

    Args:
        dataset: a `Corpus`, or anything that `brimful.open` takes; with `ingest="once"` also a
            map-style dataset of token ids.
        sampler: torch's SequentialSampler, RandomSampler of everything once or DistributedSampler:
            it says shuffle, seed, rank, world_size and drop_last, and its `set_epoch` the epoch of
            the next iteration. The plan draws documents, so others, and any batch_sampler, are
            refused.
        collate_fn: gets the documents of a batch, or their pieces, as a list of what items of the
            dataset are: of files, 1-D int64 tensors, or dicts of `input_ids` and `labels` where
            they have loss masks. What it returns is delivered.
        generator: its seed is the default of `seed`.
        prefetch_factor: sets `depth` to prefetch_factor x num_workers, as torch counts.
        worker_init_fn, multiprocessing_context, persistent_workers, pin_memory_device, in_order:
            checked as torch checks them, then without effect: threads run no Python.
        snapshot_every_n_steps: torchdata's, without effect: a state is exact after any batch.
        rank, world_size: data-parallel coordinates; by default those of torch.distributed, else
            of torchrun's environment, else a single rank.
        mesh: a DeviceMesh of torch, which says them by the names of its dimensions instead, for
            runs whose ranks are not all data-parallel ones; and `cp_size` and `cp_rank`.

    All other arguments are those of `LoaderConfig`.

    Raises:
        PlanError: for settings that make no sense, a ValueError.
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # DataLoader[int], as torch's users write

    _call: tuple[tuple[Any, ...], dict[str, Any]]  # what the loader was made with
    _path: Path  # a native one

    @choosing_for_derived
    def __init__(
        self,
        dataset: Any,
        batch_size: int = LoaderConfig.batch_size,
        shuffle: bool | str | None = LoaderConfig.shuffle,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int | None = LoaderConfig.num_workers,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = LoaderConfig.pin_memory,
        drop_last: bool = LoaderConfig.drop_last,
        timeout: float = LoaderConfig.timeout,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        snapshot_every_n_steps: int = 1,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        **settings: Any,
    ) -> None:
        refuse_unknown(settings, own=inspect.signature(DataLoader).parameters.keys())
        self._torch = TorchArguments(
            dataset=dataset,
            sampler=sampler,
            batch_sampler=batch_sampler,
            collate_fn=collate_fn,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
            generator=generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        settings |= {
            "batch_size": batch_size,
            "shuffle": shuffle,
            "num_workers": num_workers,
            "pin_memory": pin_memory,
            "drop_last": drop_last,
            "timeout": timeout,
        }
        settings, rank, world_size = resolve(self._torch, settings, rank, world_size)
        share = share_of_process(rank, world_size, mesh, settings)
        self.config = LoaderConfig(**settings | share)
        if collate_fn is not None:
            check_collating(self.config)
        self.corpus, self._first_item = corpus_of(dataset, self.config.ingest)
        self._sampler_epoch = SamplerEpoch(sampler, len(self.corpus))

        config = self.config
        self._renewals = 0
        if config.verify is not None:  # reads files, and what failed before may be repaired
            self._renewals = self.corpus._native.renew_files()
        self._own_plan = native.make_plan(self.corpus, config, unchanged(self.corpus.rule))
        self._plan = self._own_plan  # that of a run whose mix has changed is another one
        self._mix_changes: list[list[Any]] = []
        self._geometry = native.make_geometry(config)
        self._layout = native.make_layout(config)
        self._read = native.make_read(self.corpus, config)
        torch_if_installed()  # now, for an import interrupted in a first batch cannot be repeated
        self._feed = (
            None
            if config.device is None
            else DeviceFeed(config.device, config, self._layout, self.corpus)
        )
        self._prepare()
        self._ledger = _core.Ledger(len(self.corpus.sources))
        self._retired_times = Times()
        self._live: set[_core.Stream] = set()
        self._place_kept = Place()
        self._steps = native.make_steps(self._plan, self._geometry)
        self._skip = native.make_skip(config)
        self._quarantine = Quarantine(self._ledger, self.corpus)
        self._numberings = Numberings()
        self._lap: Stats | None = None
        self._loss_warning = LossWarning(self._ledger, config)
        self._lengths: dict[tuple[int, int, int, int], int] = {}

    def __new__(cls, *args: Any, **arguments: Any) -> Any:
        """A native loader, or torch's: `brimful.drop_in.path.choose_path` decides."""
        chosen = torch_loader_or_path(cls, args, arguments) if cls is DataLoader else None
        if chosen is not None and not isinstance(chosen, Path):
            return chosen
        loader = super().__new__(cls)
        loader._call = (args, arguments)
        if chosen is not None:  # else in __init__
            loader._path = chosen
        return loader

    functools.update_wrapper(__new__, __init__, assigned=())  # signatures are those of __init__

    def __repr__(self) -> str:
        config = self.config
        return (
            f"<brimful.DataLoader: {counted(len(self.corpus), 'document')}, "
            f"batch_size {config.batch_size}, seq_len {config.seq_len}, {config.packing}, "
            f"rank {config.rank} of {config.world_size}>"
        )

    # Iteration

    def __iter__(self) -> LoaderIterator:
        self._follow_sampler()
        self._renew_files()
        begin = self._place.next_cursor()
        if self._place.loaded and begin is not self._place.pending:
            warnings.warn(
                f"set_epoch({begin.epoch}) asks for another epoch than the loaded state stands in "
                f"({self._place.pending.epoch}): the state has no effect",
                stacklevel=2,
            )
        blocks = self._make_blocks()
        with contextlib.nullcontext() if self._feed is None else self._feed.cuda.selected():
            stream = _core.Stream(
                self._plan,
                self._layout,
                self._geometry,
                begin,
                self._read,
                self._prefetch,
                self._ledger,
                self._skip,
                self._steps_before(begin.epoch),
                blocks.courier if isinstance(blocks, DeviceBlocks) else None,
            )
        # From here on it ends the threads when it goes, also when Ctrl-C comes at the next line.
        iterator = LoaderIterator(self, stream, blocks, begin)
        self._pid = os.getpid()
        self._live.add(stream)
        if stream.epoch > begin.epoch:
            self._steps.learn_count(begin.epoch, stream.passed_steps)
        self._place.begin(stream, begin)
        if len(self.corpus) <= _PROMPT_DOCUMENTS:  # while threads are at work
            self._fingerprint()
        return iterator

    def _make_blocks(self) -> DeviceBlocks | PinnedBlocks | None:
        """What the batches of one pass lie in, where it is memory of torch's."""
        if self._feed is not None:
            return DeviceBlocks(self._feed)
        return PinnedBlocks(self._layout, self.config.fields) if self._pin else None

    def _retire(self, stream: _core.Stream) -> None:
        """Ends a stream's threads and keeps what it counted."""
        stream.close()  # first, and again if need be: whatever interrupts this, threads end
        try:
            self._live.remove(stream)
        except KeyError:  # somebody was faster, perhaps in another thread
            return
        if os.getpid() == self._pid:  # in a forked child the threads and their times are not ours
            self._retired_times = self._retired_times.plus(stream.counters)
        self._place_kept.end(stream)

    @property
    def _place(self) -> Place:
        for stream in list(self._live):
            if stream.closed:  # its iterator went without a word
                self._retire(stream)
        return self._place_kept

    def _follow_sampler(self) -> None:
        """Takes over the epoch that was set on the user's sampler."""
        if (epoch := self._sampler_epoch.changed()) is not None:
            self.set_epoch(epoch)

    def _steps_before(self, epoch: int) -> int:
        """Steps of the run before an epoch; not counted where nothing is skipped."""
        return self._steps.before(epoch) if self._skip.ranges else 0

    def _count_batches(self, begin: _core.Cursor) -> int:
        before = self._steps_before(begin.epoch)
        return _core.count_batches(self._plan, self._geometry, begin, self._skip, before)

    def __len__(self) -> int:
        """Batches of the epoch that the next `iter()` gives, or of the running one.

        The same on every rank. Packs the lengths of the epoch once; reads no tokens.
        """
        self._follow_sampler()
        return self._batches_from(self._place.epoch_begin())

    def _batches_from(self, begin: _core.Cursor) -> int:
        """Batches of a pass that begins there."""
        key = (begin.epoch, begin.window, begin.bin, begin.step_bins)
        if key not in self._lengths:
            count = self._count_batches(begin)
            if count == 0 and key[1:] != (0, 0, 0):  # behind the last batch
                count = self._count_batches(_core.Cursor(begin.epoch + 1))
            self._lengths = {key: count}
        return self._lengths[key]

    def documents(self, step: int) -> StepDocuments:
        """What an optimizer step holds, past or future, over all ranks: the plan's word for it.

        Steps are numbered from 0 through all epochs, skipped ones too (`batch.step`). Reads lengths
        only: the first question packs windows up to the step, epochs before it included where
        they were not counted yet; after that a question packs the one or two windows of its step.
        A step that was resumed in its middle by other ranks or micro-batches is told whole, at the
        places that it would have in a run of these alone.

        Raises:
            PlanError: for a step that the run does not have, and for one from before a change of
                the global batch.
        """
        number = whole_number("step", step)
        if not 0 <= number < 2**63:
            raise PlanError(f"step is {number}; steps are numbered from 0 up, below 2**63")
        return documents_of(
            self._steps,
            number,
            skip=self._skip,
            names=self.corpus.sources,
        )

    def set_epoch(self, epoch: int) -> None:
        """Makes every following iteration deliver this epoch, as evaluation wants.

        A loaded state that stands in the middle of the same epoch keeps its place.
        """
        self._place.pin(checked_epoch(epoch))

    def close(self) -> None:
        """Ends the threads of all iterators. Batches that were handed out stay valid."""
        for stream in list(self._live):
            self._retire(stream)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self, *self._call)

    def __del__(self) -> None:
        place = getattr(self, "_place_kept", None)
        if place is not None and place.ignored:
            warnings.warn(
                "a loader was given a state and never iterated: the state had no effect",
                stacklevel=2,
            )

    # State

    def state_dict(self) -> dict[str, Any]:
        """The place of the newest iterator, counted in delivered batches, the same on every rank.

        Plain numbers, strings and lists, fit for JSON; at any moment, also before the first batch.
        """
        self._follow_sampler()
        cursor, counts = self._place.standing(self._ledger)
        return state_module.make_state(
            cursor=cursor,
            steps=self._steps,
            skip=self._skip,
            drop_last=self.config.drop_last,
            bins_per_step=self._geometry.bins_per_step,
            fingerprint=self._fingerprint(),
            mix_changes=self._mix_changes,
            counts=counts,
        )

    def load_state_dict(
        self,
        state: Mapping[str, Any],
        *,
        allow_batch_change: bool = False,
        allow_mix_change: bool = False,
        force: bool = False,
    ) -> None:
        """Makes the next `iter()` go on where `state` was taken, at any world size.

        Args:
            state: what `state_dict()` returned, on any rank.
            allow_batch_change: accept a state of another global batch (batch_size x world_size x
                accumulate); a new step begins at its place.
            allow_mix_change: accept a state of the same sources under another mix (the arguments of
                `brimful.mix`). Every source goes on where it stood; the new mix holds from the
                first window that no step has begun. The change becomes part of the run's states.
            force: accept a state of another corpus or other settings: start at epoch 0, with a
                warning.

        Raises:
            StateError: for a state of another corpus, other settings or another global batch, with
                the fields that differ; nothing is changed then.
            ReadError: a file that failed earlier is not repaired yet.
        """
        self._renew_files()
        resumed = resume(
            state,
            corpus=self.corpus,
            own_plan=self._own_plan,
            geometry=self._geometry,
            config=self.config,
            fingerprint=self._fingerprint(),
            allow_batch_change=allow_batch_change,
            allow_mix_change=allow_mix_change,
            force=force,
        )
        if resumed.restarts:
            warnings.warn(
                "the state belongs to another corpus or other settings; starting at epoch 0:\n  "
                + "\n  ".join(resumed.restarts),
                stacklevel=2,
            )
            self._ledger.restart()
        else:
            all_ranks, exposure = state_module.read_counts(state, len(self.corpus.sources))
            self._ledger.restore(all_ranks, exposure, resumed.ahead)
        self._quarantine.listed(self._steps)  # by the numbers that steps had
        self._numberings.change(self._delivered(), self._steps)
        self._steps = resumed.steps
        self._skip = resumed.skip
        self._plan = resumed.plan
        self._mix_changes = history_entries(resumed.mixes, self.corpus.sources)
        self._lengths = {}
        self._place.load(resumed.cursor)

    def _renew_files(self) -> None:
        """Takes files that were repaired after a ReadError; what was read of them is forgotten."""
        renewals = self.corpus._native.renew_files()
        if renewals != self._renewals:  # here or by another loader of the same files
            self._renewals = renewals
            self._lengths.clear()
            self.__dict__.pop("_fingerprint_cache", None)
            self._read = native.make_read(self.corpus, self.config)

    def _fingerprint(self) -> dict[str, Any]:
        if not hasattr(self, "_fingerprint_cache"):
            self._fingerprint_cache = state_module.fingerprint(self.corpus, self.config)
        return self._fingerprint_cache

    # Telemetry

    def explain(self) -> Explanation:
        """Which path the loader takes, why, and what becomes of each of torch's arguments."""
        return explanation(self._path)

    def stats(self, *, lap: bool = False) -> Stats:
        """Counts and times of this rank since construction; with `lap=True` since the last lap."""
        times = self._retired_times
        for stream in list(self._live):
            times = times.plus(stream.counters)
        transfer = None if self._feed is None else self._feed.transfer
        stats = gather(self._ledger.counts(), times, self.corpus, transfer)
        if not lap:
            return stats
        since = stats if self._lap is None else stats.since(self._lap)
        self._lap = stats
        return since

    def shuffle_quality(self, epoch: int = 0) -> ShuffleQuality:
        """How far the documents of an epoch move and spread; about 1/3 for a full shuffle.

        Draws the whole epoch, which takes time and 8 bytes of memory for each document; reads no
        tokens.
        """
        return shuffle_quality(self._plan, self.corpus, checked_epoch(epoch))

    def records(self, since: int = 0) -> list[BatchRecord]:
        """The last batches that this loader delivered, in order of delivery: at most 10,000, and of
        these the ones from number `since` on.
        """
        return records(self._ledger, None if self._feed is None else self._feed.transfer, since)

    def _delivered(self) -> int:
        return self._ledger.num_records

    def _make_timeline(self, notes: Notes) -> Timeline:
        return timeline_of(self, notes)

    @property
    def bad_documents(self) -> list[BadDocument]:
        """Documents that this rank put aside since construction, in order of delivery.

        A document counts once a pass, at its first bad piece. The first thousand are listed;
        `stats().bad_documents` counts all of them.
        """
        return self._quarantine.listed(self._steps)
