"""A collate function on the native path gets what torch's loader would give it."""

import warnings
from collections.abc import Mapping

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils import data
from transformers import DataCollatorForLanguageModeling, DataCollatorWithFlattening

import brimful as bf
import tiny_tokenizer
from truth import STRIDE, corpus_of, document


def items_as_given(items):
    """A collate function that shows what it gets."""
    return items


def same(a, b):
    """Whether two items are equal in values, types and dtypes."""
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return a == b and [type(x) for x in a] == [type(x) for x in b]


def check_same(found, wanted):
    assert [len(batch) for batch in found] == [len(batch) for batch in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert same(a, b), (a, b)


def packed_as_torch(dataset, batch_size, **arguments):
    """What collate functions get of rows of `batch_size` whole documents."""
    loader = bf.DataLoader(
        dataset, batch_size, seq_len=64, packing="pad", collate_fn=items_as_given, **arguments
    )
    return list(loader)


KINDS = {
    "list": list,
    "tuple": tuple,
    "array": lambda values: np.array(values, np.int64),
    "int32 array": lambda values: np.array(values, np.int32),
    "tensor": torch.tensor,
    "int32 tensor": lambda values: torch.tensor(values, dtype=torch.int32),
}
MASKED = {
    "labels": lambda tokens, mask: [t if m else -100 for t, m in zip(tokens, mask, strict=True)],
    "loss_mask": lambda tokens, mask: mask,
    "bool loss_mask": lambda tokens, mask: [bool(m) for m in mask],
}

documents = st.lists(st.integers(2, 64), min_size=1, max_size=20).map(
    lambda lengths: [document(i, n, stride=100).tolist() for i, n in enumerate(lengths)]
)


@settings(max_examples=60)
@given(
    documents=documents,
    kind=st.sampled_from(sorted(KINDS)),
    batch_size=st.integers(1, 5),
    drop_last=st.booleans(),
    workers=st.sampled_from([0, 2]),
)
def test_documents_are_those_of_torchs_loader(documents, kind, batch_size, drop_last, workers):
    dataset = [KINDS[kind](tokens) for tokens in documents]
    wanted = data.DataLoader(dataset, batch_size, collate_fn=items_as_given, drop_last=drop_last)
    whole = sum(len(batch) for batch in wanted)
    if whole < len(documents):
        with pytest.warns(UserWarning, match="tokens were dropped"):
            found = packed_as_torch(dataset, batch_size, drop_last=True, num_workers=workers)
    else:
        found = packed_as_torch(dataset, batch_size, drop_last=drop_last, num_workers=workers)
    check_same(found, list(wanted))


@settings(max_examples=60)
@given(
    documents=documents,
    kind=st.sampled_from(sorted(KINDS)),
    masks=st.sampled_from([None, *MASKED]),
    attention=st.booleans(),
    bits=st.integers(0, 2**64 - 1),
)
def test_dicts_are_those_of_torchs_loader(documents, kind, masks, attention, bits):
    make = KINDS[kind]
    dataset = []
    for tokens in documents:
        item = {"input_ids": make(tokens)}
        if attention:
            item["attention_mask"] = KINDS[kind.removeprefix("int32 ")]([1] * len(tokens))
        if masks is not None:
            # The last token is trained: a document without any label is put aside.
            mask = [bits >> i & 1 for i in range(len(tokens) - 1)] + [1]
            values = MASKED[masks](tokens, mask)
            item[masks.removeprefix("bool ")] = list(values) if "bool" in masks else make(values)
        dataset.append(item)
    check_same(
        packed_as_torch(dataset, 3),
        list(data.DataLoader(dataset, 3, collate_fn=items_as_given)),
    )


@pytest.mark.parametrize("form", [None, "torch", "numpy"])
@pytest.mark.parametrize("ingest", [None, "once"])
def test_rows_of_a_hugging_face_dataset_come_in_its_format(form, ingest):
    rows = [document(i, 2 + i, stride=100).tolist() for i in range(9)]
    dataset = datasets.Dataset.from_dict(
        {
            "input_ids": rows,
            "attention_mask": [[1] * len(row) for row in rows],
            "labels": [[-100, *row[1:]] for row in rows],
        }
    ).with_format(form)
    dataset = dataset.select([8, 2, 3, 1, 0])  # leaves a row map
    check_same(
        packed_as_torch(dataset, 2, ingest=ingest),
        list(data.DataLoader(dataset, 2, collate_fn=items_as_given)),
    )


def test_data_collator_with_flattening_makes_what_it_makes_in_torchs_loader():
    collate = DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)
    rows = [document(i, 1 + i % 7, stride=100).tolist() for i in range(40)]
    labels = [[-100 if i % 3 else token for i, token in enumerate(row, 1)] for row in rows]
    for columns in ({}, {"labels": labels}):
        dataset = datasets.Dataset.from_dict({"input_ids": rows, **columns})
        if columns:  # a document without a label is put aside
            dataset = dataset.filter(lambda row: any(t >= 0 for t in row["labels"][1:]))
        found = list(bf.DataLoader(dataset, 4, seq_len=8, packing="pad", collate_fn=collate))
        wanted = list(data.DataLoader(dataset, 4, collate_fn=collate))
        assert len(found) == len(wanted) > 4
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.keys() == theirs.keys()
            for key, value in theirs.items():
                assert same(ours[key], value) if torch.is_tensor(value) else ours[key] == value


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=40),
    batch_size=st.integers(1, 4),
    world_size=st.integers(1, 3),
    packing=st.sampled_from(["streaming", "concat", "best_fit_decreasing", "bucket"]),
    how=st.sampled_from(
        [
            {},
            {"layout": "rows"},
            {"layout": "varlen", "tail": "keep"},
            {"align": 8},
            {"max_segments": 3},
            {"max_segments": 2, "layout": "rows", "align": 4},
            {"accumulate": 3, "window": 5},
        ]
    ),
    shuffle=st.sampled_from([False, True, "block"]),
)
def test_every_token_of_a_packed_epoch_reaches_some_rank_once(
    lengths, batch_size, world_size, packing, how, shuffle
):
    corpus = corpus_of(lengths)
    found, counts = [], []
    for rank in range(world_size):
        loader = bf.DataLoader(
            corpus, batch_size, shuffle, collate_fn=items_as_given, seq_len=32, packing=packing,
            rank=rank, world_size=world_size, pad_token_id=-5, **how,
        )  # fmt: skip
        expected = len(loader)  # behind the loop it speaks of the next epoch
        batches = list(loader)
        assert len(batches) == expected
        counts.append(len(batches))
        assert all(batches)
        pieces = [piece for batch in batches for piece in batch if piece.tolist() != [-5]]
        for piece in pieces:
            assert piece.dtype == torch.int64
            assert piece.tolist() == list(range(piece[0], piece[0] + len(piece)))
        found += [token for piece in pieces for token in piece.tolist()]
    assert len(set(counts)) == 1
    assert sorted(found) == [i * STRIDE + t for i, n in enumerate(lengths) for t in range(n)]


def test_loss_masks_of_files_make_dicts_whose_labels_are_cut_as_the_tokens_are(tmp_path):
    rng = np.random.default_rng(1)
    masks = {i: rng.integers(0, 2, 1 + 7 * i % 90) for i in range(30)}
    for i, mask in masks.items():
        mask[-1] = 1
        with bf.ShardWriter(tmp_path / f"{i // 10}-{i % 10}") as writer:
            writer.add(document(i, len(mask), stride=100), mask)
    corpus = bf.mix({f"source {s}": bf.open(sorted(tmp_path.glob(f"{s}-*"))) for s in range(3)})
    found = {}
    for batch in bf.DataLoader(corpus, 2, True, seq_len=16, seed=3, collate_fn=items_as_given):
        for item in batch:
            assert list(item) == ["input_ids", "labels"]
            for token, label in zip(
                item["input_ids"].tolist(), item["labels"].tolist(), strict=True
            ):
                assert token not in found
                found[token] = label
    wanted = {
        i * 100 + t: i * 100 + t if trained else -100
        for i, mask in masks.items()
        for t, trained in enumerate(mask.tolist())
    }
    assert found == wanted


@pytest.mark.parametrize("ingest", [None, "once"])
@pytest.mark.parametrize("first", [[7, 8], {"input_ids": [7, 8]}])
def test_no_mask_is_lost_because_the_first_item_has_none(first, ingest):
    dataset = [first, {"input_ids": [1, 2], "labels": [-100, 2]}]
    if ingest is None and isinstance(first, list):
        dataset[0] = {"input_ids": first, "labels": None}
    (items,) = packed_as_torch(dataset, 2, ingest=ingest)
    assert items == [
        {"input_ids": [7, 8], "labels": [7, 8]},
        {"input_ids": [1, 2], "labels": [-100, 2]},
    ]


def test_files_without_masks_give_tensors_and_tables_dicts(tmp_path):
    with bf.ShardWriter(tmp_path / "s") as writer:
        writer.add([1, 2, 3])
    (items,) = bf.DataLoader(tmp_path / "s", seq_len=4, collate_fn=items_as_given)
    assert same(items[0], torch.tensor([1, 2, 3]))


def test_what_the_function_returns_is_delivered_and_its_exceptions_are_the_loops():
    def collate(items):
        if items[0][0] == STRIDE:
            raise KeyError("of the user's")
        return sum(len(item) for item in items)

    iterator = iter(
        bf.DataLoader(corpus_of([3, 4, 2]), seq_len=4, packing="pad", collate_fn=collate)
    )
    assert next(iterator) == 3
    with pytest.raises(KeyError, match="of the user's"):
        next(iterator)
    assert next(iterator) == 2
    with pytest.raises(StopIteration):
        next(iterator)


def test_columns_that_a_collate_function_does_not_get_are_named():
    dataset = datasets.Dataset.from_dict({"input_ids": [[1, 2]], "text": ["a"]})
    with pytest.warns(UserWarning, match="items of the Dataset hold .* left out: 'text'") as caught:
        loader = bf.DataLoader(dataset, seq_len=4, collate_fn=items_as_given)
    assert [warning.filename for warning in caught] == [__file__]
    assert list(loader) == [[{"input_ids": [1, 2]}]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bf.DataLoader(dataset, seq_len=4)  # which delivers tokens, and says so


def test_a_collate_function_that_raises_stop_iteration_does_not_end_the_epoch():
    def fail_once(documents):
        return documents if failed else next(iter([]))

    failed = []
    iterator = iter(bf.DataLoader([np.arange(3), np.arange(4)], seq_len=4, collate_fn=fail_once))
    with pytest.raises(RuntimeError, match="collate_fn raised StopIteration"):
        next(iterator)
    failed.append(True)
    assert [list(map(len, documents)) for documents in iterator] == [[4]]


def test_default_collate_stacks_rows_of_equal_length_as_it_does_in_torch():
    dataset = [torch.arange(i, i + 8) for i in range(6)]
    for ours, theirs in zip(
        bf.DataLoader(dataset, 3, seq_len=8, packing="pad", collate_fn=data.default_collate),
        data.DataLoader(dataset, 3),
        strict=True,
    ):
        assert same(ours, theirs)


def test_a_state_goes_on_behind_the_last_batch_that_was_collated():
    def loader():
        return bf.DataLoader(
            corpus_of([5] * 40), 2, True, seq_len=8, seed=5, collate_fn=items_as_given
        )

    whole = [[item.tolist() for item in batch] for batch in loader()]
    first = loader()
    iterator = iter(first)
    head = [[item.tolist() for item in next(iterator)] for _ in range(4)]
    rest = loader()
    rest.load_state_dict(first.state_dict())
    tail = [[item.tolist() for item in batch] for batch in rest]
    assert head + tail == whole


def test_items_stay_as_they_are_while_later_batches_are_filled():
    loader = bf.DataLoader(corpus_of([9] * 200), 2, seq_len=16, depth=1, collate_fn=items_as_given)
    kept = list(loader)
    assert sorted(int(item[0]) for batch in kept for item in batch) == [
        i * STRIDE for i in range(200)
    ]


def test_documents_with_bad_tokens_do_not_reach_the_function():
    dataset = [[1, 2], [3, 99], [4]]
    with pytest.warns(UserWarning, match="document"):
        batches = list(
            bf.DataLoader(
                dataset, 2, seq_len=4, packing="pad", vocab_size=10, collate_fn=items_as_given
            )
        )
    assert batches == [[[1, 2]], [[4]]]


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"fields": ("labels",)}, "leave fields out"),
        ({"device": "cuda"}, "on the host"),
        ({"cp_size": 2, "cp_rank": 0, "rank": 0, "world_size": 1}, "whole documents"),
    ],
)
def test_settings_that_leave_no_documents_are_refused(settings_, words):
    with pytest.raises(bf.PlanError, match=words):
        bf.DataLoader(corpus_of([4]), seq_len=4, collate_fn=list, **settings_)


def test_a_collate_function_can_be_called():
    with pytest.raises(TypeError, match="collate_fn is 'pad'; expected a function"):
        bf.DataLoader(corpus_of([4]), seq_len=4, collate_fn="pad")


def test_what_it_returns_is_pinned_as_torch_pins_it(monkeypatch):
    """As far as that can be seen where no accelerator is."""
    pinned = []
    monkeypatch.setattr("brimful.drop_in.attributes.can_pin", lambda: True)
    monkeypatch.setattr(data._utils.pin_memory, "pin_memory", lambda it: pinned.append(it) or it)
    loader = bf.DataLoader(
        corpus_of([3, 4]), seq_len=4, packing="pad", collate_fn=len, pin_memory=True
    )
    assert list(loader) == pinned == [1, 1]


def test_data_collator_for_language_modeling_pads_what_it_would_pad_in_torchs_loader():
    tokenizer = tiny_tokenizer.tokenizer()
    rows = [[5 + (i + t) % 9 for t in range(1 + i % 7)] for i in range(20)]
    dataset = datasets.Dataset.from_dict(
        {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}
    )
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    for ours, theirs in zip(
        bf.DataLoader(dataset, 3, seq_len=8, packing="pad", collate_fn=collate),
        data.DataLoader(dataset, 3, collate_fn=collate),
        strict=True,
    ):
        assert ours.keys() == theirs.keys() >= {"input_ids", "attention_mask", "labels"}
        assert all(same(ours[key], theirs[key]) for key in theirs)
