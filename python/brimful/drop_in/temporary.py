"""Folders for data of one process, which go with it however it ends.

A process holds a lock of the system on each of its folders. The lock ends with the process, killed
or not, and nobody else can have it before: so whoever makes the next folder finds those that nobody
holds any more, and removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path


class TemporaryFolder:
    """A new folder, which lives as long as this object.

    It lies in the system's folder for temporary files (`TMPDIR`), for this user's eyes only.
    Forked children never remove it, but keep it from being taken for a leftover.
    """

    def __init__(self) -> None:
        parent = _parent_folder()
        with _locked(parent):  # so that nobody sees the new folder before it is held
            _remove_leftovers(parent)
            self.path = Path(tempfile.mkdtemp(dir=parent, prefix=f"{os.getpid()}-"))
            hold = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            with contextlib.suppress(OSError):  # without locks nobody removes leftovers either
                fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Also as the interpreter ends, where nobody asks for it.
        self.remove = weakref.finalize(self, _remove, self.path, hold, os.getpid())


def _remove(folder: Path, hold: int, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
    os.close(hold)


def _parent_folder() -> Path:
    """Where the folders of this user lie; nobody else may write there."""
    parent = Path(tempfile.gettempdir(), f"brimful-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        parent.mkdir(mode=0o700)
    status = parent.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(
            f"{parent}: not a folder that only this user can write to; remove it, or set TMPDIR "
            "to another folder for temporary files"
        )
    return parent


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_leftovers(parent: Path) -> None:
    """Removes the folders that no process holds; what cannot be locked or removed stays."""
    for entry in os.scandir(parent):
        with contextlib.suppress(OSError):
            hold = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(hold)
