"""What this process has in memory, by who can give it back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessMemory:
    """Resident bytes of the process.

    Attributes:
        anonymous: memory of its own, which nothing but the process can give back.
        file_backed: pages of mapped files: the system's page cache, which it takes back when memory
            is short.
    """

    anonymous: int
    file_backed: int


def process_memory() -> ProcessMemory:
    """As Linux counts it in /proc/self/status."""
    kib = dict.fromkeys(("RssAnon", "RssFile"), 0)
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in kib:
            kib[name] = int(value.split()[0])
    return ProcessMemory(anonymous=kib["RssAnon"] << 10, file_backed=kib["RssFile"] << 10)
