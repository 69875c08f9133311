"""The table of torch's arguments: page, explain() and torch's signature say the same."""

import importlib.util
import inspect
import pathlib

import numpy as np
from torch.utils import data

import brimful as bf
from brimful.drop_in.torch_arguments import TORCH_ARGUMENTS

DOCS = pathlib.Path(__file__).parents[1] / "docs"


def test_the_page_is_what_its_program_writes():
    spec = importlib.util.spec_from_file_location("writer", DOCS / "write_torch_arguments.py")
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    assert writer.PAGE.read_text() == writer.page(), (
        "docs/torch_arguments.md is out of date; renew it: python docs/write_torch_arguments.py"
    )
    arguments = {*inspect.signature(data.DataLoader).parameters}
    assert {*writer.ATTRIBUTES} == arguments - {"shuffle"}, "each is an attribute, but for one"


def test_every_argument_of_torchs_has_a_row_in_torchs_order():
    names = list(inspect.signature(data.DataLoader).parameters)
    assert [argument.name for argument in TORCH_ARGUMENTS] == [*names[1:], "snapshot_every_n_steps"]


def test_both_paths_explain_every_argument():
    native = bf.DataLoader([np.arange(3)], seq_len=4).explain()
    torchs = bf.DataLoader([np.arange(3)]).explain()
    names = [argument.name for argument in TORCH_ARGUMENTS]
    assert list(native.arguments) == list(torchs.arguments) == names
    assert (native.path, torchs.path) == ("native", "torch")
    for name in names:
        assert f"\n  {name} " in str(native)
        assert f"\n  {name} " in str(torchs)


# Values that the native path takes, and those that it refuses where the table says so.
TAKEN = {
    "batch_size": 2, "shuffle": True, "num_workers": 1, "collate_fn": list, "pin_memory": False,
    "drop_last": True, "timeout": 5, "worker_init_fn": print, "multiprocessing_context": "fork",
    "prefetch_factor": 2, "persistent_workers": True, "pin_memory_device": "", "in_order": False,
    "snapshot_every_n_steps": 3, "sampler": data.SequentialSampler(range(3)), "generator": None,
}  # fmt: skip
REFUSED = {"batch_size": None, "batch_sampler": [[0]], "sampler": [0]}


def test_the_native_column_tells_the_truth():
    documents = [np.arange(3)] * 3
    for argument in TORCH_ARGUMENTS:
        if argument.name in TAKEN:
            assert list(
                bf.DataLoader(documents, seq_len=4, **{argument.name: TAKEN[argument.name]})
            )
        refuses = "refused" in argument.native
        assert refuses == (argument.name in REFUSED)
        if refuses:
            try:
                bf.DataLoader(documents, seq_len=4, **{argument.name: REFUSED[argument.name]})
            except bf.PlanError:
                continue
            raise AssertionError(f"{argument.name} was to be refused")
