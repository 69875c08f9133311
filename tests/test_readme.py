"""README against the code: its defaults, names and commands; and its examples, which run."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tomllib
import warnings
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from transformers.modeling_outputs import CausalLMOutput

import brimful as bf
from brimful.cli.app import app
from brimful.config import FIELDS, LoaderConfig
from brimful.files import FORMATS
from brimful.packing import Overlong, Strategy

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    """The text under a heading, up to the next one of the same level."""
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def table(text: str, header: str) -> list[list[str]]:
    """Rows of the table whose first heading is `header`, without the heading."""
    lines = text[text.index(f"| {header} |") :].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_c95_each_default_in_the_table_is_the_one_in_the_code() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(LoaderConfig)}
    written = {}
    for settings, defaults, _ in table(section("Settings and their defaults"), "setting"):
        for name, default in zip(names_in(settings), names_in(defaults), strict=True):
            written[name] = ast.literal_eval(default)
    assert written == fields


def test_c95_defaults_told_in_the_text_are_those_of_the_code() -> None:
    assert inspect.signature(bf.pack).parameters["overlong"].default == LoaderConfig.overlong
    assert f"window of {LoaderConfig.window:,} documents" in README
    assert inspect.signature(bf.mix).parameters["unit"].default == "tokens"
    columns = [names_in(row[0])[0] for row in table(section("What a batch holds"), "column")]
    assert columns[:3] == list(LoaderConfig.fields)


def deliver(document: Any, **settings: Any) -> tuple[list[int], Any]:
    """The tokens that a loader gives of one document, and its stats."""
    loader = bf.DataLoader([document], num_workers=0, **settings)
    kept = [np.asarray(batch["input_ids"])[0, : batch.num_tokens] for batch in loader]
    return np.concatenate(kept).tolist(), loader.stats()


def test_c95_a_document_is_cut_at_seq_len_and_nowhere_else() -> None:
    document = np.arange(3000)
    with pytest.warns(UserWarning, match="952 tokens"):
        kept, stats = deliver(document, seq_len=2048, overlong="truncate")
    assert kept == document[:2048].tolist()
    assert (stats.dropped_tokens, stats.truncated_documents) == (952, 1)
    kept, stats = deliver(document, seq_len=2048)
    assert kept == document.tolist()
    assert (stats.dropped_tokens, stats.split_documents) == (0, 1)


def test_c95_settings_in_effect_can_be_printed_and_are_in_the_state() -> None:
    loader = bf.DataLoader([np.arange(9)], seq_len=4, overlong="truncate")
    assert loader.config.as_dict()["seq_len"] == 4
    assert "'truncate'" in repr(loader.state_dict())


def test_tables_name_all_columns_strategies_and_rules() -> None:
    columns = [names_in(row[0])[0] for row in table(section("What a batch holds"), "column")]
    assert sorted(columns) == sorted(FIELDS)
    strategies = [names_in(row[0])[0] for row in table(section("Packing"), "strategy")]
    assert sorted(strategies) == sorted(get_args(Strategy))
    rules = [names_in(row[0])[0] for row in table(section("Packing"), "overlong")]
    assert rules == list(get_args(Overlong))


def test_formats_extras_and_commands_are_those_that_exist() -> None:
    formats = {names_in(row[0])[0] for row in table(section("Formats"), "format")}
    assert formats == {*FORMATS, "arrow", "memory"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = README[README.index("Extras: ") :].split(".\n", 1)[0]
    assert set(names_in(named)) == set(project["optional-dependencies"])
    commands = {command.callback.__name__ for command in app.registered_commands}
    blocks = "".join(re.findall(r"```sh\n.*?```|`brimful [^`]+`", README, re.DOTALL))
    assert {"demo", "inspect"} <= set(re.findall(r"brimful (\w+)", blocks)) <= commands


def test_named_counts_and_attributes_exist() -> None:
    stats = {field.name for field in dataclasses.fields(bf.Stats)}
    for _, _, counters in table(section("Packing"), "overlong"):
        assert set(names_in(counters)) <= stats
    batch = next(iter(bf.DataLoader([np.arange(9)], seq_len=4, num_workers=0)))
    for cell, _ in table(section("What a batch holds"), "attribute"):
        for name in names_in(cell):
            assert hasattr(batch, name)


def test_the_two_commands_stand_as_they_are_run() -> None:
    for command in (
        "pip install -c constraints.txt '.[demo]' && brimful demo",
        "pip install -c constraints.txt '.[test]' && pytest",
    ):
        assert f"```sh\n{command}\n```" in README


class Model(torch.nn.Module):
    """Stands for the reader's model: takes a batch as keywords and returns a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, *, use_cache: bool, **batch: Any) -> CausalLMOutput:
        assert not use_cache
        assert set(batch) >= set(LoaderConfig.fields)
        return CausalLMOutput(loss=self.weight * batch["input_ids"].float().mean())


def test_python_examples_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with bf.ShardWriter("shards", dtype="uint16") as writer:
        for i in range(64):
            writer.add(np.full(512, i, np.uint16))
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 3
    namespace: dict[str, Any] = {"model": Model()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks:
            exec(compile(block, "README.md", "exec"), namespace)


def test_pictures_and_files_that_are_linked_exist() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link
