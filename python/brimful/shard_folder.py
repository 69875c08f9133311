"""A folder that one writer fills: claimed, filled under temporary names, then published at once.

The claim is a lock of the system on the folder itself: it ends with the process, leaves no file,
and tells the leftovers of a killed writer, which are removed, from the files of one at work.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import numpy as np

from brimful.shard_file import HashedFile, ShardFile
from brimful.shard_layout import MANIFEST, TEMPORARY_SUFFIX, Manifest


class ShardFolder:
    """The files of one writer in their folder. `discard` is safe at any time and more than once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.published = False
        self._made = not path.exists()
        self._shards: list[ShardFile] = []
        self._process = os.getpid()
        path.mkdir(parents=True, exist_ok=True)
        self._claim = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._take()
        except BaseException:
            os.close(self._claim)
            raise

    def _take(self) -> None:
        try:
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = True
        except BlockingIOError:
            raise FileExistsError(
                f"{self.path}: another writer is at work in this folder; choose another one"
            ) from None
        except OSError:
            is_ours = False  # a file system without locks: leftovers cannot be told, and stay
        names = sorted(os.listdir(self.path))
        for name in names:
            if name == MANIFEST or name.endswith((".bin", ".idx")):
                raise FileExistsError(
                    f"{self.path}: holds {name}, and shards are never added to or overwritten; "
                    "write into another folder (ShardWriter.extend merges), or remove this one"
                )
        for name in names:
            if is_ours and name.endswith(TEMPORARY_SUFFIX):
                (self.path / name).unlink()

    def new_shard(self, dtype: str) -> ShardFile:
        shard = ShardFile(self.path, f"shard-{len(self._shards):05d}", dtype)
        self._shards.append(shard)
        return shard

    def publish(self, manifest: Manifest) -> None:
        """Give finished shards their names, and the manifest its name after them."""
        text = json.dumps(manifest.to_json(), indent=1, ensure_ascii=False).encode()
        file = HashedFile(self.path / MANIFEST, "uint8")
        done: list[Path] = []
        try:
            file.write_bytes(np.frombuffer(text, np.uint8))
            file.finish()
            for shard in self._shards:
                for path in shard.publish():
                    done.append(path)
            os.fsync(self._claim)
            os.rename(file.temporary, file.path)
        except BaseException:
            file.discard()
            for path in done:
                path.unlink()
            raise
        self.published = True
        os.fsync(self._claim)

    def discard(self) -> None:
        """Release the folder, and remove from it what was not published."""
        if self._claim < 0:
            return
        claim, self._claim = self._claim, -1
        # A forked child has copies of all this, but nothing in the folder is its own.
        if not self.published and os.getpid() == self._process:
            for shard in self._shards:
                shard.discard()
            if self._made and not os.listdir(self.path):
                self.path.rmdir()
        os.close(claim)
