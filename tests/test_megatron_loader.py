"""A loader in Megatron's order: its rows are the samples of megatron-core, token for token."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import brimful as bf
import megatron_core
from brimful import native
from brimful.megatron_rows import row_order
from shard_files import write_megatron
from truth import IGNORE, check, corpus_of, document, mixed

LENGTHS = st.lists(st.sampled_from([0, 1, 1, 2, 3, 5, 9, 30]), min_size=1, max_size=16)
SHIFTED = ("input_ids", "shift_labels")


def written(folder: Path, lengths: Sequence[int], first: int = 0) -> Path:
    """The prefix of a pair of files on disk. No token is 0, which padding would be."""
    with bf.ShardWriter(folder, dtype="int32") as writer:
        for number, length in enumerate(lengths):
            writer.add(1 + document(first + number, length, stride=1000))
    return folder / "shard-00000"


def samples_of(dataset: Any, count: int) -> tuple[list[Any], list[Any]]:
    """Tokens and labels as Megatron delivers them, [samples][seq_len]."""
    samples = [dataset[i] for i in range(count)]
    return (
        [sample["tokens"].tolist() for sample in samples],
        [sample["labels"].tolist() for sample in samples],
    )


def rows_of(loader: bf.DataLoader, column: str = "input_ids") -> list[Any]:
    found = []
    for batch in loader:
        check(batch, loader)
        found += np.asarray(batch[column]).tolist() if batch.num_tokens else []
    return found


def make(corpus: Any, **how: Any) -> bf.DataLoader:
    return bf.DataLoader(corpus, **{"order": "megatron", "num_workers": 0, "seed": 7, **how})


@given(
    lengths=LENGTHS,
    seq_len=st.integers(1, 12),
    epochs=st.floats(0.05, 5),
    seed=st.integers(0, 2**32 - 1),
    batch_size=st.integers(1, 4),
    window=st.integers(1, 40),
    extra_token=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_rows_are_the_samples_of_a_gpt_dataset(
    lengths: list[int],
    seq_len: int,
    epochs: float,
    seed: int,
    batch_size: int,
    window: int,
    extra_token: bool,
) -> None:
    num_samples = int(epochs * sum(lengths) / seq_len)
    assume(0 < num_samples < 200)
    with tempfile.TemporaryDirectory() as folder:
        prefix = written(Path(folder, "shards"), lengths)
        dataset, _, _ = megatron_core.built(
            [prefix], None, "1", (num_samples, 0, 0), seq_len, seed,
            add_extra_token_to_sequence=extra_token,
        )  # fmt: skip
        tokens, labels = samples_of(dataset, num_samples)
        loader = make(
            Path(folder, "shards"),
            order=bf.MegatronOrder(extra_token=extra_token),
            seq_len=seq_len,
            num_samples=num_samples,
            seed=seed,
            batch_size=batch_size,
            window=window,
            fields=SHIFTED,
        )
        assert len(loader) == -(-num_samples // batch_size)
        found = [batch for batch in loader for check_it in [check(batch, loader)]]
        assert np.concatenate([b["input_ids"] for b in found]).tolist() == tokens
        shifted = np.concatenate([b["shift_labels"] for b in found])
        ends = shifted == IGNORE
        assert np.where(ends, labels, shifted).tolist() == labels
        # Without a label are last tokens of documents, and of rows where none is carried.
        given_tokens = np.array(tokens) - 1
        last = np.array(lengths)[given_tokens // 1000] - 1 == given_tokens % 1000
        if not extra_token:
            last[:, -1] = True
        np.testing.assert_array_equal(ends, last)
        assert all(b.num_tokens == seq_len * len(b["input_ids"]) for b in found)
        assert loader.stats().tokens == num_samples * seq_len


@given(
    sources=st.lists(LENGTHS, min_size=1, max_size=4),
    seq_len=st.integers(1, 8),
    num_samples=st.integers(1, 150),
    seed=st.integers(0, 99),
    data=st.data(),
)
@settings(max_examples=25, deadline=None)
def test_rows_are_the_samples_of_a_blend(
    sources: list[list[int]], seq_len: int, num_samples: int, seed: int, data: st.DataObject
) -> None:
    assume(all(sum(lengths) > seq_len for lengths in sources))
    weighted = data.draw(st.booleans())
    weights = [data.draw(st.floats(0.1, 10)) for _ in sources] if weighted else None
    with tempfile.TemporaryDirectory() as folder:
        prefixes = [
            written(Path(folder, str(s)), lengths, 30 * s) for s, lengths in enumerate(sources)
        ]
        if not weighted and len(sources) > 1:
            most = sum((sum(lengths) - 1) // seq_len for lengths in sources)
            num_samples = min(num_samples, most)
        dataset, _, _ = megatron_core.built(
            prefixes, weights, "1", (num_samples, 0, 0), seq_len, seed
        )
        tokens, _ = samples_of(dataset, num_samples)
        opened = {str(s): bf.open(Path(folder, str(s))) for s in range(len(sources))}
        given_weights = None if weights is None else dict(zip(opened, weights, strict=True))
        corpus = bf.mix(opened, weights=given_weights)
        loader = make(corpus, seq_len=seq_len, num_samples=num_samples, seed=seed, batch_size=3)
        assert rows_of(loader) == tokens
        exposure = loader.stats().exposure
        assert sum(of["tokens"] for of in exposure.values()) == num_samples * seq_len


@pytest.mark.parametrize("split", ["60,30,10", "900,80,20", "0,1,1"])
@pytest.mark.parametrize("weights", [None, [0.25, 0.75]])
def test_splits_of_each_source(tmp_path: Path, split: str, weights: list[float] | None) -> None:
    prefixes = [
        written(tmp_path / name, [5 + n % 7 for n in range(count)], first)
        for name, count, first in (("a", 400, 0), ("b", 700, 400))
    ]
    sizes = (40, 20, 2)
    expected = megatron_core.built(prefixes, weights, split, sizes, 6, 3)
    corpus = bf.mix(
        {name: bf.open(tmp_path / name) for name in "ab"},
        weights=None if weights is None else {"a": weights[0], "b": weights[1]},
    )
    for part, dataset, count in zip(("train", "valid", "test"), expected, sizes, strict=True):
        order = bf.MegatronOrder(split=split, part=part)
        if dataset is None:
            with pytest.raises(bf.PlanError, match=f"leaves nothing for '{part}'"):
                make(corpus, order=order, num_samples=count, seq_len=6, seed=3)
            continue
        if len(dataset) < count:  # without weights there are no more
            with pytest.raises(bf.PlanError, match="one epoch of each source"):
                make(corpus, order=order, num_samples=count, seq_len=6, seed=3)
            count = len(dataset)
        loader = make(corpus, order=order, num_samples=count, seq_len=6, seed=3)
        assert rows_of(loader) == samples_of(dataset, count)[0]


def test_an_epoch_of_all_samples(tmp_path: Path) -> None:
    prefix = written(tmp_path / "s", [7, 3, 0, 12, 5, 8])
    dataset, _, _ = megatron_core.built([prefix], None, "1", (None, None, None), 4, 7)
    loader = make(tmp_path / "s", seq_len=4)
    first = rows_of(loader)
    assert first == samples_of(dataset, len(dataset))[0]
    assert rows_of(loader) == first  # as every epoch
    loader.set_epoch(5)
    assert rows_of(loader) == first


def megatron_batches(
    samples: int, consumed: int, micro_batch: int, rank: int, world_size: int
) -> list[list[int]]:
    """The numbers of samples that MegatronPretrainingSampler deals to a rank."""
    everyone = micro_batch * world_size
    found = []
    for begin in range(consumed, samples, everyone):
        together = list(range(begin, min(begin + everyone, samples)))
        found.append(together[rank * micro_batch : (rank + 1) * micro_batch])
    return found


@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("num_samples", [48, 53, 41])
def test_ranks_get_what_megatron_deals_to_them(
    world_size: int, accumulate: int, num_samples: int
) -> None:
    corpus = corpus_of([5 + n % 9 for n in range(40)])
    alone = rows_of(make(corpus, seq_len=5, num_samples=num_samples))
    for drop_last in (False, True):
        lengths = set()
        for rank in range(world_size):
            loader = make(
                corpus, seq_len=5, num_samples=num_samples, batch_size=2, accumulate=accumulate,
                rank=rank, world_size=world_size, drop_last=drop_last,
            )  # fmt: skip
            dealt = megatron_batches(num_samples, 0, 2, rank, world_size)
            if drop_last:  # of whole steps
                dealt = dealt[: num_samples // (2 * world_size * accumulate) * accumulate]
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", ".*tokens were dropped")
                    found = list(loader)
            else:
                found = list(loader)
            lengths.add(len(found))
            assert len(loader) == len(found) == len(dealt)
            for batch, numbers in zip(found, dealt, strict=True):
                check(batch, loader)
                rows = np.asarray(batch["input_ids"]).tolist() if batch.num_tokens else []
                assert rows == [alone[number] for number in numbers]
            empty = sum(not numbers for numbers in dealt)
            assert loader.stats().dummy_rows == empty
            told = loader.documents(0)
            mine = [
                (int(d), int(s), int(n))
                for d, s, n, r in zip(
                    told.documents, told.starts, told.lengths, told.rank, strict=True
                )
                if r == rank
            ]
            step = [b for b in found if b.step == 0 and b.num_tokens]
            assert mine == [
                (int(d), int(s), int(n))
                for b in step
                for d, s, n in zip(b.documents, b.starts, b.lengths, strict=True)
            ]
        assert len(lengths) == 1


def test_a_run_goes_on_at_any_batch_with_other_ranks() -> None:
    corpus = mixed({"a": [7] * 30, "b": [1, 4, 9] * 9}, weights=[2, 1])
    how: dict[str, Any] = {"seq_len": 5, "num_samples": 77, "window": 11, "fields": SHIFTED}
    whole = rows_of(make(corpus, **how))
    geometries = [(4, 3), (2, 6), (3, 4), (1, 12), (6, 1)]  # ranks and rows of each: 12, or 6 twice
    for at in range(7):
        ranks, rows = geometries[at % 5]
        saved = None
        done: list[Any] = []
        for part in range(4):
            ranks, rows = geometries[(at + part) % 5]
            loaders = [
                make(corpus, **how, rank=r, world_size=ranks, batch_size=rows,
                     accumulate=12 // (ranks * rows))
                for r in range(ranks)
            ]  # fmt: skip
            iterators = []
            for loader in loaders:
                if saved is not None:
                    loader.load_state_dict(saved)
                iterators.append(iter(loader))
            for _ in range(99 if part == 3 else 1 + (at + part) % 3):
                batches = [next(iterator, None) for iterator in iterators]
                if batches[0] is None:
                    break
                for batch in batches:
                    assert batch is not None
                    if batch.num_tokens:
                        done += np.asarray(batch["input_ids"]).tolist()
            states = [json.loads(json.dumps(loader.state_dict())) for loader in loaders]
            assert all(state == states[0] for state in states)
            saved = states[0]
        assert done == whole


def test_the_order_is_part_of_the_state() -> None:
    corpus = corpus_of([9] * 20)
    how: dict[str, Any] = {"seq_len": 4, "num_samples": 40}
    state = make(corpus, **how).state_dict()
    for change, field in (
        ({"num_samples": 41}, "num_samples"),
        ({"seed": 8}, "seed"),
        ({"order": bf.MegatronOrder(extra_token=False)}, "order"),
        ({"order": None, "packing": "concat", "num_samples": None}, "order"),
    ):
        with pytest.raises(bf.StateError, match=f"{field}: "):
            make(corpus, **{**how, **change}).load_state_dict(state)
    later = make(corpus, **how, num_workers=2)
    later.load_state_dict(state)
    assert rows_of(later) == rows_of(make(corpus, **how))


def test_skipped_steps_are_those_that_another_trainer_had() -> None:
    corpus = corpus_of([9] * 50)
    how: dict[str, Any] = {"seq_len": 4, "num_samples": 60, "batch_size": 5, "window": 20}
    loader = make(corpus, **how, skip=range(7))
    assert len(loader) == 5
    assert rows_of(loader) == rows_of(make(corpus, **how))[35:]
    assert loader.stats().skipped_steps == 7


def test_threads_and_layouts_change_no_token() -> None:
    corpus = corpus_of([3, 17, 0, 1, 8, 40] * 5)
    how: dict[str, Any] = {"seq_len": 8, "num_samples": 90, "batch_size": 4}
    alone = np.array(rows_of(make(corpus, **how))).ravel().tolist()
    for change in ({"num_workers": 3}, {"layout": "varlen"}, {"io": "pread", "window": 5}):
        loader = make(corpus, **{**how, **change})
        assert np.concatenate([np.ravel(batch["input_ids"]) for batch in loader]).tolist() == alone


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": "nemo"}, "order is 'nemo'"),
        ({"order": 3}, "order is 3"),
        ({"order": None}, "num_samples is 4"),
        ({"num_samples": 0}, "num_samples is 0"),
        ({"num_samples": 1.5}, "num_samples is 1.5"),
        ({"shuffle": True}, "shuffle is True"),
        ({"balance": "attention"}, "balance is 'attention'"),
        ({"packing": "best_fit"}, "packing is 'best_fit'"),
        ({"overlong": "drop"}, "overlong is 'drop'"),
        ({"align": 2}, "align is 2"),
        ({"max_segments": 9}, "max_segments is 9"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "seed is 4294967296"),
    ],
)
def test_what_it_has_no_place_for(change: dict[str, Any], message: str) -> None:
    with pytest.raises(bf.PlanError, match=message):
        make(corpus_of([9, 9]), **{"seq_len": 4, "num_samples": 4, **change})


@pytest.mark.parametrize(
    "change",
    [{"split": "1,1"}, {"split": "x"}, {"part": "dev"}, {"part": "valid"}, {"surplus": -1},
     {"surplus": "much"}, {"extra_token": 1}],
)  # fmt: skip
def test_orders_that_cannot_be(change: dict[str, Any]) -> None:
    if change == {"split": "1,1"}:
        assert bf.MegatronOrder(**change).part == "train"
        return
    with pytest.raises(bf.PlanError, match=next(iter(change))):
        bf.MegatronOrder(**change)


def test_samples_of_an_empty_split_are_refused() -> None:
    corpus = corpus_of([9] * 10)
    order = bf.MegatronOrder(split="969,30,1", part="test")
    with pytest.raises(bf.PlanError, match=r"test of '969,30,1'.*no tokens"):
        make(corpus, order=order, seq_len=4, num_samples=1)
    assert list(make(corpus, order=order, seq_len=4)) == []
    for nothing in (corpus_of([]), corpus_of([0, 0])):
        with pytest.raises(bf.PlanError, match="no tokens"):
            make(nothing, seq_len=4, num_samples=1)


def test_mixtures_that_megatron_has_not() -> None:
    sources = {"a": [9] * 5, "b": [4] * 5}
    for rule in (
        {"weights": [1, 1], "unit": "documents"},
        {"weights": [1, 1], "when_dry": "drop"},
        {"weights": [1, 1], "epoch_tokens": 50},
        {"max_passes": 3},
        {"weights": [(0, {"a": 1, "b": 1}), (9, {"a": 1, "b": 2})]},
    ):
        with pytest.raises(bf.PlanError, match="blends by fixed weights"):
            make(mixed(sources, **rule), seq_len=4, num_samples=4)
    with pytest.raises(bf.PlanError, match="num_samples is missing"):
        make(mixed(sources, weights=[1, 1]), seq_len=4)
    with pytest.raises(bf.PlanError, match="above 0"):
        make(mixed(sources, weights=[1, 0]), seq_len=4, num_samples=4)
    with pytest.raises(bf.PlanError, match="'b' has no whole sample"):
        make(mixed({"a": [9], "b": [2]}), seq_len=4, num_samples=1)
    loader = make(mixed(sources, weights=[1, 1]), seq_len=4, num_samples=9)
    next(iter(loader))
    other = make(mixed(sources, weights=[1, 2]), seq_len=4, num_samples=9)
    with pytest.raises(bf.PlanError, match="cannot change"):
        other.load_state_dict(loader.state_dict(), allow_mix_change=True)


def test_a_blend_that_asks_too_much_of_a_source_is_refused() -> None:
    corpus = mixed({"a": [5], "b": [5] * 9}, weights=[1, 1])
    order = bf.MegatronOrder(surplus=0)
    loader = make(corpus, order=order, seq_len=4, num_samples=9)
    assert len(rows_of(loader)) == 9


def test_documents_of_several_sequences_are_refused(tmp_path: Path) -> None:
    prefix = write_megatron(tmp_path / "a", np.arange(6), [3, 2, 1], [0, 2, 3], "int32")
    with pytest.raises(bf.PlanError, match='rows="sequences"'):
        make(bf.open(prefix), seq_len=2, num_samples=2)
    loader = make(bf.open(prefix, rows="sequences"), seq_len=2, num_samples=2)
    assert len(rows_of(loader)) == 2


def test_an_index_that_has_changed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = corpus_of([9] * 20)
    monkeypatch.setattr(native, "row_order", lambda corpus, config: row_order(other, config))
    for lengths in ([9] * 19 + [8], [12] * 20):
        loader = make(corpus_of(lengths), seq_len=7, num_samples=50)
        with pytest.raises(bf.ReadError, match="index has changed"):
            rows_of(loader)


def test_what_is_drawn_one_by_one_is_not_told() -> None:
    loader = make(corpus_of([9, 9]), seq_len=4, num_samples=4)
    with pytest.raises(bf.PlanError, match="no documents are drawn"):
        loader.shuffle_quality()


def test_labels_have_a_place_for_the_extra_token_or_not() -> None:
    how: dict[str, Any] = {"seq_len": 4, "num_samples": 4}
    assert make(corpus_of([99]), **how, fields=SHIFTED).config.carry_label is True
    assert make(corpus_of([99]), **how).config.carry_label is False
    kept = make(corpus_of([99]), **how, fields=SHIFTED, carry_label=False)
    assert kept.config.carry_label is False
    assert bf.DataLoader(corpus_of([99]), seq_len=4, fields=SHIFTED).config.carry_label is False
