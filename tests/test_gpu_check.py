"""bench/gpu_check.py: its parts run here on the host, small, in place of a device."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))

import brimful as bf
import gpu_check
from gpu import block_masks, copies, kernels, loaders, row, starving, timing


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that is the host: a kernel runs when it is launched, and sleep takes no time."""
    from brimful import padding_columns

    def seconds(run: Callable[[], Any], repeats: int = 1) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    monkeypatch.setattr(timing, "DEVICE", "cpu")
    monkeypatch.setattr(timing, "launch", lambda kernel: kernel.run_on_host())
    monkeypatch.setattr(timing, "synchronize", lambda: None)
    monkeypatch.setattr(timing, "sleep", lambda cycles: time.sleep(cycles * 1e-9))
    monkeypatch.setattr(timing, "seconds", seconds)
    monkeypatch.setattr("brimful.kernels.launch", lambda kernel, _: kernel.run_on_host())
    monkeypatch.setattr(padding_columns, "on_device", padding_columns.is_tensor)
    monkeypatch.setattr("brimful.padding.on_device", padding_columns.is_tensor)


def results(rows: list[row.Row]) -> list[str]:
    assert all(isinstance(one, row.Row) and "|" not in "".join(one) for one in rows)
    return [one.result for one in rows]


def test_kernels_are_timed() -> None:
    assert len(results(kernels.measure_expand([(1000, 7), (5000, 1)]))) == 2
    assert len(results(block_masks.measure_kernel([(3000, 7, None), (3000, 1, 64)]))) == 2
    assert len(results(kernels.measure_unpad(3, 50))) == 2


def test_the_timed_kernel_writes_a_batch() -> None:
    kernel, (_, columns) = kernels.expansion(1000, 7)
    timing.launch(kernel)
    cu = kernels.offsets(1000, 7)
    assert columns["input_ids"].tolist() == list(range(1000))
    assert (columns["labels"] == -100).nonzero().ravel().tolist() == cu[:-1].tolist()
    assert columns["document_ids"].max() == 6


def test_copies_and_events_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            recorded.append(self)

    monkeypatch.setattr("torch.cuda.Event", Event)
    assert len(results(copies.measure_copies(1000))) == 2
    assert len(results(copies.measure_events(10))) == 1
    assert len(set(recorded)) == 10


def test_the_rival_s_rows_are_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [np.arange(n, dtype=np.uint16) for n in (3, 7, 2, 12)]
    packed = loaders.PackedRows(documents, 5)
    got = [packed[i] for i in range(len(packed))]
    ids = [n for one in got for n in one["input_ids"].tolist()]
    assert ids == np.concatenate(documents)[:20].tolist()
    assert got[0]["position_ids"].tolist() == [0, 1, 2, 0, 1]
    assert got[1]["position_ids"].tolist() == [0, 1, 2, 3, 4]  # a row cuts a document
    assert got[2]["position_ids"].tolist() == [0, 1, 0, 1, 2]
    assert got[0]["labels"].tolist() == [-100, 1, 2, -100, 1]


@pytest.fixture
def host_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaders that know of no device."""
    made = bf.DataLoader

    def loader(corpus: bf.Corpus, **how: Any) -> bf.DataLoader:
        return made(corpus, **{name: how[name] for name in how.keys() - {"device", "pin_memory"}})

    monkeypatch.setattr(bf, "DataLoader", loader)


@pytest.mark.usefixtures("host_loader")
def test_loaders_are_timed() -> None:
    rows = loaders.measure_loaders(1_000_000, 0.01, (1,))
    assert [one.what.split(",")[0] for one in rows] == ["brimful"] * 3 + ["torch"]
    assert all(result.endswith("M slots/s") for result in results(rows))


@pytest.mark.usefixtures("host_loader")
def test_starvation_is_held_to_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starving, "BATCH_SIZE", 2)
    monkeypatch.setattr(starving, "STEPS", 4)
    rows = starving.measure_starvation(100_000)
    assert len(results(rows)) == 2 * len(starving.SCENARIOS)  # from inside and from outside
    assert all(one.note.startswith("the truth: ") for one in rows)


def test_the_true_fraction_is_of_the_longer_run() -> None:
    assert starving.true_fraction(4.0, 1.0) == 0.75
    assert starving.true_fraction(1.0, 1.1) == 0.0
    taken = starving.walk(iter(range(9)), 1_000_000, 0.001)
    assert taken > 0.016  # 8 steps after the first batch, and its own


@pytest.mark.parametrize(
    ("tool", "output", "found"),
    [
        ("memcheck", "ok\n========= ERROR SUMMARY: 0 errors", "clean"),
        ("racecheck", "RACECHECK SUMMARY: 0 hazards displayed (0 errors)", "clean"),
        ("memcheck", "Device not supported", "not run: it does not take this device"),
    ],
)
def test_what_the_sanitizer_says(tool: str, output: str, found: str) -> None:
    assert gpu_check.verdict(tool, output) == found


def test_a_fault_that_the_sanitizer_finds_ends_the_script() -> None:
    with pytest.raises(SystemExit, match="did not find the kernels clean"):
        gpu_check.verdict("memcheck", "Invalid __global__ write\n ERROR SUMMARY: 1 error")


def test_a_table_comes_last() -> None:
    made = row.table([row.Row("a", row.span(2.5e-6)), row.Row("b", row.span(0.02), "host")])
    assert made.splitlines()[2:] == ["| a | 2.50 us |  |", "| b | 20.00 ms | host |"]
    assert row.span(3) == "3.00 s"


def test_every_part_and_every_test_is_there() -> None:
    for module, name in gpu_check.PARTS:
        assert callable(getattr(sys.modules[module], name))
    for name in gpu_check.TESTS:
        assert list((gpu_check.ROOT / "tests").glob(name)), name


def test_a_part_that_fails_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gpu_check, "PARTS", [("gpu.copies", "nothing"), ("gpu.copies", "measure_copies")]
    )
    rows = gpu_check.measure()
    assert (rows[0].what, rows[0].result) == ("nothing", "failed")
    assert len(rows) == 3
