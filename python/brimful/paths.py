"""Which token files a caller means by paths, patterns and directories."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable
from pathlib import Path

from brimful import manifest
from brimful._core import FormatError
from brimful.boundaries import CACHE_SUFFIX
from brimful.shard_layout import MANIFEST

LOSS_SUFFIX = ".loss.bin"
# What to look for in a directory. A headerless file may be named .npy: some tools do.
_SUFFIXES = {
    None: (".bin", ".idx", ".npy"),
    "megatron": (".bin", ".idx"),
    "llm.c": (".bin",),
    "raw": (".bin", ".npy"),
    "npy": (".npy",),
}


def list_files(sources: Iterable[str | os.PathLike[str]], format: str | None) -> list[Path]:
    """Token files named by paths, glob patterns and directories, the last two in sorted order.

    A Megatron pair is named by its index, its tokens or its prefix; where a list has several of
    these, only the first kind counts. A loss mask has no name of its own.
    """
    files: list[Path] = []
    for source in sources:
        check_name(source)
        path = Path(source)
        if path.is_dir():
            files += _directory_files(path, format)
        elif _is_loss_mask(path) and path.exists():
            raise FormatError(f"{path}: holds a loss mask, not tokens; give the .bin beside it")
        elif path.exists() or not glob.has_magic(str(path)):
            files.append(path)
        else:
            files += _glob_files(path, format)
    kinds: dict[Path, str] = {}
    return [path for path in files if _is_first_kind(path, kinds)]


def check_name(source: str | os.PathLike[str]) -> None:
    """Names that no file can have. An empty one would mean the current directory.

    Raises:
        FileNotFoundError: this is such a name.
    """
    name = os.fspath(source)
    try:
        can_be = bool(name) and "\0" not in name and bool(os.fsencode(name))
    except UnicodeEncodeError:
        can_be = False
    if not can_be:
        raise FileNotFoundError(errno.ENOENT, "no file can have this name", repr(name))


def _is_first_kind(path: Path, kinds: dict[Path, str]) -> bool:
    """Whether a Megatron pair was named so (.bin, .idx or prefix) when it was named first."""
    index = index_of(path)
    if index is None:
        return True
    kind = path.suffix if path.suffix in (".bin", ".idx") else "prefix"
    return kinds.setdefault(index.absolute(), kind) == kind


def index_of(path: Path) -> Path | None:
    """The Megatron index that goes with a path: its .bin, its .idx, or both without the suffix."""
    if path.suffix == ".idx":
        return path
    if path.suffix == ".bin":
        index = path.with_suffix(".idx")
        return index if index.exists() else None
    index = path.with_name(path.name + ".idx")
    return index if index.exists() and not path.exists() else None


def _glob_files(pattern: Path, format: str | None) -> list[Path]:
    found = [Path(name) for name in sorted(glob.glob(str(pattern), recursive=True))]
    files = [path for path in found if not path.is_dir()]
    if not files:
        hint = "; give the directory itself" if found else ""
        raise FileNotFoundError(f"{pattern}: no file has a name like this{hint}")
    tokens = _each_once(files, format)
    if not tokens:
        raise FormatError(f"{pattern}: no token files, only what goes with them ({files[0]})")
    return tokens


def _directory_files(directory: Path, format: str | None) -> list[Path]:
    """The token files of a directory, not of those inside it; a manifest there decides."""
    listed = manifest.find(directory) if format in (None, "megatron") else None
    if listed is not None:
        return [directory / shard.idx.name for shard in listed.shards]
    suffixes = _SUFFIXES[format]
    found = [directory / name for name in sorted(os.listdir(directory))]
    files = [path for path in found if path.suffix in suffixes and not path.is_dir()]
    tokens = _each_once(files, format)
    if not tokens:
        raise FormatError(f"{directory}: no token files; expected some of *{', *'.join(suffixes)}")
    return tokens


def _each_once(files: list[Path], format: str | None) -> list[Path]:
    tokens = [path for path in files if not _goes_with_another(path)]
    if format in (None, "megatron"):
        tokens = [index_of(path) or path for path in tokens]
    return list(dict.fromkeys(tokens))


def _goes_with_another(path: Path) -> bool:
    """Files that lie among token files and hold none."""
    return path.name == MANIFEST or path.name.endswith(CACHE_SUFFIX) or _is_loss_mask(path)


def _is_loss_mask(path: Path) -> bool:
    """By its name, also where its tokens are gone; but tokens with an index may be named so."""
    return path.name.endswith(LOSS_SUFFIX) and index_of(path) is None
