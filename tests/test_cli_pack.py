"""`brimful pack`: its figures are those of the packer; its inputs, its plot, and its width."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import datasets
import numpy as np
import pytest

import brimful as bf
from brimful.cli.compare import Ranks, compare
from brimful.packing import Strategy
from test_cli import LENGTHS, assert_fits, assert_one_line_error, run, run_json


@pytest.fixture(scope="module")
def lengths_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lengths") / "lengths.npy"
    np.save(path, LENGTHS)
    return path


def test_pack_is_what_the_packer_says(lengths_file: Path) -> None:
    report = run_json("pack", lengths_file, "--seq-len", 128)
    assert (report["documents"], report["tokens"]) == (len(LENGTHS), LENGTHS.sum())
    rows = {row["strategy"]: row for row in report["strategies"]}
    left_out = {row["strategy"] for row in report["left_out"]}
    assert set(rows) | left_out == {*get_args(Strategy), "bucket"}
    plans = {
        strategy: bf.pack(LENGTHS, 128, strategy=strategy)
        for strategy in get_args(Strategy)
        if strategy not in left_out
    }
    bound = max(plan.lower_bound for name, plan in plans.items() if name != "concat")
    for strategy, plan in plans.items():
        assert rows[strategy]["bins"] == plan.num_bins
        assert rows[strategy]["utilization"] == plan.utilization
        assert rows[strategy]["split_documents"] == plan.split_documents
        best = plan.lower_bound if strategy == "concat" else bound
        assert rows[strategy]["over_lower_bound"] == plan.num_bins / best
    assert rows["pad"]["bins"] == (-(-LENGTHS // 128)).sum()


@pytest.mark.parametrize(
    ("overlong", "counter", "lost"),
    [
        ("truncate", "truncated_documents", (LENGTHS - 128).clip(0).sum()),
        ("drop", "dropped_documents", LENGTHS[LENGTHS > 128].sum()),
    ],
)
def test_pack_counts_what_each_rule_loses(
    lengths_file: Path, overlong: str, counter: str, lost: int
) -> None:
    report = run_json("pack", lengths_file, "--seq-len", 128, "--overlong", overlong)
    for row in report["strategies"]:
        if row["strategy"] != "concat":
            assert row[counter] == (LENGTHS > 128).sum()
            assert row["lost_tokens"] == lost
            assert row["split_documents"] == 0


def test_pack_refuses_by_rule(lengths_file: Path) -> None:
    assert_one_line_error(run("pack", lengths_file, "--seq-len", 16, "--overlong", "error"), "16")
    assert_one_line_error(run("pack", lengths_file, "--seq-len", 16, "--overlong", "x"), "overlong")


def test_pack_reads_lengths_from_text_and_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "lengths.npy", LENGTHS.astype(np.uint16))
    (tmp_path / "lengths.txt").write_text("\n".join(map(str, LENGTHS)))
    reports = [run_json("pack", tmp_path / f"lengths.{s}", "--seq-len", 64) for s in ("npy", "txt")]
    for report in reports:
        assert [part["kind"] for part in report["data"]] == ["document lengths"]
        assert report["tokens"] == LENGTHS.sum()
    bins = [[row["bins"] for row in report["strategies"]] for report in reports]
    assert bins[0] == bins[1]


def test_pack_reads_a_npy_of_tokens_when_told(tmp_path: Path) -> None:
    np.save(tmp_path / "tokens.npy", np.full((3, 50), 7, np.uint16))
    report = run_json("pack", tmp_path / "tokens.npy", "--seq-len", 64, "--format", "npy")
    assert [part["kind"] for part in report["data"]] == ["token shards"]
    assert (report["documents"], report["tokens"]) == (3, 150)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", b"1 2 three"), ("a.txt", b"\xff\xfe"), ("a.txt", b"1 -2"), ("a.npy", b"no numpy")],
)
def test_pack_names_a_file_that_holds_no_lengths(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert_one_line_error(run("pack", tmp_path / name, "--seq-len", 8))


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 2), np.int64), np.zeros(3), np.array([2**63], np.uint64), np.array([None])],
    ids=["matrix", "floats", "too large", "objects"],
)
def test_pack_refuses_arrays_that_are_no_lengths(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    assert_one_line_error(run("pack", tmp_path / "a.npy", "--seq-len", 8), "a.npy")


def test_pack_refuses_files_that_say_more_than_they_hold(tmp_path: Path) -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1" + 17 * b"0" + b",), }"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header.ljust(117) + b"\n")
    assert_one_line_error(run("pack", tmp_path / "a.npy", "--seq-len", 8), "a.npy")
    np.savez(tmp_path / "b.npz", lengths=LENGTHS)
    (tmp_path / "b.npz").rename(tmp_path / "b.npy")
    assert_one_line_error(run("pack", tmp_path / "b.npy", "--seq-len", 8), "b.npy")


@pytest.mark.parametrize("lengths", [[], [0, 0]], ids=["none", "empty"])
def test_pack_of_nothing(tmp_path: Path, lengths: list[int]) -> None:
    np.save(tmp_path / "a.npy", np.array(lengths, np.int64))
    report = run_json("pack", tmp_path / "a.npy", "--seq-len", 8)
    assert {row["utilization"] for row in report["strategies"]} == {None}
    assert run("pack", tmp_path / "a.npy", "--seq-len", 8).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("overlong", ["split", "truncate", "drop"])
def test_pack_fits_the_terminal_at_any_size(tmp_path: Path, overlong: str) -> None:
    np.save(tmp_path / "a.npy", np.tile(LENGTHS, 12_000))
    result = run("pack", tmp_path / "a.npy", "--seq-len", 64, "--overlong", overlong)
    assert result.exit_code == 0
    path, rest = result.stdout.split("\n", 1)  # a path is printed as it is
    assert str(tmp_path) in path
    assert_fits(rest)


def test_pack_reads_shards(tmp_path: Path, lengths_file: Path) -> None:
    with bf.ShardWriter(tmp_path / "shards", dtype="uint16") as writer:
        for length in LENGTHS.tolist():
            writer.add(np.zeros(length, np.uint16))
    report = run_json("pack", tmp_path / "shards", "--seq-len", 64)
    assert [part["kind"] for part in report["data"]] == ["token shards"]
    assert bins_of(report) == bins_of(run_json("pack", lengths_file, "--seq-len", 64))


def bins_of(report: Any) -> dict[str, int]:
    return {row["strategy"]: row["bins"] for row in report["strategies"]}


def test_pack_reads_a_folder_of_save_to_disk(tmp_path: Path, lengths_file: Path) -> None:
    rows = [[1] * length for length in LENGTHS.tolist()]
    datasets.Dataset.from_dict({"input_ids": rows}).save_to_disk(tmp_path / "saved")
    report = run_json("pack", tmp_path / "saved", "--seq-len", 64)
    assert [part["kind"] for part in report["data"]] == ["dataset"]
    assert report["tokens"] == LENGTHS.sum()
    assert bins_of(report) == bins_of(run_json("pack", lengths_file, "--seq-len", 64))


def test_each_data_is_a_source(tmp_path: Path, lengths_file: Path) -> None:
    long = tmp_path / "long.txt"
    long.write_text("90\n100")
    arguments = ("pack", lengths_file, long, "--seq-len", 64, "--overlong", "drop")
    report = run_json(*arguments)
    assert [part["documents"] for part in report["data"]] == [len(LENGTHS), 2]
    assert report["tokens"] == LENGTHS.sum() + 190
    sources = report["strategies"][0]["distribution"]["by_source"]
    assert [source["source"] for source in sources] == [str(lengths_file), str(long)]
    assert [source["tokens"] for source in sources] == [LENGTHS.sum(), 190]
    assert sources[1]["dropped_documents"] == 2
    assert "Documents by source" in run(*arguments).stdout
    assert "Documents by source" not in run("pack", long, "--seq-len", 64).stdout


def test_pack_reports_on_the_strategy_that_is_named(lengths_file: Path) -> None:
    text = run("pack", lengths_file, "--seq-len", 64, "--strategy", "concat").stdout
    assert bf.pack(LENGTHS, 64, strategy="concat").report() in text
    default = run("pack", lengths_file, "--seq-len", 64).stdout
    assert bf.pack(LENGTHS, 64, strategy="streaming").report() in default
    refused = run("pack", lengths_file, "--seq-len", 64, "--strategy", "bucket")
    assert_one_line_error(refused, "strategy", "bucket", "streaming")


def test_the_distribution_is_in_the_json(lengths_file: Path) -> None:
    for row in run_json("pack", lengths_file, "--seq-len", 64)["strategies"]:
        distribution = row["distribution"]
        assert len(distribution["by_length"]) == 10
        assert sum(tenth["tokens"] for tenth in distribution["by_length"]) == LENGTHS.sum()
        assert distribution["total"]["placed_tokens"] == LENGTHS.sum() - row["lost_tokens"]
        assert sum(distribution["bins_by_pieces"]) == row["bins"]


def by_name(lengths: list[int], seq_len: int, ranks: Ranks) -> dict[str, Any]:
    done, _ = compare(np.array(lengths, np.int64), seq_len, ranks=ranks)
    return {row.strategy: row for row in done}


def test_imbalance_is_that_of_steps_in_the_order_of_the_documents() -> None:
    # Steps of two bins, a rank each: work 100 beside 100, 50 beside 50, then 100 beside 50.
    lengths = [10, 10, 5, 5, 5, 5, 10, 5, 5]
    row = by_name(lengths, 10, Ranks(world_size=2, batch_size=1))["best_fit"]
    assert row.bins == 6
    assert row.imbalance == pytest.approx((1 + 1 + 100 / 75) / 3)
    # All three bins of one piece in one step, or two and two: 100 + 100, 100 + 50, 50 + 50.
    assert row.balanced_imbalance == pytest.approx((1 + 100 / 75 + 1) / 3)


def test_imbalance_adds_up_the_rows_of_a_rank() -> None:
    # Rows are dealt one to each rank in turn: ranks get 100 + 50 and 50 + 100.
    lengths = [10, 5, 5, 5, 5, 10]
    row = by_name(lengths, 10, Ranks(world_size=2, batch_size=2))["best_fit"]
    assert row.imbalance == 1
    assert by_name(lengths, 10, Ranks(world_size=3, batch_size=2))["best_fit"].imbalance is None


def test_buckets_are_rows_by_length_padded_to_the_longest_of_their_batch() -> None:
    rows = by_name([1, 8, 2, 7, 3], 8, Ranks(world_size=1, batch_size=2))
    # Batches of 8 and 7, of 3 and 2, and of 1: 2 * 8 + 2 * 3 + 1 slots for 21 tokens.
    assert rows["bucket"].utilization == 21 / 23
    assert rows["pad"].utilization == 21 / 40
    assert rows["bucket"].bins == rows["pad"].bins == 5
    assert list(rows)[-2:] == ["pad", "bucket"]


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.PDF", "a.html"])
def test_the_plot_is_what_its_name_says(name: str, lengths_file: Path, tmp_path: Path) -> None:
    result = run("pack", lengths_file, "--seq-len", 64, "--plot", tmp_path / name)
    assert result.exit_code == 0, result.stderr
    assert str(tmp_path / name) in result.stdout
    content = (tmp_path / name).read_bytes()
    assert len(content) > 10_000
    marks = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!doctype html>"}
    assert content.startswith(marks[Path(name).suffix.lower()])


@pytest.mark.parametrize("lengths", [[], [0], [9], [3] * 5], ids=["none", "empty", "one", "equal"])
def test_a_plot_of_little(lengths: list[int], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(lengths, np.int64))
    result = run("pack", tmp_path / "a.npy", "--seq-len", 8, "--plot", tmp_path / "a.png")
    assert result.exit_code == 0, result.stderr


def test_a_plot_that_cannot_be_is_refused_before_the_work(
    lengths_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plotted_to(path: Path) -> Any:
        return run("pack", lengths_file, "--seq-len", 64, "--plot", path)

    assert_one_line_error(plotted_to(tmp_path / "a.xlsx"), "a.xlsx", ".png")
    assert_one_line_error(plotted_to(tmp_path / "absent" / "a.png"), "absent")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert_one_line_error(plotted_to(tmp_path / "a.png"), "matplotlib", "brimful[plot]")


def test_a_strategy_that_lacks_its_package_is_left_out_and_told(
    lengths_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = bf.pack

    def without_one(*arguments: Any, strategy: Strategy, **more: Any) -> bf.PackPlan:
        if strategy == "best_fit":
            raise ModuleNotFoundError("best_fit needs a package", name="package")
        return packed(*arguments, strategy=strategy, **more)

    monkeypatch.setattr(bf, "pack", without_one)
    report = run_json("pack", lengths_file, "--seq-len", 64)
    assert {"strategy": "best_fit", "reason": "best_fit needs a package"} in report["left_out"]
    assert "best_fit" not in bins_of(report)
    text = run("pack", lengths_file, "--seq-len", 64).stdout
    assert "best_fit is left out: best_fit needs a package" in text


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_strategy_that_is_named_and_cannot_run_is_an_error(
    more: list[str], lengths_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    named = run("pack", lengths_file, "--seq-len", 64, "--strategy", "optimal", *more)
    assert_one_line_error(named, "pip install 'brimful[optimal]'")
    assert run("pack", lengths_file, "--seq-len", 64, *more).exit_code == 0


def test_the_report_and_the_table_tell_of_the_same_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = bf.pack
    monkeypatch.setattr(bf, "pack", lambda *given, **how: packed(*given, **how, time_limit=60))
    # Two of a bin are 0.4 of it: only "optimal" proves that 150 bins are needed.
    lengths = np.repeat([401, 400, 399], 100)
    np.save(tmp_path / "a.npy", lengths)
    own = bf.pack(lengths, 1000)
    assert (own.num_bins, own.lower_bound) == (150, 120)
    arguments = ("pack", tmp_path / "a.npy", "--seq-len", 1000, "--strategy", own.strategy)
    report = run(*arguments).stdout
    assert "150, optimal: no packing of these pieces has fewer" in report
    (row,) = (line for line in report.splitlines() if line.startswith(f"{own.strategy} "))
    assert row.split()[2] == "1.0000"


@pytest.mark.parametrize("count", [40, 64 * 3])
def test_a_lack_of_full_steps_is_told(count: int, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full(count, 60))
    told = run("pack", tmp_path / "a.npy", "--seq-len", 64).stdout
    assert ("imbalance -: fewer rows than the 64 of one full step." in told) == (count < 64)


def test_no_figure_is_cut_and_no_line_ends_in_a_blank(lengths_file: Path) -> None:
    whole = run("pack", lengths_file, "--seq-len", 64, width=300).stdout
    narrow = run("pack", lengths_file, "--seq-len", 64, width=30).stdout
    for text in (whole, narrow):
        assert [line for line in text.splitlines() if line != line.rstrip()] == []
        assert "…" not in text
    for strategy in (*get_args(Strategy), "bucket"):
        row, same_row = (
            next(line for line in text.splitlines() if line.startswith(f"{strategy} ")).split()[:4]
            for text in (narrow, whole)
        )
        assert row == same_row


def test_one_document_is_no_documents(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", [1])
    told = run("pack", tmp_path / "a.npy", "--seq-len", 64).stdout
    assert "1 document, 1 token, into bins of 64" in told
    assert "streaming: 1 document into bins of 64 tokens" in told


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("12\n-3\n", ("a.txt, line 2", "-3")),
        ("12\n7 \n\nfive\n", ("a.txt, line 4", "'five'", "brimful prepare")),
        ("It was a dark night.", ("a.txt, line 1", "'It'", "brimful prepare")),
        ("1\n" + "9" * 30, ("a.txt, line 2", "2**63 - 1")),
    ],
)
def test_lengths_that_are_none_are_named_by_line(
    tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "a.txt").write_text(content)
    assert_one_line_error(run("pack", tmp_path / "a.txt", "--seq-len", 8), *words)


def test_negative_lengths_of_a_npy_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", [3, -2])
    refused = run("pack", tmp_path / "a.npy", "--seq-len", 8)
    assert_one_line_error(refused, "a.npy", "document 1", "-2")


def test_a_text_that_is_packed_is_sent_to_prepare(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "It was a dark night."}\n')
    refused = run("pack", tmp_path / "a.jsonl", "--seq-len", 8)
    assert_one_line_error(refused, "a.jsonl", "brimful prepare", "--dtype uint16")
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "a.bin")
    refused = run("pack", tmp_path / "a.bin", "--seq-len", 8)
    assert_one_line_error(refused, "--dtype uint16")
    assert "prepare" not in refused.stderr


def test_errors_name_flags(lengths_file: Path, tmp_path: Path) -> None:
    refused = run("pack", lengths_file, "--seq-len", 16, "--overlong", "error")
    assert_one_line_error(refused, "--overlong split")
    refused = run("pack", lengths_file, "--seq-len", 16, "--strategy", "x")
    assert_one_line_error(refused, "--strategy x is unknown")
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe")
    refused = run("prepare", tmp_path / "a.txt", "--out", tmp_path / "b", "--tokenizer", "bytes")
    assert_one_line_error(refused, "--errors skip")
    # A folder may be named like an argument.
    folder = tmp_path / "overlong=split"
    assert_one_line_error(run("pack", folder, "--seq-len", 16), str(folder))
