"""README and docs/ against the code: defaults, names, commands, links; and examples, which run."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import brimful as bf
from brimful.cli.app import app
from brimful.config import FIELDS, LoaderConfig
from brimful.files import FORMATS
from brimful.packing import Overlong, Strategy
from snippets import ROOT, blocks, run_blocks

README = (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def table(text: str, header: str) -> list[list[str]]:
    """Rows of the table whose first heading is `header`, without the heading."""
    lines = text[text.index(f"| {header} |") :].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_c95_each_default_in_the_table_is_the_one_in_the_code() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(LoaderConfig)}
    written = {}
    for settings, defaults, _ in table(page("settings"), "setting"):
        for name, default in zip(names_in(settings), names_in(defaults), strict=True):
            written[name] = ast.literal_eval(default)
    assert written == fields


def test_c95_defaults_told_in_the_text_are_those_of_the_code() -> None:
    assert inspect.signature(bf.pack).parameters["overlong"].default == LoaderConfig.overlong
    assert f"window of {LoaderConfig.window:,} documents" in page("design")
    assert inspect.signature(bf.mix).parameters["unit"].default == "tokens"
    columns = [names_in(row[0])[0] for row in table(page("batch"), "column")]
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
    columns = [names_in(row[0])[0] for row in table(page("batch"), "column")]
    assert sorted(columns) == sorted(FIELDS)
    strategies = [names_in(row[0])[0] for row in table(page("packing"), "strategy")]
    assert sorted(strategies) == sorted(get_args(Strategy))
    rules = [names_in(row[0])[0] for row in table(page("packing"), "overlong")]
    assert rules == list(get_args(Overlong))


def test_formats_extras_and_commands_are_those_that_exist() -> None:
    formats = {names_in(row[0])[0] for row in table(page("formats"), "format")}
    assert formats == {*FORMATS, "arrow", "memory"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = README[README.index("Extras: ") :].split(".\n", 1)[0]
    assert set(names_in(named)) == set(project["optional-dependencies"])
    listed = [name for row in table(page("quickstart"), "extra") for name in names_in(row[0])]
    assert sorted(listed) == sorted(project["optional-dependencies"])
    commands = {command.callback.__name__: command.callback for command in app.registered_commands}
    text = README + "".join(path.read_text() for path in PAGES)
    shown = "".join(re.findall(r"```sh\n.*?```|`brimful [^`]+`", text, re.DOTALL))
    assert {"demo", "inspect"} <= set(re.findall(r"brimful (\w+)", shown)) <= set(commands)
    told = {names_in(row[0])[0]: row[1] for row in table(page("commands"), "command")}
    helps = {name: inspect.getdoc(callback) or "" for name, callback in commands.items()}
    assert told == {f"brimful {name}": text.split("\n")[0] for name, text in helps.items()}


def test_named_counts_and_attributes_exist() -> None:
    stats = {field.name for field in dataclasses.fields(bf.Stats)}
    for _, _, counters in table(page("packing"), "overlong"):
        assert set(names_in(counters)) <= stats
    batch = next(iter(bf.DataLoader([np.arange(9)], seq_len=4, num_workers=0)))
    for cell, _ in table(page("batch"), "attribute"):
        for name in names_in(cell):
            assert hasattr(batch, name)


def test_the_two_commands_stand_as_they_are_run() -> None:
    for command in (
        "pip install -c constraints.txt '.[demo]' && brimful demo",
        "pip install -c constraints.txt '.[test]' && pytest",
    ):
        assert f"```sh\n{command}\n```" in README


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *(path for path in PAGES if blocks(path.read_text()))],
    ids=lambda path: path.name,
)
def test_python_examples_run_in_order(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(path)


def test_every_fence_says_what_is_in_it_so_that_python_is_run() -> None:
    for path in (ROOT / "README.md", *PAGES):
        fences = re.findall(r"^ *(?:```|~~~)(.*)$", path.read_text(), re.M)
        assert set(fences[::2]) <= {"python", "sh", "text", "diff"}, path
        assert set(fences[1::2]) <= {""}, path


def anchors(text: str) -> set[str]:
    """What the headings of a page may be linked by, on the site as on a forge."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    return {
        re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("name", ["README.md", "bench/README.md"])
def test_pictures_files_and_headings_that_are_linked_exist(name: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / name).read_text())
    assert links
    for link in links:
        file, _, anchor = link.partition("#")
        target = (ROOT / name).parent / file if file else ROOT / name
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text()), link


def test_each_page_and_each_name_is_in_the_docs() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for path in PAGES:
        assert f": {path.relative_to(ROOT / 'docs')}\n" in navigation
        if path.parent.name == "docs" and path.stem != "index":
            assert f"(docs/{path.name})" in README
    reference = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    told = {name.rsplit(".")[-1] for name in re.findall(r"^::: (\S+)$", reference, re.M)}
    assert set(bf.__all__) <= told
