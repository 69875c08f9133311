"""Which path a dataset takes: the rule, and what the loader says of it."""

import pathlib
import subprocess
import sys

import datasets
import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.utils import data

import brimful as bf
from brimful.drop_in.path import choose_path

DOCUMENTS = [np.arange(4), np.arange(3)]
ROWS = {"input_ids": [[1, 2, 3], [4, 5]]}


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize("given", [{}, {"batch_size": 2}, {"seq_len": 4}], ids=str)
@pytest.mark.parametrize(
    "corpus",
    [bf.open(DOCUMENTS), "shards/", pathlib.Path("shards"), pa.table(ROWS)],
    ids=lambda corpus: type(corpus).__name__,
)
def test_token_corpora_are_native_whatever_is_given(corpus, given):
    assert choose_path(corpus, given).native


@pytest.mark.parametrize(
    "dataset",
    [
        datasets.Dataset.from_dict(ROWS),
        DOCUMENTS,
        np.zeros((2, 3), np.int64),
        torch.zeros(2, 3),
        [{"input_ids": [1, 2]}],
        ["a text", "another"],
        [],
        range(3),
        data.TensorDataset(torch.arange(3)),
        Stream(),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_other_datasets_are_torchs_unless_a_setting_of_brimfuls_own_is_given(dataset):
    for torchs in ({}, {"batch_size": 3, "shuffle": True, "generator": None, "in_order": False}):
        assert not choose_path(dataset, torchs).native
    for own in ({"seq_len": 8}, {"rank": 0, "world_size": 1}, {"shuffle": "block"}, {"seed": None}):
        path = choose_path(dataset, {"batch_size": 3, **own})
        assert path.native
        assert all(name in path.reason for name in own)
        assert type(dataset).__name__ in path.reason


def test_the_rule_reads_no_data():
    class Locked(data.Dataset):
        def __len__(self):
            raise AssertionError("asked for the length")

        def __getitem__(self, index):
            raise AssertionError("asked for an item")

        def __iter__(self):
            raise AssertionError("iterated")

    assert not choose_path(Locked(), {}).native
    assert choose_path(Locked(), {"seq_len": 4}).native


def test_a_loader_on_torchs_path_is_torchs_and_says_why():
    loader = bf.DataLoader(data.TensorDataset(torch.arange(5)), 2)
    assert isinstance(loader, data.DataLoader)
    explanation = loader.explain()
    assert explanation.path == "torch"
    assert "TensorDataset" in str(explanation)
    assert "seq_len" in explanation.reason


def test_a_native_loader_is_none_of_torchs_and_says_why():
    loader = bf.DataLoader(DOCUMENTS, seq_len=4)
    assert not isinstance(loader, data.DataLoader)
    explanation = loader.explain()
    assert explanation.path == "native"
    assert "seq_len" in explanation.reason
    assert "Corpus" in bf.DataLoader(bf.open(DOCUMENTS), seq_len=4).explain().reason


def test_loaders_can_be_told_apart_by_item_type_as_torchs_users_write_it():
    assert len(bf.DataLoader[int](bf.open(DOCUMENTS), seq_len=4)) == 2
    assert len(bf.DataLoader[int](range(3))) == 3


def test_a_misspelled_argument_is_named_on_either_path():
    with pytest.raises(TypeError, match="did you mean batch_size"):
        bf.DataLoader(range(3), batchsize=4)
    with pytest.raises(TypeError, match="dataset"):
        bf.DataLoader()
    with pytest.raises(TypeError, match="batch_size"):
        bf.DataLoader(range(3), 2, batch_size=2)
    with pytest.raises(TypeError, match="too many positional"):
        bf.DataLoader(range(3), *[None] * 13)


def test_without_torch_other_datasets_need_the_extra_and_corpora_do_not():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import brimful as bf, numpy as np\n"
        "print(len(list(bf.DataLoader(bf.open([np.arange(4)]), seq_len=4))))\n"
        "try: bf.DataLoader(range(3))\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.startswith("1\n"), done.stderr
    assert "brimful[torch]" in done.stdout
    assert "the range is no token corpus" in done.stdout
