"""What the process takes of the machine: storage that it reads, pages that it waits for."""

from __future__ import annotations

import resource
from dataclasses import dataclass

_BLOCK_BYTES = 512  # what getrusage counts in, on Linux


@dataclass(frozen=True)
class Usage:
    """Counts of this process with all its threads, since it began.

    Attributes:
        read_bytes: fetched from storage; what page cache holds already is not in them.
        major_faults: pages of mapped files that had to be fetched and were waited for.
    """

    read_bytes: int
    major_faults: int

    def since(self, earlier: Usage) -> Usage:
        """What came after `earlier`."""
        return Usage(self.read_bytes - earlier.read_bytes, self.major_faults - earlier.major_faults)

    def plus(self, other: Usage) -> Usage:
        """Of two together."""
        return Usage(self.read_bytes + other.read_bytes, self.major_faults + other.major_faults)


def usage() -> Usage:
    """Of this process, now."""
    counts = resource.getrusage(resource.RUSAGE_SELF)
    return Usage(counts.ru_inblock * _BLOCK_BYTES, counts.ru_majflt)
