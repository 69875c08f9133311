"""Packing close to the optimum, with a proof of how close: what strategy ``"optimal"`` does.

Sizes are looked at as a histogram, so nothing here grows with the number of documents. Two linear
programs over patterns (column generation after Gilmore and Gomory) work together:

- the *bound*: values for sizes, linear between a few hundred of them, so that no bin is worth more
  than 1; what all documents are worth then is a number of bins that no packing goes below.
- the *plan*: the sizes in buckets of neighbours, each taken at its mean. Its patterns over buckets
  become templates, which are filled with sizes that are there and fit; what is left over is planned
  again, until nothing is, and BFD packs the rest.

Both begin coarse, and are refined as long as there is time and a gap between them. The best packing
so far, at first that of best-fit-decreasing, is kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from brimful import _core
from brimful.buckets import CELLS, LAYERS, divide, merged, priced
from brimful.column_generation import (
    Floats,
    Longs,
    Patterns,
    Relaxation,
    Rows,
    Stock,
    generate,
    joined,
)
from brimful.extras import require

# A program with a row for each size is in reach up to so many.
_EXACT = 640
# Plans of the exact program, each rounded in another way, before the search gives up.
_ATTEMPTS = 16


def pack(
    lengths: Longs, capacity: int, options: _core.PackOptions, time_limit: float
) -> tuple[_core.Packing, int]:
    """The best packing found in about ``time_limit`` seconds beyond those that best-fit-decreasing
    takes, never one of more bins than that, and a number of bins that no packing goes below."""
    highspy = require("highspy", "optimal", 'strategy="optimal"')
    packing = _core.pack(lengths, capacity, options)  # first: it refuses more than memory holds
    sizes, counts = _core.unit_histogram(lengths, capacity, options)
    bound = _core.lower_bound_bins(packing, options)
    if not len(sizes):
        return packing, bound
    stock = Stock(sizes, counts, capacity, options.max_segments or capacity)
    search = Search(highspy, stock, packing.num_bins, bound, time.monotonic() + time_limit)
    search.run()
    found = search.packing()
    if found is not None:
        patterns = found.patterns
        packing = _core.pack_by_patterns(
            lengths,
            capacity,
            options,
            patterns.offsets,
            patterns.items,
            patterns.copies,
            found.times,
        )
    return packing, search.lower_bound


@dataclass(frozen=True)
class Bins:
    """``times[p]`` bins of pattern p, which together hold every item of the stock once."""

    patterns: Patterns
    times: Longs

    @property
    def total(self) -> int:
        return int(self.times.sum())


class Search:
    """Looks for a packing of few bins, and for a bound above which none has fewer.

    Args:
        stock: units by size, at least one.
        bins: of the packing known so far.
        lower_bound: known so far.
        deadline: of ``time.monotonic()``.

    ``packing()`` is None until one of fewer than ``bins`` bins is found.
    """

    def __init__(
        self, highspy: Any, stock: Stock, bins: int, lower_bound: int, deadline: float
    ) -> None:
        self._highspy = highspy
        self._stock = stock
        self._deadline = deadline
        self._values = stock.sizes / stock.capacity  # of the best bound so far
        self._known = Patterns()  # of the bound so far, over all sizes
        self._random = np.random.default_rng(0)
        self.bins = bins
        self.lower_bound = lower_bound
        # Bins made, and the packing of the rest: its stock, and numbers of its sizes.
        self._best: tuple[list[Bins], _core.Packing, Stock, Longs] | None = None

    def run(self) -> None:
        sizes = len(self._stock)
        buckets = 128
        while not self._done():
            if sizes <= buckets or (buckets > 128 and sizes <= _EXACT):
                for _ in range(_ATTEMPTS):
                    self._plan(sizes)
                break
            self._raise_bound(buckets // 2)
            self._plan(buckets)
            buckets *= 2

    def _done(self) -> bool:
        return self.bins <= self.lower_bound or time.monotonic() > self._deadline

    def _raise_bound(self, knots: int) -> None:
        if self._done():
            return
        stock = self._stock
        chosen = divide(stock, self._values, knots)[:-1]
        chosen = np.union1d(chosen, [0, len(stock) - 1])
        rows = Rows.at(chosen, stock)
        part, part_rows = priced(stock, rows, chosen)
        found = generate(
            self._highspy,
            part,
            part_rows,
            self._values[chosen],
            known=self._known,
            # The plan needs time too.
            deadline=time.monotonic() + 0.4 * (self._deadline - time.monotonic()),
            tolerance=2e-5,
        )
        if len(part) == len(stock):
            self._known = found.patterns
        self._take_bound(rows.values(found.duals))

    def _take_bound(self, values: Floats) -> None:
        stock = self._stock
        # A limit that costs too many layers is left out: fewer limits, a lower bound.
        max_items = stock.max_items if stock.layers <= LAYERS else stock.capacity
        layers = stock.layers if stock.layers <= LAYERS else 1
        grid = max(len(stock) * stock.capacity * layers // (16 * CELLS), stock.capacity >> 20)
        bound = _core.dual_bound(
            stock.sizes, stock.counts, stock.capacity, max_items, values, max(grid, 1)
        )
        if bound >= self.lower_bound:
            self._values = values
            self.lower_bound = bound

    def _plan(self, buckets: int) -> None:
        """One packing, from this many buckets; kept if it is the best so far."""
        stock = self._stock
        exact = buckets >= len(stock)
        left = stock
        numbers = np.arange(len(stock))  # of the sizes left
        made: list[Bins] = []
        bins = 0
        while not self._done():
            starts = divide(left, self._values[numbers], buckets)
            found = self._relax(left, starts, self._values[numbers], bins)
            if not len(found.patterns):
                return
            filled, counts = self._fill(left, starts, found)
            made.append(
                Bins(
                    Patterns(
                        filled.patterns.offsets,
                        numbers[filled.patterns.items].astype(np.int32),
                        filled.patterns.copies,
                    ),
                    filled.times,
                )
            )
            bins += filled.total
            kept = counts > 0
            numbers = numbers[kept]
            left = Stock(left.sizes[kept], counts[kept], left.capacity, left.max_items)
            self._keep(made, bins, left, numbers)
            tokens = int(left.counts @ left.sizes.astype(np.int64))
            rest = tokens / left.capacity
            if not filled.total or bins + rest > self.bins - 1:
                return
            # What best-fit-decreasing loses on so few bins is less than what finer buckets bring.
            if not exact:
                if rest < bins / 1000:
                    return
                buckets = max(64, buckets // 2)

    def _relax(self, stock: Stock, starts: Longs, values: Floats, bins: int) -> Relaxation:
        exact = len(starts) == len(stock) + 1
        stand_in = merged(stock, starts)
        weights = np.add.reduceat(values * stock.counts, starts[:-1]) / stand_in.counts
        # What a part of the bins loses weighs as much as that part.
        share = float(stock.counts.sum() / self._stock.counts.sum())
        found = generate(
            self._highspy,
            stand_in,
            Rows.each(stand_in),
            weights,
            deadline=self._deadline,
            tolerance=min(2e-4 / share, 2e-3) if not exact else 1e-6,
        )
        if exact and not bins and np.isfinite(found.objective):
            self._take_bound(found.duals)
        return found

    def _fill(self, stock: Stock, starts: Longs, found: Relaxation) -> tuple[Bins, Longs]:
        """Bins from the templates, and the counts that are left."""
        times = _rounded(found.bins, len(starts) == len(stock) + 1, self._random)
        items_each = np.add.reduceat(found.patterns.copies, found.patterns.offsets[:-1])
        times[items_each > stock.max_items] = 0
        templates = found.patterns.where(times > 0)
        offsets, items, copies, made, left = _core.fill_templates(
            stock.sizes,
            stock.counts,
            stock.capacity,
            starts,
            templates.offsets,
            templates.items,
            templates.copies,
            times[times > 0],
            stock.capacity // 1024,
            max(0.01, self._deadline - time.monotonic()),
        )
        return Bins(Patterns(offsets, items, copies), made), left

    def _keep(self, made: list[Bins], bins: int, left: Stock, numbers: Longs) -> None:
        """Packs what is left by best-fit-decreasing, and keeps the packing if it is the best."""
        rest = _best_fit(left)
        if bins + rest.num_bins < self.bins:
            self.bins = bins + rest.num_bins
            self._best = [*made], rest, left, numbers

    def packing(self) -> Bins | None:
        """The best one that was found."""
        if self._best is None:
            return None
        made, rest, left, numbers = self._best
        places = np.searchsorted(-left.sizes, -rest.lengths)
        ones = np.ones(len(places), np.int32)
        patterns = Patterns(rest.bin_offsets, numbers[places].astype(np.int32), ones)
        return Bins(
            joined([*(part.patterns for part in made), patterns]),
            np.concatenate([*(part.times for part in made), np.ones(rest.num_bins, np.int64)]),
        )


def _rounded(bins: Floats, exact: bool, random: np.random.Generator) -> Longs:
    """Whole numbers of bins. Templates are rounded, as they are filled as far as they can be; of
    exact patterns or few bins the whole parts come first, then those next to a whole, with some
    luck, and the rest is planned again in between."""
    total = bins.sum()
    if total > 256 and not exact:
        return np.floor(bins + 0.5).astype(np.int64)
    times = np.floor(bins + 1e-6)
    if times.sum() < total / 8:
        first = np.argsort(times - bins + 0.3 * random.random(len(bins)))
        times[first[: max(1, int(total / 8))]] += 1
    return times.astype(np.int64)


def _best_fit(stock: Stock) -> _core.Packing:
    """The packing of best-fit-decreasing; lengths are sizes there."""
    options = _core.PackOptions(strategy="best_fit_decreasing", max_segments=stock.max_items)
    lengths = np.repeat(stock.sizes.astype(np.int64), stock.counts)
    return _core.pack(lengths, stock.capacity, options)
