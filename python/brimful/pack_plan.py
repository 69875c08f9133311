"""What packing gives: which piece lies in which bin, what was cut or lost, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class PackPlan:
    """Which piece of which document lies in which bin, and what became of the rest.

    Bin ``b`` holds the pieces ``bin_offsets[b]`` up to ``bin_offsets[b + 1]`` of ``documents``,
    ``starts`` and ``lengths``, in the order in which they were placed (``"streaming"``: in which
    they were given). Bins are numbered in the order in which they were opened. All lengths and the
    capacity count tokens.
    """

    strategy: str
    overlong: str
    capacity: int
    bin_offsets: npt.NDArray[np.int64] = field(repr=False)  # [bins + 1], from 0 to the pieces
    documents: npt.NDArray[np.int64] = field(repr=False)  # [pieces] index into the given lengths
    starts: npt.NDArray[np.int64] = field(repr=False)  # [pieces] first token in its document
    lengths: npt.NDArray[np.int32] = field(repr=False)  # [pieces]
    num_tokens: int  # placed in bins
    lower_bound: int  # no packing of these pieces has fewer bins
    dropped_documents: int  # longer than the capacity, left out whole
    dropped_tokens: int  # of dropped documents and of the cut ends of truncated ones
    truncated_documents: int  # cut to the capacity, the end lost
    split_documents: int  # in more than one piece, nothing lost
    empty_documents: int  # of length 0, in no bin

    @property
    def num_bins(self) -> int:
        return len(self.bin_offsets) - 1

    @property
    def utilization(self) -> float | None:
        """Tokens over places, 0..1; None when there is no bin."""
        return self.num_tokens / (self.num_bins * self.capacity) if self.num_bins else None

    def report(self) -> str:
        """The plan in a few lines: utilization, distance from the optimum, what was cut or lost."""
        placed = int(np.count_nonzero(self.starts == 0))
        given = placed + self.dropped_documents + self.empty_documents
        lines = [
            f"{self.strategy}: {given:,} documents into bins of {self.capacity:,} tokens",
            _line("utilization", self._filled()),
            _line("bins", f"{self.num_bins:,}, {self._distance()}"),
            _line("tokens", f"{self.num_tokens:,} placed, {self._lost_tokens()}"),
            _line("documents", self._fates(placed)),
        ]
        if self.num_bins:
            pieces = np.diff(self.bin_offsets)
            spread = f"{pieces.min():,} to {pieces.max():,}, {pieces.mean():,.1f} on average"
            lines.append(_line("documents/bin", spread))
        return "\n".join(lines)

    def _filled(self) -> str:
        if not self.num_bins:
            return "none: no bin"
        # Rounded down: only a plan without a gap says 100 %.
        thousandths = self.num_tokens * 100_000 // (self.num_bins * self.capacity)
        return f"{thousandths / 1000:.3f} %"

    def _distance(self) -> str:
        if self.num_bins == self.lower_bound:
            return "optimal: no packing of these pieces has fewer"
        # Rounded up: the distance is never larger than it says.
        over = -((self.lower_bound - self.num_bins) * 10_000 // self.lower_bound)
        return (
            f"within {over / 100:.2f} % of optimal "
            f"(no packing of these pieces has fewer than {self.lower_bound:,})"
        )

    def _lost_tokens(self) -> str:
        if not self.dropped_tokens:
            return "none lost"
        share = self.dropped_tokens / (self.num_tokens + self.dropped_tokens)
        return f"{self.dropped_tokens:,} lost ({100 * share:.1f} %, overlong={self.overlong!r})"

    def _fates(self, placed: int) -> str:
        whole = placed - self.truncated_documents - self.split_documents
        fates = {
            "whole": whole,
            "split": self.split_documents,
            "truncated": self.truncated_documents,
            "dropped": self.dropped_documents,
            "empty": self.empty_documents,
        }
        return ", ".join(f"{n:,} {fate}" for fate, n in fates.items() if n or fate == "whole")


def _line(name: str, text: str) -> str:
    return f"  {name:<14}{text}"
