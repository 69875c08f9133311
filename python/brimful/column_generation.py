"""Column generation: a linear program over patterns, which holds only those that matter.

A pattern is a multiset of sizes that fits a bin. The program takes as few patterns as cover all
items, in fractions of bins; its duals give every size a value, and pricing finds patterns that are
worth more than 1, which improve it, until there are none. HiGHS solves the programs; pricing is
native.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import _core

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Stock:
    """Items by size: ``counts[i]`` of ``sizes[i]``, sizes falling, for bins of ``capacity`` that
    hold at most ``max_items``."""

    sizes: Ints
    counts: Longs
    capacity: int
    max_items: int

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def layers(self) -> int:
        """How often a table over the capacity is needed in pricing: once, unless ``max_items`` may
        bind."""
        most = self.capacity // int(self.sizes[-1])
        return 1 if most <= self.max_items else self.max_items + 1


@dataclass(frozen=True)
class Patterns:
    """Pattern p holds ``copies[e]`` times size number ``items[e]``, e from ``offsets[p]`` to
    ``offsets[p + 1]``."""

    offsets: Longs = field(default_factory=lambda: np.zeros(1, np.int64))
    items: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    copies: Ints = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def worth(self, values: Floats) -> Floats:
        """The values of its items, for each pattern."""
        if not len(self):
            return np.zeros(0)
        return np.add.reduceat(values[self.items] * self.copies, self.offsets[:-1])

    def where(self, chosen: npt.NDArray[np.bool_]) -> Patterns:
        lengths = np.diff(self.offsets)
        entries = np.repeat(chosen, lengths)
        offsets = np.concatenate(([0], np.cumsum(lengths[chosen])))
        return Patterns(offsets, self.items[entries], self.copies[entries])


def joined(parts: list[Patterns]) -> Patterns:
    if not parts:
        return Patterns()
    ends = np.cumsum([0, *(int(part.offsets[-1]) for part in parts)])
    offsets = [part.offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Patterns(
        np.concatenate((np.zeros(1, np.int64), *offsets)),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.copies for part in parts]),
    )


@dataclass(frozen=True)
class Rows:
    """Which rows of the program an item counts in: ``1 - shares[i]`` in row ``rows[i]``, and
    ``shares[i]`` in the row behind it.

    A row for each size makes the program exact. Fewer rows, with shares, are a relaxation: sizes
    between two knots are covered on average, and the duals are linear between knots.
    """

    rows: Ints  # [sizes], rising
    shares: Floats  # [sizes] 0..1
    demand: Floats  # [rows]

    @staticmethod
    def each(stock: Stock) -> Rows:
        """A row for each size."""
        return Rows(
            np.arange(len(stock), dtype=np.int32),
            np.zeros(len(stock)),
            stock.counts.astype(np.float64),
        )

    @staticmethod
    def at(knots: Longs, stock: Stock) -> Rows:
        """Rows at some sizes, by number, the first and the last one among them."""
        sizes = stock.sizes
        rows = np.searchsorted(knots, np.arange(len(sizes)), side="right") - 1
        rows = np.minimum(rows, len(knots) - 2)
        above, below = sizes[knots[rows]], sizes[knots[rows + 1]]
        shares = (above - sizes) / (above - below)
        demand = np.zeros(len(knots))
        np.add.at(demand, rows, stock.counts * (1 - shares))
        np.add.at(demand, rows + 1, stock.counts * shares)
        return Rows(rows.astype(np.int32), shares, demand)

    def of(self, chosen: Longs) -> Rows:
        """The same rows, for some of the sizes only."""
        return Rows(self.rows[chosen], self.shares[chosen], self.demand)

    def values(self, duals: Floats) -> Floats:
        """What the duals of the rows make each item worth, [sizes]."""
        behind = np.append(duals, 0.0)[self.rows + 1]
        return duals[self.rows] * (1 - self.shares) + behind * self.shares


class Master:
    """The linear program, in HiGHS: minimal bins that cover the demand of each row."""

    def __init__(self, highspy: Any, demand: Floats) -> None:
        self._rows = len(demand)
        self._infinity = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal

        class Silent(highspy.Highs):  # type: ignore[misc]
            def enableCallbacks(self) -> None:
                """HiGHS prints a banner when it is given callbacks; there are none."""

        highs = Silent()
        options = {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}
        for name, value in options.items():
            highs.setOptionValue(name, value)
        none = np.zeros(0)
        most = np.full(self._rows, self._infinity)
        starts = np.zeros(self._rows, np.int32)
        highs.addRows(self._rows, demand, most, 0, starts, none.astype(np.int32), none)
        self._highs = highs

    def add(self, patterns: Patterns, rows: Rows) -> None:
        columns = len(patterns)
        if not columns:
            return
        column = np.repeat(np.arange(columns), np.diff(patterns.offsets))
        places = column * self._rows + rows.rows[patterns.items]
        shares = rows.shares[patterns.items]
        split = shares > 0
        places = np.concatenate((places, places[split] + 1))
        weights = np.concatenate(
            (patterns.copies * (1 - shares), patterns.copies[split] * shares[split])
        )
        kept, number = np.unique(places, return_inverse=True)
        sums = np.bincount(number, weights)
        kept, sums = kept[sums > 0], sums[sums > 0]
        starts = np.searchsorted(kept, np.arange(columns) * self._rows)
        ones, zeros = np.ones(columns), np.zeros(columns)
        self._highs.addCols(
            columns,
            ones,
            zeros,
            np.full(columns, self._infinity),
            len(kept),
            starts.astype(np.int32),
            (kept % self._rows).astype(np.int32),
            sums,
        )

    def solve(self, seconds: float) -> tuple[float, Floats, Floats] | None:
        """Bins, duals by row and bins by pattern; None when HiGHS finds no optimum in time."""
        highs = self._highs
        # Its clock counts all runs.
        highs.setOptionValue("time_limit", highs.getRunTime() + max(seconds, 1e-3))
        highs.run()
        if highs.getModelStatus() != self._optimal:
            return None
        solution = highs.getSolution()
        duals, bins = np.array(solution.row_dual), np.array(solution.col_value)
        objective = float(bins.sum())
        if not (np.isfinite(duals).all() and np.isfinite(objective)):
            return None
        return objective, np.maximum(duals, 0.0), bins


@dataclass
class Relaxation:
    """What column generation found.

    No pattern of the stock is worth more than 1 at ``duals``, but for rounding, and ``bound`` is
    what all items are worth; ``bins`` says how many bins follow each pattern.
    """

    duals: Floats  # [rows]
    bound: float = 0.0
    objective: float = np.inf
    patterns: Patterns = field(default_factory=Patterns)
    bins: Floats = field(default_factory=lambda: np.zeros(0))  # [patterns], in fractions


def generate(
    highspy: Any,
    stock: Stock,
    rows: Rows,
    start: Floats,
    *,
    known: Patterns | None = None,
    deadline: float,
    tolerance: float,
) -> Relaxation:
    """Patterns and duals, until they are within ``tolerance`` of each other or time is up.

    Args:
        start: duals to begin with, [rows], positive; good ones save rounds.
        known: patterns to begin with; None or none: those that fill bins well.
        deadline: of ``time.monotonic()``.
    """
    found = Relaxation(start)
    master = Master(highspy, rows.demand)
    parts: list[Patterns] = []

    def add(patterns: Patterns) -> None:
        master.add(patterns, rows)
        parts.append(patterns)

    def price(values: Floats, backwards: bool) -> tuple[float, Patterns]:
        best, offsets, items, copies = _core.price_patterns(
            stock.sizes,
            stock.counts,
            stock.capacity,
            stock.max_items,
            np.ascontiguousarray(values),
            rows.rows,
            backwards,
        )
        return best, Patterns(offsets, items, copies)

    add(_uniform(stock))
    seeds = _seeds(stock, rows.values(start))
    if known:
        add(known.where(known.worth(rows.values(start)) > 0.98))
        seeds = seeds[-1:]
    for values in seeds:
        for backwards in (False, True):
            if time.monotonic() < deadline:
                add(price(values, backwards)[1])
    solved = master.solve(deadline - time.monotonic())
    while solved is not None:
        found.objective, present, found.bins = solved
        found.patterns = joined(parts)
        added = 0
        # Duals between the best ones so far and the present ones lead there in fewer rounds; where
        # they give nothing new, the present ones do, or prove that there is nothing.
        for duals in ((found.duals + present) / 2, present):
            for backwards in (False, True):
                best, patterns = price(rows.values(duals), backwards)
                bound = float(rows.demand @ duals) / best if best > 0 else 0.0
                if bound > found.bound:
                    found.bound, found.duals = bound, duals / best
                patterns = patterns.where(patterns.worth(rows.values(present)) > 1 + 1e-7)
                added += len(patterns)
                add(patterns)
            if added:
                break
        close = found.objective <= found.bound * (1 + tolerance)
        if not added or close or time.monotonic() > deadline:
            break
        solved = master.solve(deadline - time.monotonic())
    return found


def _uniform(stock: Stock) -> Patterns:
    """As many of one size as fit, for each size: a solution exists from the first round on."""
    copies = np.minimum(stock.capacity // stock.sizes, stock.counts)
    copies = np.minimum(copies, stock.max_items).astype(np.int32)
    numbers = np.arange(len(stock) + 1)
    return Patterns(numbers, numbers[:-1].astype(np.int32), copies)


def _seeds(stock: Stock, start: Floats) -> list[Floats]:
    """Values at which the best patterns fill bins well, in several ways, and all are wanted."""
    shares = stock.sizes / stock.capacity
    seeds = [shares**power for power in (0.9, 1.0, 1.05, 1.2)]
    return [10 * values / values.max() for values in (*seeds, start)]
