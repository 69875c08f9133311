"""Documents as dicts of `input_ids` with labels or loss masks, wherever lists of documents go."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from truth import document, same

KINDS = {
    "list": list,
    "array": np.array,
    "int32 array": lambda values: np.array(values, np.int32),
    "tensor": torch.tensor,
}


def written(path, items):
    with bf.ShardWriter(path, dtype="int32") as writer:
        for item in items:
            writer.add(item)
    return path


@settings(max_examples=20)
@given(
    masks=st.lists(st.lists(st.booleans(), max_size=12).map(lambda m: [*m, True]), max_size=20),
    keys=st.sampled_from([("labels",), ("loss_mask",), ("labels", "attention_mask"), ()]),
    kind=st.sampled_from(sorted(KINDS)),
)
def test_dicts_are_one_run_wherever_they_are_given(tmp_path_factory, masks, keys, kind):
    make = KINDS[kind]
    if not keys:
        masks = [[True] * len(mask) for mask in masks]
    items = []
    for i, mask in enumerate(masks):
        tokens = document(i, len(mask), stride=100)
        values = {
            "labels": np.where(mask, tokens, -100),
            "loss_mask": np.array(mask, int),
            "attention_mask": np.ones(len(mask), int),
        }
        item = {"input_ids": make(tokens.tolist())}
        items.append(item | {key: make(values[key].tolist()) for key in keys})
    folder = tmp_path_factory.mktemp("shards")
    how = {"seq_len": 8, "batch_size": 2, "num_workers": 0}
    wanted = list(
        bf.DataLoader(
            bf.open(
                [document(i, len(mask), stride=100) for i, mask in enumerate(masks)],
                loss_masks=[np.array(mask, int) for mask in masks],
            ),
            **how,
        )
    )
    for dataset, more in (
        (items, {}),
        (items, {"ingest": "once"}),
        (bf.open(items), {}),
        (written(folder / "s", items), {}),
    ):
        found = list(bf.DataLoader(dataset, **how, **more))
        assert len(found) == len(wanted)
        assert all(same(a, b) for a, b in zip(found, wanted, strict=True))
    if items:
        flat = bf.flatten(items)
        assert flat.num_items == sum(sum(mask[1:]) for mask in masks)


def test_a_writer_refuses_dicts_that_hold_something_else_and_goes_on(tmp_path):
    with bf.ShardWriter(tmp_path / "s") as writer:
        writer.add({"input_ids": [1, 2], "labels": [-100, 2]})
        for item, words in (
            ({"labels": [1]}, "document 1: keys .* expected input_ids"),
            ({"input_ids": [1], "text": "a"}, "and nothing else"),
            ({"input_ids": [1], "labels": [3]}, "label 3 at token 0, which is 1"),
            ({"input_ids": [70000]}, "uint16 cannot hold"),
            ({"input_ids": [1, 2], "loss_mask": [1]}, "a loss mask of shape"),
        ):
            with pytest.raises(bf.FormatError, match=words):
                writer.add(item)
        with pytest.raises(bf.FormatError, match="a dict holds its own loss_mask"):
            writer.add({"input_ids": [1]}, [1])
        writer.add({"input_ids": torch.tensor([3]), "labels": None})
    corpus = bf.open(tmp_path / "s")
    assert [d.tolist() for d in corpus] == [[1, 2], [3]]
    assert corpus.info[0].loss_masks == "all"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_c36_kinds_and_labels_of_documents_come_through_a_loader_with_flatten(kind):
    make = KINDS[kind]
    items = [
        {"input_ids": make([5, 6, 7, 8]), "label": 1},
        {"input_ids": make([1, 2, 3]), "label": 0},
    ]
    (batch,) = bf.DataLoader(items, batch_size=2, collate_fn=bf.flatten)
    assert batch.cu_seqlens.tolist() == [0, 4, 7]
    assert batch.document_labels.tolist() == [1, 0]
    without = [{"input_ids": item["input_ids"]} for item in items]
    (packed,) = bf.DataLoader(without, seq_len=8, collate_fn=bf.flatten)
    assert same(packed, bf.flatten([[5, 6, 7, 8], [1, 2, 3]]))
    assert torch.equal(packed["input_ids"], batch["input_ids"])


def test_c36_a_label_of_a_document_is_not_lost_in_packing_without_a_word():
    items = [{"input_ids": [1, 2], "label": 1}]
    with pytest.raises(bf.FormatError, match=r"'label'.* and nothing else"):
        bf.DataLoader(items, seq_len=4)
    with pytest.warns(UserWarning, match="left out: 'label'"):
        bf.DataLoader(items, seq_len=4, ingest="once")
