"""Map-style datasets read once (`ingest="once"`): what is read, what is refused, what stays."""

import gc
import json
import os
import tempfile
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils import data

import brimful as bf
from truth import all_pieces, check, document, same


class Items(data.Dataset):
    """A map-style dataset that counts how often it is asked for each item."""

    def __init__(self, items):
        self.items = items
        self.asked = [0] * len(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        self.asked[index] += 1
        return self.items[index]


class Together(Items):
    """One that is asked for several items at a time."""

    def __getitem__(self, index):
        raise AssertionError("asked for one item, although there is __getitems__")

    def __getitems__(self, indices):
        return [super(Together, self).__getitem__(i) for i in indices]


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder in which temporary folders of this user lie; each test leaves it empty."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"brimful-{os.getuid()}"
    yield folder
    if folder.exists() and list(folder.iterdir()):
        gc.collect()  # what exceptions in a test still hold
        assert not list(folder.iterdir())


def once(dataset, **arguments):
    return bf.DataLoader(dataset, seq_len=8, ingest="once", num_workers=0, **arguments)


def documents_of(loader):
    return [document.tolist() for document in loader.corpus]


ROWS = [document(i, 1 + i % 6, stride=10).tolist() for i in range(600)]


@pytest.mark.parametrize("dataset", [Items, Together])
@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        torch.tensor,
        lambda row: torch.tensor(row, dtype=torch.int32),
        lambda row: np.array(row, np.uint16),
        lambda row: {"input_ids": row},
        lambda row: {"input_ids": torch.tensor(row), "attention_mask": torch.ones(len(row))},
        lambda row: {"input_ids": np.array(row), "labels": torch.tensor(row)},
        lambda row: {"input_ids": row, "loss_mask": [True] * len(row), "labels": None},
    ],
    ids=range(10),
)
def test_items_of_each_kind_are_documents_in_their_order_each_read_once(dataset, make):
    items = dataset([make(row) for row in ROWS])
    loader = once(items)
    assert documents_of(loader) == ROWS
    assert sum(len(batch) > 0 for batch in loader) == len(loader)
    assert set(items.asked) == {1}
    assert loader.dataset is items


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 30), max_size=30),
    bits=st.integers(0, 2**64 - 1),
    key=st.sampled_from(["labels", "loss_mask"]),
)
def test_masks_of_items_are_those_of_the_batches(lengths, bits, key):
    items, masks = [], {}
    for i, n in enumerate(lengths):
        tokens = document(i, n, stride=1000)
        masks[i] = np.array([bits >> (i + t) % 64 & 1 for t in range(n - 1)] + [1] * (n > 0))
        values = masks[i] if key == "loss_mask" else np.where(masks[i] == 1, tokens, -100)
        items.append({"input_ids": tokens, key: values})
    loader = once(items, batch_size=2)
    for batch in loader:
        check(batch, loader, masks)


def test_datasets_of_torch_and_plain_containers_are_read():
    items = Items(ROWS)
    parts = data.ConcatDataset([data.Subset(items, [3, 1, 599]), items])
    assert documents_of(once(parts)) == [ROWS[3], ROWS[1], ROWS[599], *ROWS]
    assert documents_of(once(data.Subset(Together(ROWS), range(10, 12)))) == ROWS[10:12]
    assert documents_of(once({0: [1, 2], 1: [3]})) == [[1, 2], [3]]
    assert documents_of(once(torch.arange(6).reshape(2, 3))) == [[0, 1, 2], [3, 4, 5]]
    assert documents_of(once(np.arange(6).reshape(3, 2))) == [[0, 1], [2, 3], [4, 5]]
    assert documents_of(once([])) == []
    assert documents_of(once([[], [1]])) == [[], [1]]


def test_a_dataset_with_a_transform_is_read_through_it():
    dataset = datasets.Dataset.from_dict({"text": ["abc", "", "de"]})
    dataset.set_transform(lambda rows: {"input_ids": [list(t.encode()) for t in rows["text"]]})
    with pytest.raises(bf.PlanError, match='ingest="once"'):
        bf.DataLoader(dataset, seq_len=8)
    assert documents_of(once(dataset)) == [list(b"abc"), [], list(b"de")]


@pytest.mark.parametrize("form", [None, "torch", "numpy"])
def test_formats_and_row_maps_of_a_dataset_are_honoured(form):
    rows = {"input_ids": [[1, 2], [3], [4, 5]], "labels": [[-100, 2], [3], [-100, 5]]}
    dataset = datasets.Dataset.from_dict(rows).with_format(form).select([2, 0])
    loader = once(dataset, fields=("input_ids", "shift_labels"), packing="pad")
    assert documents_of(loader) == [[4, 5], [1, 2]]
    assert [batch.num_items for batch in loader] == [1, 1]


def test_other_keys_are_left_out_with_a_word():
    items = [{"input_ids": [1], "idx": 3}, {"input_ids": [2], "text": "a", "idx": 4}]
    with pytest.warns(
        UserWarning, match="items of the list hold more .* left out: 'idx', 'text'"
    ) as caught:
        loader = once(items)
    assert [warning.filename for warning in caught] == [__file__]
    assert documents_of(loader) == [[1], [2]]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("a text", "found a str; expected token ids"),
        (b"bytes", "found a bytes"),
        (7, "found a int"),
        (None, "found a NoneType"),
        ([1.5], "token 0 is 1.5"),
        ([1, "a"], "expected|token"),
        (torch.tensor([1.0]), r"token 0 is 1.0 \(float\)"),
        (torch.zeros(1, 2, dtype=torch.long), r"shape \(1, 2\).*found a Tensor"),
        (torch.tensor(3), "found a Tensor"),
        ((torch.tensor([1, 2]), torch.tensor([2, 3])), r"shape \(2, 2\).*found a tuple"),
        ((torch.tensor([1, 2]), torch.tensor(3)), "found a tuple"),
        (np.array([True]), "dtype bool"),
        (np.ma.array([1], mask=[1]), "a masked array"),
        ([2**40], "token 0 is 1099511627776; .* of int32"),
        ([2**70], "not of int64"),
        ({"text": "a"}, r"keys \['text'\] with values; expected input_ids"),
        ({"input_ids": None}, r"keys \[\] with values; expected input_ids"),
        ({"input_ids": [1], "labels": [2]}, "label 2 at token 0, which is 1"),
        ({"input_ids": [1, 2], "labels": 1}, "labels of shape"),
        ({"input_ids": [1, 2], "loss_mask": [1]}, "a loss mask of shape"),
        ({"input_ids": [1, 0], "attention_mask": [1, 0]}, "give documents unpadded"),
        ({"input_ids": [1], "labels": [1], "loss_mask": [1]}, "expected input_ids"),
        ({"input_ids": [[1, 2]]}, r"shape \(1, 2\)"),
    ],
    ids=str,
)
def test_an_item_that_is_no_token_data_is_named_with_what_was_found(item, words, temporary):
    items = Items([[1, 2], {"input_ids": [3]}, item, [4]])
    with pytest.raises(bf.FormatError, match=f"item 2 of the Items.*({words})"):
        once(items)
    assert not list(temporary.iterdir())


def test_exceptions_of_the_dataset_keep_their_type_and_tell_what_was_asked_for(temporary):
    class Broken(Items):
        def __getitem__(self, index):
            if index == 3:
                raise LookupError("a disk is full of holes")
            return [index]

    with pytest.raises(LookupError, match="a disk is full of holes") as caught:
        once(Broken(ROWS))
    assert caught.value.__notes__ == ["raised by the dataset when ingest asked for item 3"]


def test_a_dataset_that_raises_stop_iteration_has_not_ended(temporary):
    class Broken(Items):
        def __getitem__(self, index):
            return next(iter([])) if index == 3 else [index]

    with pytest.raises(RuntimeError, match="raised StopIteration when ingest asked for item 3"):
        once(Broken(ROWS))
    assert not list(temporary.iterdir())


def test_a_dataset_that_gives_too_few_items_is_refused():
    class Few(Items):
        def __getitems__(self, indices):
            return [self.items[i] for i in indices[:-1]]

    with pytest.raises(bf.FormatError, match="gave 255 items for the 256 from 0 to 255"):
        once(Few(ROWS))


@pytest.mark.parametrize(
    "dataset",
    [
        type("Stream", (data.IterableDataset,), {"__iter__": lambda s: iter([[1]])})(),
        type("Sized", (data.IterableDataset,), {"__iter__": iter, "__len__": lambda s: 3})(),
        datasets.Dataset.from_dict({"input_ids": [[1]]}).to_iterable_dataset(),
        iter([[1]]),
        5,
    ],
    ids=range(5),
)
def test_streams_are_refused_with_what_to_do(dataset):
    with pytest.raises(bf.PlanError, match=r"has none or no length.*brimful\.ShardWriter"):
        once(dataset)
    with pytest.raises(bf.PlanError, match=r"cannot be opened as tokens.*brimful\.ShardWriter"):
        bf.DataLoader(dataset, seq_len=8)


@pytest.mark.parametrize(
    "dataset",
    [
        data.TensorDataset(torch.zeros(2, 2)),
        Items([[1]]),
        datasets.Dataset.from_dict({"text": ["a"]}),
        {"input_ids": [[1]]},
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_what_holds_no_tokens_to_be_opened_is_refused_with_what_to_do(dataset):
    with pytest.raises(bf.PlanError, match=r'cannot be opened as tokens.*Give ingest="once"'):
        bf.DataLoader(dataset, seq_len=8)


def test_what_is_mapped_already_is_not_read(tmp_path, temporary):
    with bf.ShardWriter(tmp_path / "s") as writer:
        writer.add([1, 2, 3])
    for dataset in (
        tmp_path / "s", str(tmp_path / "s"), [tmp_path / "s"], bf.open(tmp_path / "s"),
        pa.table({"input_ids": [[1, 2, 3]]}),
    ):  # fmt: skip
        assert documents_of(once(dataset)) == [[1, 2, 3]]
    assert not temporary.exists()


def test_shards_stay_as_long_as_anything_reads_them_and_not_longer(temporary):
    loader = once(Items(ROWS))
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    corpus = loader.corpus
    iterator = iter(loader)
    next(iterator)
    del loader
    gc.collect()
    assert folder.exists()
    del iterator
    mixed = bf.mix({"a": corpus, "b": bf.open([[1]])})
    del corpus
    gc.collect()
    assert folder.exists()
    assert len(all_pieces(bf.DataLoader(mixed, seq_len=8))) == 601
    kept = mixed[5]
    del mixed
    gc.collect()
    assert not folder.exists()
    assert kept.tolist() == ROWS[5]


def test_a_checksum_of_what_was_read_can_be_compared():
    assert all_pieces(once(Items(ROWS), verify="checksum"))


def test_a_state_goes_on_with_another_reading_of_equal_items():
    how = {"batch_size": 3, "shuffle": True, "seed": 5}
    loader = once(Items(ROWS), **how)
    iterator = iter(loader)
    head = [next(iterator) for _ in range(20)]
    state = json.loads(json.dumps(loader.state_dict()))
    whole = list(once(Items([torch.tensor(row) for row in ROWS]), **how))
    rest = once(Items([{"input_ids": row} for row in ROWS]), **how)
    rest.load_state_dict(state)
    assert all(same(a, b) for a, b in zip([*head, *rest], whole, strict=True))
    changed = once(Items([*ROWS[:-1], [1, 2, 3, 4, 5, 6, 7]]), **how)
    with pytest.raises(bf.StateError, match="hash of lengths"):
        changed.load_state_dict(state)


def test_the_same_documents_are_the_same_run_however_they_came(tmp_path):
    with bf.ShardWriter(tmp_path / "s") as writer:
        for row in ROWS:
            writer.add(row)
    read, opened = once(Items(ROWS)), bf.DataLoader(tmp_path / "s", seq_len=8)
    assert read.state_dict() == opened.state_dict()
    assert all(same(a, b) for a, b in zip(read, opened, strict=True))


def test_leftovers_that_nobody_holds_go_with_the_next_reading(temporary):
    first = once(Items(ROWS))
    (held,) = temporary.iterdir()
    left = temporary / "1-left"
    (left / "shards").mkdir(parents=True)
    (left / "shards" / "a.bin").write_bytes(b"1")
    second = once(Items(ROWS[:5]))
    assert not left.exists()
    assert held.exists()
    assert len(list(temporary.iterdir())) == 2
    assert len(first.corpus) == 600
    assert len(second.corpus) == 5


def test_a_place_that_others_can_write_to_is_refused(tmp_path):
    folder = tmp_path / f"brimful-{os.getuid()}"
    folder.mkdir(mode=0o755)
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="set TMPDIR"):
        once(Items(ROWS))
    folder.rmdir()
    folder.symlink_to(Path(tmp_path, "elsewhere"))
    with pytest.raises(PermissionError, match="set TMPDIR"):
        once(Items(ROWS))
    folder.unlink()


def test_collate_functions_get_items_of_the_dataset_without_reading_it_again():
    items = Items([{"input_ids": torch.tensor(row), "labels": torch.tensor(row)} for row in ROWS])
    loader = bf.DataLoader(
        items, 4, seq_len=8, packing="pad", ingest="once", collate_fn=lambda documents: documents
    )
    found = list(loader)
    assert set(items.asked) == {1}
    for ours, theirs in zip(
        found, data.DataLoader(items, 4, collate_fn=lambda documents: documents), strict=True
    ):
        for a, b in zip(ours, theirs, strict=True):
            assert all(torch.equal(a[key], b[key]) for key in ("input_ids", "labels"))
