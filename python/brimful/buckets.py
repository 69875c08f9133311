"""Fewer sizes than there are: neighbourhoods of sizes, and stocks that stand in for larger ones.

What pricing costs is its table, sizes x capacity; these functions choose what goes into it.
"""

from __future__ import annotations

import numpy as np

from brimful.column_generation import Floats, Longs, Rows, Stock

# Cells of the table that pricing fills, sizes x capacity x layers: bytes, and steps.
CELLS = 1 << 24
# A table with a layer for each item is affordable up to so many.
LAYERS = 64


def divide(stock: Stock, values: Floats, parts: int) -> Longs:
    """Divides the sizes into about so many neighbourhoods, [parts + 1] numbers of sizes from 0 on.

    They are narrow where there are many items, and where the values jump: half of the parts go by
    the span of sizes, half by how far the values are from being in proportion to them. Cube roots
    of density make the error of a linear piece the same everywhere.
    """
    sizes = len(stock)
    if sizes <= parts:
        return np.arange(sizes + 1)
    spans = -np.diff(stock.sizes.astype(np.float64))
    density = np.cbrt((stock.counts[:-1] + stock.counts[1:]) / spans)
    weights = spans * density
    weights /= weights.sum()
    jumps = np.abs(np.diff(values) + spans * values[0] / stock.sizes[0]) * density
    if jumps.sum() > 1e-9:
        weights = (weights + jumps / jumps.sum()) / 2
    places = np.concatenate(([0.0], np.cumsum(weights)))
    starts = np.searchsorted(places, np.linspace(0, places[-1], parts + 1)[1:-1])
    # The sizes on either side of a jump.
    steep = np.flatnonzero(weights > places[-1] / parts)
    starts = np.unique(np.concatenate(([0], starts, steep, steep + 1)))
    return np.append(starts[starts < sizes], sizes)


def priced(stock: Stock, rows: Rows, knots: Longs) -> tuple[Stock, Rows]:
    """As many of the sizes as pricing has time for, the knots among them."""
    if len(stock) * stock.capacity > CELLS:
        most = max(2 * len(knots), CELLS // 4 // stock.capacity)
        step = -(-len(stock) // most)
        chosen = np.union1d(knots, np.arange(0, len(stock), step))
        rows = rows.of(chosen)
        stock = Stock(stock.sizes[chosen], stock.counts[chosen], stock.capacity, stock.max_items)
    return _scaled(stock, stock.sizes.astype(np.float64), stock.capacity, 0.0), rows


def merged(stock: Stock, starts: Longs) -> Stock:
    """The buckets as sizes, each its mean; single sizes stay as they are."""
    counts = np.add.reduceat(stock.counts, starts[:-1])
    means = np.add.reduceat(stock.counts * stock.sizes.astype(np.float64), starts[:-1]) / counts
    merged = Stock(stock.sizes[starts[:-1]], counts, stock.capacity, stock.max_items)
    if len(merged) == len(stock):
        return _scaled(stock, means, stock.capacity, 0.0)
    # In finer units where there are few slots, and rounded up by less than a whole unit: means are
    # no more exact than that.
    return _scaled(merged, means, max(stock.capacity, 8192), 0.25)


def _scaled(stock: Stock, sizes: Floats, capacity: int, slack: float) -> Stock:
    """The stock with these sizes, rounded up, in at most ``capacity`` units a bin and as few as
    the table of pricing has room for."""
    max_items, layers = stock.max_items, stock.layers
    if layers > LAYERS:
        max_items, layers = stock.capacity, 1
    capacity = min(capacity, max(1024, CELLS // (len(stock) * layers)))
    units = np.ceil(sizes * (capacity / stock.capacity) - slack)
    return Stock(np.clip(units, 1, capacity).astype(np.int32), stock.counts, capacity, max_items)
