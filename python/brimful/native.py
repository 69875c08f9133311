"""What a loader's settings mean to the core: its plan, its steps, its columns and its threads."""

from __future__ import annotations

from brimful import _core
from brimful._core import PlanError
from brimful.checksums import block_checks
from brimful.config import LoaderConfig
from brimful.corpus import Corpus
from brimful.megatron_rows import row_order
from brimful.mix_rule import MixHistory
from brimful.steps import skip_ranges


def make_plan(corpus: Corpus, config: LoaderConfig, history: MixHistory) -> _core.Plan:
    """The order of the bins, and what is in them, under the mixes of a run."""
    if config.megatron is not None and len(history) > 1:
        raise PlanError(
            'order="megatron" is made for a whole run by one mix, which cannot change on the way'
        )
    return _core.Plan(
        corpus=corpus._native,
        seq_len=config.capacity,
        packing="pad" if config.is_bucket else config.packing,
        overlong=config.overlong,
        buffer=config.buffer,
        max_segments=config.max_segments,
        window=config.window,
        shuffle="block" if config.shuffle == "block" else "full" if config.shuffle else "none",
        shuffle_block=config.shuffle_block,
        seed=config.seed % 2**64,
        # The work of a single document rises with its length: buckets are balance of "pad".
        balance=config.balance is not None or config.is_bucket,
        align=config.align,
        carry_label=bool(config.carry_label),
        mixes=[(rule.native(corpus.sources), epoch, window) for rule, epoch, window in history],
        rows=row_order(corpus, config),
    )


def make_geometry(config: LoaderConfig) -> _core.Geometry:
    """How bins are dealt to steps, ranks and micro-batches."""
    return _core.Geometry(
        batch_size=config.batch_size,
        world_size=config.world_size,
        rank=config.rank,
        accumulate=config.accumulate,
        drop_last=config.drop_last,
        trim=config.is_bucket,
    )


def make_steps(plan: _core.Plan, geometry: _core.Geometry) -> _core.Steps:
    """The numbers of the steps of a run from its beginning."""
    return _core.Steps(plan, geometry, _core.Cursor(), 0)


def make_skip(config: LoaderConfig) -> _core.StepSet:
    """The steps that `skip=` leaves out."""
    return _core.StepSet(skip_ranges(config.skip))


def make_layout(config: LoaderConfig) -> _core.Layout:
    """The columns of a batch."""
    return _core.Layout(
        fields=list(config.fields),
        varlen=config.layout == "varlen",
        keep_tail=config.keep_tail,
        batch_size=config.batch_size,
        seq_len=config.capacity,
        pad_token_id=config.pad_token_id,
        continue_positions=config.positions == "continue",
        vocab_size=config.vocab_size,
        quarantine=config.bad_documents == "skip",
        trimmed=config.is_bucket,
        align=config.align,
        carry_label=bool(config.carry_label),
        max_segments=config.max_segments,
        cp_size=config.cp_size,
        cp_rank=config.cp_rank or 0,
        cp_split=config.cp_unit,
    )


def make_read(corpus: Corpus, config: LoaderConfig) -> _core.ReadConfig:
    """Where the bytes of tokens come from, and what they are compared with."""
    checks = block_checks(corpus) if config.verify == "checksum" else None
    return _core.ReadConfig(io=config.io, checks=checks)


def make_prefetch(config: LoaderConfig, *, supplied: bool) -> _core.PrefetchConfig:
    """The threads and the memory they fill: brimful's own, or blocks that it is supplied with."""
    return _core.PrefetchConfig(
        num_workers=config.num_workers,
        depth=config.depth,
        max_slots=config.max_slots,
        timeout=float(config.timeout),
        supplied=supplied,
    )
