"""Batches on a device: what the host would have got, in the right order, and never too early.

The device is a fake one, which finds every access that nothing orders: its faults are asserted to
be none after each test, and the same loaders are run with calls left out, which must be found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import device_loader
from brimful.config import FIELDS
from fake_cuda import FakeCuda
from truth import corpus_of, document

LENGTHS = [1 + i * 37 % 61 for i in range(80)]
SCALARS = (
    "max_seqlen", "num_tokens", "num_items", "num_items_step", "num_items_step_global",
    "attention_work", "epoch", "step", "micro_batch", "num_segments", "cp_size", "cp_rank",
)  # fmt: skip


class Devices:
    """Makes fake devices, one for each loader; checks at the end that nothing was found."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[FakeCuda] = []
        self.config: dict[str, Any] = {}
        monkeypatch.setattr(device_loader, "cuda_of", self.make)

    def make(self, name: str) -> FakeCuda:
        index = int(name.partition(":")[2] or 0)
        self.made.append(FakeCuda(index, **self.config))
        return self.made[-1]

    @property
    def last(self) -> FakeCuda:
        return self.made[-1]

    def faults(self) -> list[str]:
        return [fault for cuda in self.made for fault in cuda.api.faults]


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[Devices]:
    devices = Devices(monkeypatch)
    yield devices
    assert devices.config.get("forgotten") or devices.faults() == []


def loader_of(corpus: Any = None, *, device: str | None = "cuda", **how: Any) -> bf.DataLoader:
    given = {"batch_size": 2, "seq_len": 64, "fields": FIELDS, "shuffle": True, **how}
    return bf.DataLoader(corpus_of(LENGTHS) if corpus is None else corpus, device=device, **given)


def check_equal(cuda: FakeCuda, found: bf.Batch, wanted: bf.Batch) -> None:
    """Every field, those on the device read on the stream that the batch is for."""
    fetched = cuda.fetched(found)
    assert list(found) == list(wanted)
    for name, column in fetched.items():
        want = np.asarray(wanted.cu_seqlens if name == "cu_seqlens" else wanted[name])
        assert column.dtype == want.dtype
        np.testing.assert_array_equal(column, want, err_msg=name)
    for name in ("cu_seqlens_host", "lengths", "documents", "starts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in SCALARS:
        assert getattr(found, name) == getattr(wanted, name), name


def compare(devices: Devices, corpus: Any = None, **how: Any) -> bf.DataLoader:
    """Runs two epochs on the device and on the host."""
    loader = loader_of(corpus, **how)
    host = loader_of(corpus, device=None, **how | {"max_slots": None})
    for _ in range(2):
        for found, wanted in zip(loader, host, strict=True):
            check_equal(devices.last, found, wanted)
    return loader


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"layout": "varlen"},
        {"layout": "varlen", "tail": "keep"},
        {"packing": "bucket", "balance": None},
        {"packing": "pad"},
        {"packing": "concat", "overlong": "split", "positions": "continue"},
        {"align": 8, "pad_token_id": 7},
        {"align": 4, "layout": "varlen", "max_segments": 5},
        {"max_segments": 3},
        {"cp_size": 2, "cp_rank": 1},
        {"cp_size": 2, "cp_rank": 0, "layout": "varlen", "align": 4, "fields": FIELDS[::-1]},
        {"cp_size": 4, "cp_rank": 2, "layout": "varlen", "cp_split": "sequence", "tail": "keep"},
        {"world_size": 3, "rank": 1, "accumulate": 2},
        {"seq_len": 16, "carry_label": True, "fields": ("input_ids", "shift_labels")},
        {"depth": 1},
        {"depth": 1, "max_slots": 1},
        {"fields": ("labels",)},
        {"fields": ("shift_labels", "loss_weights")},
    ],
    ids=str,
)
def test_batches_are_those_of_the_host(devices: Devices, how: dict[str, Any], workers: int) -> None:
    compare(devices, num_workers=workers, **how)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])
def test_tokens_of_any_type_arrive(devices: Devices, dtype: str) -> None:
    top = min(np.iinfo(dtype).max, 2**62)
    rng = np.random.default_rng(1)
    corpus = bf.open([rng.integers(0, top, n, endpoint=True).astype(dtype) for n in LENGTHS])
    compare(devices, corpus)


def test_sources_of_several_types_share_a_batch(devices: Devices) -> None:
    rng = np.random.default_rng(2)
    types = ("uint16", "uint8", "int64")
    sources = {
        name: bf.open([rng.integers(0, 200, n).astype(name) for n in LENGTHS]) for name in types
    }
    compare(devices, bf.mix(sources))


masked = st.lists(
    st.lists(st.booleans(), min_size=1, max_size=30).map(lambda mask: [True, *mask, True]),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(
    masks=masked,
    layout=st.sampled_from(["rows", "varlen"]),
    carries=st.booleans(),
    align=st.sampled_from([1, 4]),
    workers=st.integers(0, 2),
)
def test_loss_masks_are_labels(masks, layout, carries, align, workers):
    with pytest.MonkeyPatch.context() as patch:
        devices = Devices(patch)
        documents = [document(i, len(mask)) for i, mask in enumerate(masks)]
        corpus = bf.open(documents, loss_masks=masks)
        fields = ("input_ids", "shift_labels", "loss_weights") if carries else FIELDS
        compare(
            devices, corpus, layout=layout, align=align, num_workers=workers, seq_len=16,
            carry_label=carries, fields=fields,
        )  # fmt: skip
        assert devices.faults() == []


@pytest.mark.parametrize("layout", ["rows", "varlen"])
@pytest.mark.filterwarnings("ignore:.*put aside")
def test_bad_documents_keep_their_places(devices: Devices, layout: str) -> None:
    documents = [document(i, n) for i, n in enumerate(LENGTHS)]
    for bad in (0, 7, 41, 79):
        documents[bad][-1] = -5
    loader = compare(devices, bf.open(documents), layout=layout)
    assert loader.stats().bad_documents == 8


def test_errors_come_in_their_place_again_and_again(devices: Devices) -> None:
    documents = [np.array([1, 2, 3]), np.array([4, -5]), np.array([6, 7, 8])]
    for workers in (0, 2):
        loader = bf.DataLoader(
            documents, seq_len=3, bad_documents="error", device="cuda", num_workers=workers
        )
        iterator = iter(loader)
        assert devices.last.fetched(next(iterator))["input_ids"].tolist() == [[1, 2, 3]]
        for _ in range(2):
            with pytest.raises(bf.FormatError, match="document 1"):
                next(iterator)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_run_goes_on_where_it_was(devices: Devices, workers: int) -> None:
    whole = list(loader_of(device=None))
    loader = loader_of(num_workers=workers)
    begun = list(islice(iter(loader), 5))
    for found, wanted in zip(begun, whole, strict=False):
        check_equal(devices.last, found, wanted)
    state = loader.state_dict()
    again = loader_of(num_workers=workers)
    again.load_state_dict(state)
    for found, wanted in zip(again, whole[5:], strict=True):
        check_equal(devices.last, found, wanted)


@pytest.mark.parametrize("workers", [0, 3])
def test_a_loop_left_early_is_followed_by_the_next_epoch(devices: Devices, workers: int) -> None:
    loader, host = loader_of(num_workers=workers), loader_of(device=None)
    for _ in range(4):
        for found, wanted in zip(islice(loader, 3), islice(host, 3), strict=True):
            check_equal(devices.last, found, wanted)


def test_batches_outlive_iterators_and_loaders(devices: Devices) -> None:
    whole = list(loader_of(device=None))
    loader = loader_of(num_workers=2)
    kept = list(loader)
    cuda = devices.last
    loader.close()
    del loader
    gc.collect()
    for found, wanted in zip(kept, whole, strict=True):
        check_equal(cuda, found, wanted)
    columns = [batch["labels"] for batch in kept]
    assert cuda.blocks == len(kept)
    del kept, found
    gc.collect()
    assert cuda.blocks == len(columns)  # a column keeps its block
    for column, wanted in zip(columns, whole, strict=True):
        np.testing.assert_array_equal(cuda.on_host(column), wanted["labels"])
    del columns, column
    gc.collect()
    assert cuda.blocks == 0


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_shutting_down_with_batches_under_way_reads_no_memory_that_is_gone(
    devices: Devices, workers: int
) -> None:
    devices.config = {"copy_seconds": 1.0}  # far longer than anything else
    for taken in (0, 1, 3):
        loader = loader_of(num_workers=workers)
        iterator = iter(loader)
        for _ in range(taken):
            next(iterator)
        iterator.close()
        assert devices.last.blocks == 0
        cuda = devices.last
        assert cuda.api.pinned_bytes > 0
        del iterator, loader
        gc.collect()
        assert cuda.api.pinned_bytes == 0


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("forgotten", "fault"),
    [
        ("wait", "a read (stream 1) reads memory that"),
        ("sleep_until", "a fill (host) writes memory that a copy"),
        ("record", "reads memory that"),
        ("record_stream", "an allocation (stream 2) writes memory that a read"),
        ("select_device", "before it has selected a device"),
    ],
)
def test_c84_what_the_loader_must_not_forget_would_be_found(
    devices: Devices, forgotten: str, fault: str, workers: int
) -> None:
    devices.config = {"forgotten": {forgotten}, "copy_seconds": 1.0}
    loader = loader_of(num_workers=workers, depth=2)
    try:
        for batch in loader:
            cuda = devices.last
            reads = [(batch["labels"].data_ptr(), 64)]
            cuda.api.launch(cuda.stream.cuda_stream, 1.0, reads=reads, what="a read")
            del batch
    except bf.DeviceError as error:  # what nothing waits for may be asked for too early
        if forgotten != "wait" or "an event was not reached yet" not in str(error):
            raise
    assert any(fault in found for found in devices.faults()), devices.faults()


@pytest.mark.parametrize("workers", [0, 2])
def test_c84_a_slot_is_filled_again_only_after_its_copy(devices: Devices, workers: int) -> None:
    """Two slots, copies that take long, and each batch holds its number and no other."""
    devices.config = {"copy_seconds": 0.05}
    rows = np.repeat(np.arange(100), 256).reshape(100, 256)
    how = {"seq_len": 256, "fields": ("input_ids",), "num_workers": workers, "depth": 1}
    loader = bf.DataLoader(bf.open(rows), packing="pad", device="cuda", max_slots=2, **how)
    for number, batch in enumerate(loader):
        assert (devices.last.fetched(batch)["input_ids"] == number).all()
    assert number == 99
    stats = loader.stats()
    assert stats.starvation.pinned_bytes == devices.last.api.pinned_bytes
    one_slot = stats.starvation.pinned_bytes // 2
    assert 256 * 8 <= one_slot < 256 * 40


def test_c86_no_thread_touches_another_device(devices: Devices) -> None:
    for workers in (0, 1, 4):
        loader = loader_of(device="cuda:1", num_workers=workers)
        batches = list(loader)
        cuda = devices.last
        del batches, loader
        gc.collect()
        assert cuda.api.contexts == {1}
        assert cuda.api.selected_device == 0  # of this thread, as before
        assert cuda.api.pinned_bytes == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_c25_nothing_waits_for_the_device(devices: Devices, workers: int) -> None:
    """The device needs an hour for each batch; the host goes on at once."""
    devices.config = {"expand_seconds": 3600.0}
    loader = loader_of(num_workers=workers, fields=("input_ids", "labels", "position_ids"))
    for batch in loader:
        assert type(batch.max_seqlen) is int
        assert str(batch.cu_seqlens.dtype) == "torch.int32"
        assert batch.cu_seqlens.is_contiguous()
        assert batch.cu_seqlens_host[-1] == batch["input_ids"].numel()
        for column in batch.values():
            assert str(column.dtype) == "torch.int64"
    assert devices.last.api.sleepers <= {"brimful-end", *(f"brimful-{i}" for i in range(workers))}


def test_a_streams_capture_goes_on_beside_the_threads(devices: Devices) -> None:
    loader = loader_of(num_workers=3, depth=2)
    iterator = iter(loader)
    wanted = iter(loader_of(device=None))
    check_equal(devices.last, next(iterator), next(wanted))
    cuda = devices.last
    other = cuda.api.create_stream()
    cuda.api.begin_capture(other, "global")  # of another thread's graph, or this one's
    found = [next(iterator) for _ in range(4)]
    cuda.api.end_capture(other)
    cuda.api.begin_capture(cuda.stream.cuda_stream, "global")
    found.append(next(iterator))
    cuda.api.end_capture(cuda.stream.cuda_stream)
    for batch in found:
        check_equal(cuda, batch, next(wanted))


def test_one_copy_and_one_kernel_a_batch(devices: Devices) -> None:
    loader = loader_of(num_workers=1)
    batches = len(list(loader))
    assert devices.last.api.count("copy_to_device") == batches
    assert devices.last.api.count("expand") == batches
    assert devices.last.api.count("synchronize") == 0


def test_starvation_is_in_the_figures(devices: Devices) -> None:
    devices.config = {"copy_seconds": 3.0}
    loader = loader_of(num_workers=0)
    assert loader.stats().starvation_seconds == 0
    assert loader.stats().starvation.fraction is None
    cuda = devices.last
    for _ in loader:
        cuda.api.launch(cuda.stream.cuda_stream, 1.0)
    cuda.api.advance(1000)
    first = loader.stats(lap=True)
    assert first.starvation.batches <= first.batches - 1
    list(loader)
    stats = loader.stats()
    found = stats.starvation
    assert found.batches > first.starvation.batches
    parts = [found.load_seconds, found.ring_seconds, found.copy_seconds, found.handoff_seconds]
    assert found.seconds == pytest.approx(sum(parts)) == stats.starvation_seconds
    assert found.copy_seconds == pytest.approx(found.seconds, rel=1e-3)
    assert found.fraction == pytest.approx(2 / 3, rel=1e-3)
    assert "starvation" in stats.summary()
    starved = [record.starvation for record in loader.records()]
    assert starved[0] is None, "before the first batch of a pass nothing was measured"
    measured = [one for one in starved if one is not None]
    assert len(measured) == found.batches
    assert sum(one.seconds for one in measured) == pytest.approx(found.seconds)
    for name in ("load_seconds", "ring_seconds", "copy_seconds", "handoff_seconds"):
        of_batches = sum(getattr(one, name) for one in measured)
        assert of_batches == pytest.approx(getattr(found, name))
    assert loader.records(5) == loader.records()[5:]
    rows = [row for row in loader.timeline if row.starvation is not None]
    assert sum(row.starvation.seconds for row in rows) == pytest.approx(found.seconds)
    assert all(row.batches == 1 and not row.first for row in rows)
    lap = loader.stats(lap=True).starvation
    assert lap.batches == found.batches - first.starvation.batches
    assert lap.seconds == pytest.approx(found.seconds - first.starvation.seconds)
    assert stats.as_dict()["starvation"]["seconds"] == found.seconds
    host = loader_of(device=None).stats()
    assert host.starvation_seconds is None
    assert host.starvation is None


def test_a_profile_has_what_each_batch_starved_the_device_for(devices: Devices) -> None:
    devices.config = {"copy_seconds": 3.0}
    loader = loader_of(num_workers=2)
    for _ in islice(loader, 5):  # before the profile
        devices.last.api.launch(devices.last.stream.cuda_stream, 1.0)
    cuda = devices.last
    with bf.profile(loader) as p:
        for _ in range(2):
            for _ in p:
                cuda.api.launch(cuda.stream.cuda_stream, 1.0)
                p.stats()  # asked in the middle of it, too
        cuda.api.advance(1000)
        list(loader)  # whose beginning reads what has passed
    profile = p.profile()
    records = loader.records()[5:]
    assert [row.starvation for row in profile.batches] == [
        None if record.starvation is None else record.starvation.seconds
        for record in records[: len(profile.batches)]
    ]
    assert sum(row.starvation is not None for row in profile.batches) > len(profile.batches) // 2
    assert profile.stats.starvation is not None


def test_a_device_that_fails_is_an_error_of_next(devices: Devices) -> None:
    loader = loader_of(num_workers=2)
    iterator = iter(loader)
    next(iterator)
    devices.last.api.fail("cudaErrorIllegalAddress")
    with pytest.raises(bf.DeviceError, match="cudaErrorIllegalAddress"):
        for _ in iterator:
            pass
    iterator.close()
    loader.close()


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "mps", 1.5, True, "cuda:one"])
def test_what_is_no_cuda_device_is_refused(device: Any) -> None:
    with pytest.raises(bf.PlanError, match="device is"):
        loader_of(device=device)


def test_names_of_devices(devices: Devices) -> None:
    for name, index in (("cuda", 0), ("cuda:2", 2), (torch.device("cuda", 1), 1), (1, 1)):
        loader = loader_of(device=name)
        assert devices.last.index == index
        assert loader.config.device in ("cuda", f"cuda:{index}")
    for name in ("cpu", torch.device("cpu"), None):
        assert loader_of(device=name).config.device is None


def test_without_a_device_the_error_says_why_not() -> None:
    if bf.device.available():
        assert loader_of().stats().starvation is not None
        return
    with pytest.raises(bf.DeviceError) as error:
        loader_of()
    assert str(error.value) == bf.device.why_not()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("layout", ["rows", "varlen"])
def test_c25_c84_a_real_device_gets_the_same_and_nothing_waits(layout: str, workers: int) -> None:
    """Where there is one: 100 batches and more, many of them kept, torch refusing to wait."""
    if not bf.device.available():
        assert bf.device.why_not()
        return
    corpus = corpus_of(LENGTHS * 10)
    how = {"layout": layout, "num_workers": workers, "depth": 2, "align": 4}
    wanted = list(loader_of(corpus, device=None, **how))
    loader = loader_of(corpus, **how)
    torch.cuda.set_sync_debug_mode("error")
    try:
        kept = list(loader)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(kept) == len(wanted) > 100
    for found, want in zip(kept, wanted, strict=True):
        assert found.cu_seqlens.device.type == "cuda"
        assert torch.equal(found.cu_seqlens.cpu(), want.cu_seqlens)
        for name, column in want.items():
            assert torch.equal(found[name].cpu(), column)
    list(loader)
    assert loader.stats().starvation.batches > 0
