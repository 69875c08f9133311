"""Diagnoses of native loaders: what is wrong is found where it is, and nothing else moves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful.profiling.diagnose import diagnose
from brimful.profiling.diagnosis import AREAS, Diagnosis, Line
from brimful.profiling.diagnosis_data import sample_by_length
from brimful.profiling.residency import resident_share
from truth import all_pieces, corpus_of, document, mixed

LENGTHS = [5, 30, 2, 8, 8, 13, 1, 9, 4, 40, 11, 7, 3] * 20


def line(diagnosis: Diagnosis, question: str) -> Line:
    """The only line whose question has these words."""
    (found,) = (line for line in diagnosis.lines if question in line.question)
    return found


def loader(corpus: bf.Corpus | None = None, **settings: Any) -> bf.DataLoader:
    settings = {"seq_len": 64, "batch_size": 2, "shuffle": True, "num_workers": 0} | settings
    return bf.DataLoader(corpus_of(LENGTHS) if corpus is None else corpus, **settings)


def drawn(made: bf.DataLoader, batches: int = 20) -> bf.DataLoader:
    """The loader, somewhere in its epoch."""
    list(islice(made, batches))
    return made


def test_a_sound_loader_asks_for_nothing() -> None:
    corpus = corpus_of([16 + i % 16 for i in range(400)])
    diagnosis = drawn(loader(corpus, seq_len=128, packing="best_fit_decreasing")).diagnose()
    assert [line.question for line in diagnosis.look_here] == []
    assert [*dict.fromkeys(line.area for line in diagnosis.lines)] == list(AREAS)
    assert json.loads(json.dumps(diagnosis.as_dict())) == diagnosis.as_dict()


def test_the_text_has_every_answer_and_advice_where_it_is_needed() -> None:
    diagnosis = drawn(loader(packing="pad")).diagnose()
    text = str(diagnosis)
    words = " ".join(text.split())
    for answer in diagnosis.lines:
        assert f"{answer.status} {answer.question} {answer.figure}" in words
        assert answer.advice in words
        assert answer.status != "look here" or answer.advice
        assert answer.status != "ok" or not answer.advice
    assert [text.splitlines().index(area) for area in AREAS] == sorted(
        text.splitlines().index(area) for area in AREAS
    )


@pytest.mark.parametrize(
    ("question", "settings"),
    [
        ("Do slots hold tokens?", {"packing": "pad"}),
        ("Are tokens lost?", {"overlong": "truncate", "seq_len": 32}),
        ("Are tokens lost?", {"overlong": "drop", "seq_len": 32}),
        ("Do documents stay whole?", {"packing": "concat", "seq_len": 16}),
        ("Do batches of a step hold as many", {"packing": "pad", "accumulate": 2, "batch_size": 1}),
        ("Do batches cost alike?", {"packing": "pad", "batch_size": 1}),
        ("Do ranks get as much work?", {"packing": "pad", "batch_size": 1, "world_size": 2}),
        ("Is there a core for each maker", {"num_workers": 512}),
    ],
)
@pytest.mark.filterwarnings("ignore:.* tokens were dropped")
def test_a_setting_that_costs_is_named(question: str, settings: dict[str, Any]) -> None:
    settings = {"rank": 0} | settings if "world_size" in settings else settings
    assert line(drawn(loader(**settings)).diagnose(), question).status == "look here"


@pytest.mark.parametrize("packing", ["streaming", "best_fit_decreasing", "concat"])
def test_documents_that_no_row_could_hold_are_split_as_they_must_be(packing: str) -> None:
    made = drawn(loader(corpus_of([100] * 50 + [1] * 10), packing=packing), 100)
    whole = line(made.diagnose(), "Do documents stay whole?")
    assert whole.status == "ok"
    assert "50 of 60 documents split" in whole.figure
    assert "longer than seq_len" in whole.figure


def test_what_was_not_measured_has_no_advice_but_how_to_measure_it() -> None:
    def unmasked() -> Iterator[dict[str, Any]]:
        for _ in range(5):
            yield {"input_ids": np.ones((2, 8), np.int64), "labels": np.ones((2, 8), np.int64)}

    measured = bf.profile(unmasked()).run().profile()
    for profile, words in ((None, "brimful.profile(loader)"), (measured, "A mask or boundaries")):
        diagnosis = diagnose(unmasked(), profile=profile)
        slots = line(diagnosis, "Do slots hold tokens?")
        assert slots.status == "not measured"
        assert words in slots.advice
    assert "70 tokens with a label" in line(diagnosis, "Do tokens carry a label?").figure


@pytest.mark.parametrize("columns", [60, 90, 300])
def test_texts_fit_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    made = drawn(loader(packing="pad"))
    texts = [str(made.diagnose()), str(made.explain()), bf.profile(made, steps=9).report()]
    for text in texts:
        assert min(columns, 100) - 30 < max(map(len, text.splitlines())) <= min(columns, 100)


def test_masks_that_leave_few_labels_are_named() -> None:
    documents = [document(i, 20) for i in range(100)]
    masked = [{"input_ids": d, "loss_mask": np.arange(len(d)) > 16} for d in documents]
    answer = line(drawn(loader(bf.open(masked))).diagnose(), "carry a label")
    assert answer.status == "look here"
    assert "of 2,000 tokens" in answer.figure


def test_bad_documents_are_named() -> None:
    documents = [document(i, 20) for i in range(50)]
    documents[7] = -documents[7] - 1
    made = loader(bf.open(documents))
    with pytest.warns(UserWarning, match="bad"):
        list(made)
    answer = line(made.diagnose(), "Are tokens lost?")
    assert answer.status == "look here"
    assert "1 document bad: 20 tokens" in answer.figure


def test_copies_are_counted_exactly_where_all_documents_are_read() -> None:
    documents = [document(i, n) for i, n in enumerate(LENGTHS)]
    again = [documents[i].copy() for i in (0, 9, 9, 30)]
    answer = line(loader(bf.open(documents + again)).diagnose(), "there twice")
    assert answer.status == "look here"
    assert answer.figure == f"4 copies in all {len(LENGTHS) + 4} documents"
    assert "3 times" in answer.advice
    assert line(loader(bf.open(documents)).diagnose(), "there twice").status == "ok"


def test_copies_are_copies_in_any_dtype() -> None:
    tokens = [np.arange(i, i + 9) for i in range(50)]
    sources = {
        str(dtype): bf.open([d.astype(dtype) for d in tokens]) for dtype in ("uint16", "int64")
    }
    answer = line(loader(bf.mix(sources)).diagnose(), "there twice")
    assert answer.figure == "50 copies in all 100 documents"


@given(
    lengths=st.lists(st.integers(0, 30), max_size=80),
    most=st.integers(1, 100),
    most_tokens=st.integers(1, 1000),
)
def test_a_sample_holds_whole_lengths_within_its_limits(
    lengths: list[int], most: int, most_tokens: int
) -> None:
    stored = np.array(lengths, np.int64)
    chosen, everything = sample_by_length(stored, most, most_tokens)
    assert len(set(chosen.tolist())) == len(chosen) <= most
    assert (stored[chosen] > 0).all()
    assert everything == (len(chosen) == np.count_nonzero(stored))
    held = set(stored[chosen].tolist())
    if len(held) > 1:  # of one length alone there may be too many
        assert len(chosen) == np.isin(stored, list(held)).sum()
        assert stored[chosen].sum() <= most_tokens
    assert len(chosen) > 0 or not (stored > 0).any()


def test_of_a_corpus_of_many_documents_the_first_ones_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("brimful.profiling.diagnosis_data._MOST_LENGTHS", 40)
    monkeypatch.setattr("brimful.profiling.diagnosis_data._FIRST_LENGTHS", 30)
    monkeypatch.setattr("brimful.profiling.diagnosis_order._MOST_DRAWS", 30)
    documents = [document(i, 9) for i in range(20)] * 3
    diagnosis = loader(bf.open(documents)).diagnose()
    assert line(diagnosis, "twice").figure == "10 copies in a sample of 30 documents"
    assert line(diagnosis, "every document once").status == "not measured"


def test_a_sample_finds_about_as_many_copies_as_there_are() -> None:
    rng = np.random.default_rng(0)
    documents = [rng.integers(0, 99, n) for n in rng.integers(1, 2000, 2000)]
    documents += documents[:200]
    answer = line(loader(bf.open(documents), seq_len=2048).diagnose(documents=500), "there twice")
    found = int(answer.figure.split()[0])
    looked_at = int(answer.figure.split()[-2].replace(",", ""))
    assert looked_at <= 500
    assert found / looked_at == pytest.approx(200 / 2200, rel=0.5)


WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}
SOURCES = {"a": [9, 11] * 150, "b": [30] * 100, "c": [3, 5, 4] * 100}


def test_sources_beside_their_weights() -> None:
    for unit in ("tokens", "documents"):
        even = drawn(loader(mixed(SOURCES, weights=WEIGHTS, unit=unit)), 30)
        assert line(even.diagnose(), "get their weights").status == "ok"
    schedule = [(0, WEIGHTS), (1000, {"a": 0.0, "b": 0.0, "c": 1.0})]
    moved = drawn(loader(mixed(SOURCES, weights=schedule)), 20)
    answer = line(moved.diagnose(), "get their weights")
    assert answer.status == "ok", answer.figure
    dry = loader(mixed(SOURCES, weights={"a": 0.05, "b": 0.9, "c": 0.05}, when_dry="drop"))
    list(dry)
    answer = line(dry.diagnose(), "get their weights")
    assert answer.status == "look here"
    assert "'b'" in answer.figure or "'a'" in answer.figure
    plain = drawn(loader(mixed(SOURCES)))
    assert line(plain.diagnose(), "get their weights").status == "not measured"


def test_epochs_are_every_document_once_and_mixtures_say_what_they_repeat() -> None:
    made = loader()
    list(made)
    answer = line(made.diagnose(), "every document once")
    assert answer.status == "ok"
    assert answer.figure == f"{len(LENGTHS)} documents in epoch 1: 0 never, 0 repeatedly"
    small = loader(mixed({"a": [9] * 500, "b": [9] * 10}, weights={"a": 0.5, "b": 0.5}))
    list(small)
    diagnosis = small.diagnose()
    assert line(diagnosis, "every document once").status == "look here"
    often = line(diagnosis, "gone through")
    assert often.status == "look here"
    assert "'b' most often: 25.50 times" in often.figure


def test_steps_that_are_left_out_are_told() -> None:
    made = loader(skip=range(2, 5))
    list(made)
    skipped = sum(len(np.unique(made.documents(step).documents)) for step in range(2, 5))
    answer = line(made.diagnose(), "left out")
    assert answer.figure.startswith(f"3 steps by skip=, with {skipped} documents")


@pytest.mark.parametrize("settings", [
    {}, {"num_workers": 2}, {"layout": "varlen"}, {"packing": "bucket"}, {"accumulate": 3},
    {"skip": (1, 4)}, {"balance": "attention"}, {"collate_fn": len}, {"max_segments": 4},
    {"fields": ("input_ids", "shift_labels")}, {"cp_size": 2, "cp_rank": 1},
    {"order": "megatron", "shuffle": False}, {"rank": 1, "world_size": 2}, {"drop_last": True},
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.* tokens were dropped", "ignore:cp_size")
def test_every_native_loader_resumes_equally_and_delivers_on_as_if_nobody_had_asked(
    settings: dict[str, Any],
) -> None:
    def listed(batch: Any) -> Any:
        return batch if isinstance(batch, int) else np.asarray(batch["input_ids"]).tolist()

    undisturbed = [listed(batch) for batch in loader(**settings)]
    made = loader(**settings)
    found = []
    for i, batch in enumerate(made):
        found.append(listed(batch))
        if i in (0, 3):
            before = made.state_dict()
            answer = line(made.diagnose(), "resumed run be equal")
            assert answer.status == "ok", answer.figure
            assert made.state_dict() == before
    assert found == undisturbed
    assert line(made.diagnose(), "resumed run be equal").status == "ok"


def test_a_mix_that_changed_resumes_too() -> None:
    first = drawn(loader(mixed(SOURCES, weights=WEIGHTS), window=50), 5)
    state = first.state_dict()
    other = loader(mixed(SOURCES, weights={"a": 0.1, "b": 0.1, "c": 0.8}), window=50)
    other.load_state_dict(state, allow_mix_change=True)
    drawn(other, 3)
    diagnosis = other.diagnose()
    assert line(diagnosis, "resumed run be equal").status == "ok"
    assert "changed" in line(diagnosis, "get their weights").figure


def test_a_run_that_is_over_has_nothing_to_compare() -> None:
    made = loader(mixed({"a": [9] * 50, "b": [5] * 50}, max_passes=1.0))
    iterator = iter(made)
    for _ in range(len(made)):
        next(iterator)
    assert line(made.diagnose(), "resumed run be equal").status == "not measured"
    assert next(iterator, None) is None
    assert line(made.diagnose(), "resumed run be equal").status == "not measured"


def test_a_state_that_resumes_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = bf.DataLoader.state_dict

    def forgetful(self: bf.DataLoader) -> dict[str, Any]:
        state = original(self)
        cursor = state["cursor"]
        state["step"] = cursor["step"] = cursor["step"] // 2
        cursor["bin"] = cursor["step"] * state["bins_per_step"]
        return state

    monkeypatch.setattr(bf.DataLoader, "state_dict", forgetful)
    answer = line(drawn(loader(), 8).diagnose(), "resumed run be equal")
    assert answer.status == "look here"


@pytest.fixture
def shards(tmp_path: Path) -> Callable[..., Path]:
    def write(documents: int = 200) -> Path:
        with bf.ShardWriter(tmp_path / "shards", dtype="int32") as writer:
            for i in range(documents):
                writer.add(document(i, 50 + i % 7, stride=1000))
        return tmp_path / "shards"

    return write


def test_files_are_asked_what_is_in_memory_and_how_long_reads_take(
    shards: Callable[..., Path],
) -> None:
    diagnosis = loader(bf.open(shards())).diagnose()
    assert line(diagnosis, "corpus in memory").status == "ok"
    assert "of 42.4 kB are in the page cache" in line(diagnosis, "corpus in memory").figure
    assert "of 32 reads" in line(diagnosis, "read take").figure


def test_a_file_that_was_cut_is_told_and_not_read(shards: Callable[..., Path]) -> None:
    made = loader(bf.open(shards()))
    (file,) = (made.corpus._parts[0].stores[0].name,)
    with open(file, "r+b") as tokens:
        tokens.truncate(1000)
    answer = line(made.diagnose(), "there twice")
    assert answer.status == "look here"
    assert "has 1,000 bytes" in answer.figure
    assert line(made.diagnose(), "resumed run be equal").status == "look here"
    Path(file).unlink()
    assert "is gone" in line(made.diagnose(), "there twice").figure


def test_residency_of_files_is_counted_in_pages(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(1 << 20)
    assert resident_share([str(sparse)]) == 0.0
    with sparse.open("r+b") as file:
        file.write(b"x" * (1 << 18))
    assert resident_share([str(sparse)]) == pytest.approx(0.25, abs=0.05)
    empty = tmp_path / "empty"
    empty.touch()
    assert resident_share([str(empty)]) is None
    assert resident_share([str(tmp_path / "absent")]) is None


def test_what_is_delivered_late_is_told_to_be_waited_for() -> None:
    quick = drawn(loader(num_workers=2), 10)
    assert "ready" in line(quick.diagnose(), "Is data waited for?").figure
    alone = drawn(loader(num_workers=0), 10)
    assert line(alone.diagnose(), "Is data waited for?").figure.endswith("none is made ahead")


def test_an_iterable_is_asked_the_same_areas() -> None:
    diagnosis = diagnose(iter([1, 2]))
    assert [*dict.fromkeys(line.area for line in diagnosis.lines)] == list(AREAS)
    assert not diagnosis.look_here


def test_a_profile_answers_what_only_it_knows() -> None:
    def batches() -> Iterator[dict[str, Any]]:
        for _ in range(5):
            yield {
                "input_ids": np.ones((2, 8), np.int64),
                "attention_mask": np.eye(2, 8, dtype=int),
            }

    profile = bf.profile(batches()).run().profile()
    diagnosis = diagnose(batches(), profile=profile)
    slots = line(diagnosis, "Do slots hold tokens?")
    assert slots.status == "look here"
    assert slots.figure == "12.50 % of 80 slots"
    assert line(diagnosis, "Is data waited for?").status == "look here"  # no step used any time


def test_what_diagnosis_reads_is_what_the_loader_delivers() -> None:
    made = loader()
    made.diagnose()
    assert sorted(d for d, s, _ in all_pieces(made) if s == 0) == list(range(len(LENGTHS)))
