"""Datasets and tables: slices, chunks, row maps and nulls; Arrow's memory is read where it is."""

import contextlib
import itertools
import json
import re
import shutil
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset, DatasetDict, concatenate_datasets, disable_progress_bars
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.arrow import open_dataset, scatter

disable_progress_bars()

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
ROWS = [[1, 2, 3, 4, 5], [6, 7, 8], [], [9, 10, 11, 12]]


def documents(source):
    return [document.tolist() for document in bf.open(source)]


def lists(rows, kind=None):
    return pa.array(rows, kind or pa.list_(pa.int32()))


@pytest.mark.parametrize("values", INTEGERS)
@pytest.mark.parametrize("outer", [pa.list_, pa.large_list])
def test_every_integer_and_list_type(values, outer):
    kind = outer(pa.type_for_alias(values))
    table = pa.table({"input_ids": lists(ROWS, kind), "other": ["x"] * 4})
    corpus = bf.open(table)
    assert [d.tolist() for d in corpus] == ROWS
    assert corpus[0].dtype == values


@pytest.mark.parametrize("outer", [pa.list_, pa.large_list])
def test_c56_a_slice_has_offsets_that_do_not_begin_at_0(outer):
    whole = lists(ROWS, outer(pa.int32()))
    part = whole.slice(1, 3)
    assert part.offsets.to_pylist() == [5, 8, 8, 12]
    corpus = bf.open(part)
    assert [d.tolist() for d in corpus] == [[6, 7, 8], [], [9, 10, 11, 12]]
    assert corpus.lengths.tolist() == [3, 0, 4]
    assert corpus.num_tokens == 7


def test_c56_slices_of_slices_and_of_their_values():
    values = pa.array(range(100, 120), pa.int16()).slice(3)
    chunk = pa.ListArray.from_arrays(pa.array([0, 2, 5, 5, 9], pa.int32()).slice(1), values)
    assert documents(chunk) == [[105, 106, 107], [], [108, 109, 110, 111]]
    assert documents(chunk.slice(2)) == [[108, 109, 110, 111]]
    assert documents(chunk.slice(1, 1)) == [[]]
    assert documents(chunk.slice(3)) == []


def test_c56_fixed_size_lists():
    fixed = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2))
    assert documents(fixed) == [[1, 2], [3, 4], [5, 6]]
    assert documents(fixed.slice(1)) == [[3, 4], [5, 6]]
    values = pa.array(range(11), pa.int8()).slice(3)
    assert documents(pa.FixedSizeListArray.from_arrays(values, 2).slice(1, 1)) == [[5, 6]]


def test_c56_a_null_list_is_an_error_never_the_bytes_below_it():
    offsets = pa.array([0, 2, None, 5], pa.int32())
    hidden = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 3, 4, 5], pa.int32()))
    for array in (hidden, lists([[1], [2], None]), lists([[1]] * 3 + [None]).slice(1)):
        chunked = pa.chunked_array([lists([[0]]), array])
        row = 1 + array.to_pylist().index(None)
        with pytest.raises(bf.FormatError, match=f"input_ids, row {row}: null"):
            bf.open(chunked)


def test_null_values_name_their_row():
    for rows, row in (([[1], [2, None]], 1), ([[1, 1, 1], [], [None]], 2), ([[], [None], [3]], 1)):
        for array in (lists(rows), lists([[None], *rows]).slice(1)):
            with pytest.raises(bf.FormatError, match=f"row {row}: a value in it is null"):
                bf.open(array)
    assert documents(lists([[None], [1], [2], [None]]).slice(1, 2)) == [[1], [2]]  # not in sight
    fixed = pa.array([[1, 2], [3, None]], pa.list_(pa.int32(), 2))
    with pytest.raises(bf.FormatError, match="row 1: a value"):
        bf.open(fixed)


@pytest.mark.parametrize("outer", [pa.list_, pa.large_list])
def test_c55_chunks_of_more_than_32_bits_together_are_never_joined(outer):
    """Three chunks of 2^30 values, which lie in the same untouched memory."""
    size = 1 << 30
    values = pa.Array.from_buffers(pa.int8(), size, [None, pa.py_buffer(np.zeros(size, np.int8))])
    wide = pa.int32() if outer is pa.list_ else pa.int64()
    kind = pa.ListArray if outer is pa.list_ else pa.LargeListArray
    chunk = kind.from_arrays(pa.array([0, 5, size - 7, size], wide), values)
    corpus = bf.open(pa.chunked_array([chunk, chunk, chunk]))
    assert corpus.num_tokens == 3 << 30 > 1 << 31
    assert corpus.lengths.tolist() == [5, size - 12, 7] * 3
    assert corpus[8].tolist() == [0] * 7


def test_c55_one_chunk_with_64_bit_offsets_past_32_bits():
    size = (1 << 31) + 11
    values = pa.Array.from_buffers(pa.int8(), size, [None, pa.py_buffer(np.zeros(size, np.int8))])
    chunk = pa.LargeListArray.from_arrays(pa.array([0, 4, size - 3, size], pa.int64()), values)
    corpus = bf.open(chunk)
    assert corpus.lengths.tolist() == [4, size - 7, 3]
    assert corpus[2].tolist() == [0, 0, 0]


def test_tokens_are_not_copied():
    values = np.arange(1 << 22, dtype=np.int32)
    offsets = pa.array(np.arange(0, (1 << 22) + 1, 1 << 10, dtype=np.int32))
    table = pa.table({"input_ids": pa.ListArray.from_arrays(offsets, pa.array(values))})
    memory = table.column(0).chunk(0).values.buffers()[1].address
    tracemalloc.start()
    corpus = bf.open(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert corpus[0].__array_interface__["data"][0] == memory
    del table
    assert corpus[4095].tolist() == list(range((1 << 22) - 1024, 1 << 22))


def test_c57_row_maps_are_honoured():
    dataset = Dataset.from_dict({"input_ids": ROWS}).select([3, 1, 2])
    assert dataset._indices is not None
    corpus = bf.open(dataset)
    assert [d.tolist() for d in corpus] == [ROWS[3], ROWS[1], ROWS[2]]
    assert corpus.lengths.tolist() == [4, 3, 0]
    assert corpus.num_tokens == 7
    assert "scatter 0.50" in corpus.describe()


def test_c57_whatever_leaves_a_row_map():
    base = Dataset.from_dict({"input_ids": [[i, i] for i in range(50)]})
    made = [
        base.shuffle(seed=3),
        base.filter(lambda row: row["input_ids"][0] % 3 == 0),
        base.select(range(10, 20)),
        base.shuffle(seed=1).select(range(5, 30)).shuffle(seed=2),
        base.shard(4, 1, contiguous=False),
        concatenate_datasets([base.shuffle(seed=5), base.select(range(7))]),
        concatenate_datasets([base, base]).shuffle(seed=9),
        base.select([]),
    ]
    for dataset in made:
        assert documents(dataset) == dataset["input_ids"][:]


def save_as_old_versions_did(folder, rows, row_map, **state):
    """A folder with the map in a file of its own, which later versions no longer write."""
    folder.mkdir()
    for name, table in (
        ("dataset.arrow", pa.table({"input_ids": lists(rows)})),
        ("indices.arrow", pa.table({"indices": pa.array(row_map, pa.uint64())})),
    ):
        with pa.ipc.new_stream(str(folder / name), table.schema) as file:
            file.write_table(table)
    files = {
        "_data_files": [{"filename": "dataset.arrow"}],
        "_indices_data_files": [{"filename": "indices.arrow"}],
    }
    (folder / "state.json").write_text(json.dumps(files | state))


def test_c57_a_saved_row_map_is_never_passed_over(tmp_path):
    save_as_old_versions_did(tmp_path / "old", ROWS, [3, 1, 2])
    assert documents(tmp_path / "old") == [ROWS[3], ROWS[1], ROWS[2]]
    for i, strange in enumerate(
        (
            {"_indices_files": [{"filename": "indices.arrow"}]},
            {"_indices_data_files": [{"filename": "indices.arrow", "take": 2}]},
            {"_indices_data_files": [{"filename": "../old/indices.arrow"}]},
            {"_inplace_history": [{"transforms": [["rename_column", [], {}]]}]},
        )
    ):
        save_as_old_versions_did(tmp_path / str(i), ROWS, [3, 1, 2], **strange)
        with pytest.raises(bf.FormatError, match=r"state\.json"):
            bf.open(tmp_path / str(i))
    save_as_old_versions_did(tmp_path / "far", ROWS, [3, 4])
    with pytest.raises(bf.FormatError, match="4"):
        bf.open(tmp_path / "far")


def test_c57_scatter_tells_how_far_a_map_jumps():
    assert scatter(None) == scatter(np.array([4])) == scatter(np.arange(3, 9)) == 0.0
    assert scatter(np.arange(9)[::-1]) == 1.0
    assert scatter(np.array([0, 1, 2, 7, 8])) == 0.25


def test_datasets_saved_to_disk(tmp_path):
    dataset = Dataset.from_dict({"input_ids": [[i] * (i % 5) for i in range(40)]})
    dataset.save_to_disk(tmp_path / "d", num_shards=3)
    assert documents(tmp_path / "d") == dataset["input_ids"][:]
    shuffled = dataset.shuffle(seed=1)
    shuffled.save_to_disk(tmp_path / "s")
    assert documents(tmp_path / "s") == shuffled["input_ids"][:]
    DatasetDict({"train": dataset, "test": shuffled}).save_to_disk(tmp_path / "dd")
    splits = f"{tmp_path / 'dd/test'}, {tmp_path / 'dd/train'}"
    with pytest.raises(bf.FormatError, match=re.escape(f"open one of {splits}")):
        bf.open(tmp_path / "dd")
    assert documents(tmp_path / "dd/train") == dataset["input_ids"][:]


def test_damaged_saved_datasets(tmp_path):
    Dataset.from_dict({"input_ids": ROWS}).save_to_disk(tmp_path / "d")
    (data,) = (tmp_path / "d").glob("*.arrow")
    content = data.read_bytes()
    for size in (0, 10, len(content) // 2):
        data.write_bytes(content[:size])
        with pytest.raises(bf.FormatError, match=data.name):
            bf.open(tmp_path / "d")
    # Every byte of the schema, so that types and names become others and none at all.
    for at, value in itertools.product(range(content.index(b"input_ids") + 100), (1, 7, 255)):
        data.write_bytes(content[:at] + bytes([value]) + content[at + 1 :])
        with contextlib.suppress(bf.FormatError):
            bf.open(tmp_path / "d")
    data.unlink()
    with pytest.raises(FileNotFoundError, match=data.name):
        bf.open(tmp_path / "d")
    for state in ("", "[]", "{}", '{"_data_files": []}', '{"_data_files": [3]}', "[" * 100_000):
        (tmp_path / "d/state.json").write_text(state)
        with pytest.raises(bf.FormatError, match=r"state\.json"):
            bf.open(tmp_path / "d")


def test_loss_masks_and_labels():
    ids = [[1, 2, 3], [], [4, 5]]
    masks = [[0, 1, 1], [], [1, 0]]
    labels = [[-100, 2, 3], [], [4, -100]]
    for column, values in (
        ("loss_mask", pa.array(masks, pa.list_(pa.uint8()))),
        ("loss_mask", pa.array(masks, pa.large_list(pa.int64()))),
        ("loss_mask", pa.array([[bool(m) for m in row] for row in masks])),
        ("labels", pa.array(labels, pa.list_(pa.int64()))),
    ):
        table = pa.table({"input_ids": lists(ids, pa.list_(pa.int16())), column: values})
        for part in (table, table.slice(1), table.slice(2)):
            rows = range(3 - len(part), 3)
            with_masks = bf.open(part)
            assert [d.tolist() for d in with_masks] == [ids[i] for i in rows]
            (source,) = with_masks._parts
            found = [
                bf._core.read_loss_mask(store, 0, sum(len(ids[i]) for i in rows)).tolist()
                for store in source.stores
            ]
            assert found == [[m for i in rows for m in masks[i]]]


def test_columns_may_be_cut_at_different_places():
    ids = pa.chunked_array([lists([[1], [2, 3]]), lists([[4, 5, 6]])])
    masks = pa.chunked_array([lists([[1]]), lists([[0, 1], [1, 0, 0]])])
    corpus = bf.open(pa.table({"input_ids": ids, "loss_mask": masks}))
    assert [d.tolist() for d in corpus] == [[1], [2, 3], [4, 5, 6]]
    found = [
        bf._core.read_loss_mask(store, 0, store.num_tokens).tolist()
        for store in corpus._parts[0].stores
    ]
    assert found == [[1], [0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"labels": [[1], [2, 9]]}, "labels, row 1: label 9 where the token is 3"),
        ({"labels": [[1], [3, 2]]}, "labels, row 1: label 3 where the token is 2"),
        ({"labels": [[1], [2]]}, "labels, row 1: 1 values for 2 tokens"),
        ({"loss_mask": [[1], [0, 2]]}, "loss_mask, row 1: holds 2"),
        ({"loss_mask": [[-1], [0, 1]]}, "loss_mask, row 0: holds -1"),
        ({"loss_mask": [[1, 1], [0]]}, "loss_mask, row 0: 2 values for 1 tokens"),
        ({"loss_mask": [[1.0], [0.0, 1.0]]}, "loss_mask: type list"),
        ({"loss_mask": [[1], None]}, "loss_mask, row 1: null"),
        ({"labels": [[1], [2, None]]}, "labels, row 1: a value in it is null"),
        ({"attention_mask": [[1], [1, 0]]}, "attention_mask, row 1: holds 0; padding"),
        ({"attention_mask": [[1], [1]]}, "attention_mask, row 1: 1 values for 2"),
        ({"labels": [[1], [2, 3]], "loss_mask": [[1], [1, 1]]}, "keep one"),
    ],
)
def test_columns_that_disagree(columns, words):
    table = pa.table({"input_ids": lists([[1], [2, 3]])} | columns)
    with pytest.raises(bf.FormatError) as caught:
        bf.open(table)
    assert words in str(caught.value)


def test_an_attention_mask_of_ones_is_fine():
    table = pa.table({"input_ids": lists([[1], [2, 3]]), "attention_mask": [[1], [1, 1]]})
    assert documents(table) == [[1], [2, 3]]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1.0]]),
        pa.array([[True]]),
        pa.array([["a"]]),
        pa.array([1, 2]),
        pa.array([[[1]]]),
        pa.array([[1]], pa.list_(pa.uint64())),
        pa.array([[1]], pa.list_view(pa.int32())),
        pa.array([None]),
    ],
)
def test_columns_of_other_types(array):
    with pytest.raises(bf.FormatError, match=r"input_ids: type .*expected lists of integers"):
        bf.open(pa.table({"input_ids": array}))


def test_what_is_no_dataset():
    with pytest.raises(bf.FormatError, match=r"input_ids.*found text"):
        bf.open(Dataset.from_dict({"text": ["a"]}))
    dataset = Dataset.from_dict({"input_ids": ROWS})
    with pytest.raises(bf.FormatError, match="save a stream"):
        bf.open(dataset.to_iterable_dataset())
    with pytest.raises(bf.FormatError, match="'train'"):
        bf.open(DatasetDict({"train": dataset}))
    with pytest.raises(bf.FormatError, match="transform"):
        bf.open(dataset.with_transform(lambda rows: rows))
    with pytest.raises(bf.FormatError, match="leave the other arguments out"):
        bf.open(dataset, dtype="int32")
    assert documents(dataset.with_format("numpy")) == ROWS


def test_columns_that_a_format_hides_are_not_read(tmp_path):
    dataset = Dataset.from_dict({"input_ids": [[5, 6]], "labels": [[-100, 6]], "text": ["a"]})

    def is_masked(shown):
        shown.save_to_disk(tmp_path / "d")
        stores = [bf.open(source)._parts[0].stores for source in (shown, tmp_path / "d")]
        shutil.rmtree(tmp_path / "d")
        masked, same = ([store.has_loss_mask for store in parts] for parts in stores)
        assert masked == same
        return any(masked)

    assert is_masked(dataset)
    assert is_masked(dataset.with_format("torch"))
    assert is_masked(dataset.with_format("torch", columns=["input_ids", "labels"]))
    assert not is_masked(dataset.with_format("torch", columns=["input_ids"]))
    assert is_masked(dataset.with_format("torch", columns=["input_ids"], output_all_columns=True))
    hidden = dataset.with_format("numpy", columns=["labels"])
    hidden.save_to_disk(tmp_path / "hidden")
    for source in (hidden, tmp_path / "hidden"):
        with pytest.raises(bf.FormatError, match=r"\['labels'\] alone, without input_ids"):
            bf.open(source)
    state = tmp_path / "hidden/state.json"
    state.write_text(
        state.read_text().replace('"_format_columns": [', '"_format_columns": 3, "x": [')
    )
    with pytest.raises(bf.FormatError, match="_format_columns is 3"):
        bf.open(tmp_path / "hidden")


@pytest.mark.parametrize("bad", [[0, 2, 1, 3], [0, 2, 3, 4], [-1, 2, 3, 3], [0, 5, 3, 3]])
def test_offsets_in_a_file_that_run_backwards_or_out(tmp_path, bad):
    save_as_old_versions_did(tmp_path / "d", [[7, 7], [7], []], [0])
    path = tmp_path / "d/dataset.arrow"
    content = path.read_bytes()
    good = np.array([0, 2, 3, 3], np.int32).tobytes()
    assert content.count(good) == 1
    path.write_bytes(content.replace(good, np.array(bad, np.int32).tobytes()))
    with pytest.raises(bf.FormatError):
        bf.open(tmp_path / "d")


def test_nothing():
    empty = pa.table({"input_ids": pa.array([], pa.list_(pa.int32()))})
    for source in (empty, empty.slice(0), pa.chunked_array([], pa.list_(pa.int32()))):
        assert len(bf.open(source)) == 0
    assert len(bf.open(Dataset.from_dict({"input_ids": ROWS}).select([]))) == 0


def test_record_batches_and_names():
    batch = pa.record_batch({"input_ids": lists(ROWS)})
    assert documents(batch) == ROWS
    assert open_dataset(batch, name="web").name == "web"


@settings(deadline=None, max_examples=60)
@given(
    chunks=st.lists(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=5), max_size=4),
    large=st.booleans(),
    data=st.data(),
)
def test_any_chunks_slices_and_maps(chunks, large, data):
    outer = pa.large_list if large else pa.list_
    kind = outer(pa.int16())
    array = pa.chunked_array([pa.array(rows, kind) for rows in chunks], kind)
    first = data.draw(st.integers(0, len(array)))
    part = array.slice(first, data.draw(st.integers(0, len(array))))
    assert documents(part) == part.to_pylist()
    dataset = Dataset(pa.table({"input_ids": part}))
    if len(dataset):
        picked = data.draw(st.lists(st.integers(0, len(dataset) - 1), max_size=8))
        mapped = dataset.select(picked)
        assert documents(mapped) == [part.to_pylist()[i] for i in picked]
