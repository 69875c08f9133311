"""The package as it is installed: numpy is all it needs, and it is typed."""

import subprocess
import sys
from pathlib import Path

import pytest

import brimful as bf

OPTIONAL = [
    "bpe_openai",
    "datasets",
    "pandas",
    "pyarrow",
    "rich",
    "tiktoken",
    "tokenizers",
    "torch",
    "transformers",
    "typer",
    "xxhash",
]


def output_of(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    return done.stdout


def test_import_needs_numpy_only() -> None:
    # None in sys.modules makes an import fail as if the package were not installed.
    code = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL})); import brimful as bf"
    assert output_of(f"{code}; print(bf.device.available())") in ("True\n", "False\n")


def test_import_after_libraries_that_took_the_static_thread_memory() -> None:
    assert output_of("import pyarrow, brimful; print(brimful.pack([1], 1).num_bins)") == "1\n"


def test_import_leaves_optional_packages_alone() -> None:
    code = f"import sys, brimful; print(*sorted(set({OPTIONAL}) & set(sys.modules)))"
    assert output_of(code).split() == []


@pytest.mark.parametrize("name", ["py.typed", "_core.pyi"])
def test_types_come_with_the_package(name: str) -> None:
    assert (Path(bf.__file__).parent / name).is_file()


def test_every_public_name_exists() -> None:
    assert sorted(bf.__all__) == bf.__all__
    assert [name for name in bf.__all__ if not hasattr(bf, name)] == []


def test_changelog_begins_with_this_version() -> None:
    changelog = (Path(__file__).parent.parent / "CHANGELOG.md").read_text()
    headings = [line for line in changelog.splitlines() if line.startswith("## ")]
    assert headings[0].startswith(f"## [{bf.__version__}]")
