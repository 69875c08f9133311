"""The construction of block masks once more, in Python, with mistakes to order: what the tests of
block masks must notice.
"""

from __future__ import annotations

import itertools
from typing import Any

from mask_truth import Lists

MISTAKES = (
    "full from the block that a document begins in",
    "full up to the block of the first query",
    "the last block is whole to queries",
    "the last block is whole to keys",
    "one document where two meet",
    "a document of no slots covers one",
    "window one key too far",
    "window from the last query",
    "full one key beyond the window",
    "window forgotten by keys",
    "window forgotten by full keys",
    "prefix forgotten by queries",
    "prefix of the last document forgotten by queries",
    "prefix forgotten by keys",
    "prefix of the first document for the last one's keys",
    "prefix beyond its document",
    "full up to the block that a prefix ends in",
    "full blocks are partial too",
    "blocks of keys for blocks of queries",
)


def up(slot: int, size: int) -> int:
    return -(-slot // size)


def build(
    cu: Any, q: int, kv: int, window: int | None, prefixes: Any, mistake: str = ""
) -> tuple[Lists, ...]:
    """Partial and full lists of queries, then of keys. `mistake` is one of MISTAKES, or none."""
    is_made = mistake.__eq__
    slots = int(cu[-1])
    far = slots + 1 if window is None else window

    def covering(slot: int) -> tuple[int, int, int]:
        """Where the document of a slot begins and ends, and where its prefix ends."""
        for i, (begin, end) in enumerate(itertools.pairwise(cu)):
            empty = is_made("a document of no slots covers one") and begin == end == slot
            if begin <= slot < end or empty:
                prefix = begin + (0 if prefixes is None else prefixes[i])
                over = is_made("prefix beyond its document")
                return int(begin), int(end), int(prefix if over else min(prefix, end))
        raise AssertionError(slot)

    def met_by_queries(r0: int, r1: int) -> tuple[set[int], set[int]]:
        first, last = covering(r0), covering(r1 - 1)
        alone = first[0] == last[0] or is_made("one document where two meet")
        oldest = (r1 if is_made("window from the last query") else r0 + 1) - far
        oldest -= is_made("window one key too far")
        end = r1 if alone else max(r1, last[2])
        if is_made("prefix of the last document forgotten by queries"):
            end = r1
        met = set(range(max(first[0], oldest) // kv, up(end, kv)))
        if first[2] > first[0] and not is_made("prefix forgotten by queries"):
            met |= set(range(first[0] // kv, up(first[2], kv)))
        full: set[int] = set()
        if alone and (r1 - r0 == q or is_made("the last block is whole to queries")):
            begin = first[0] // kv * kv if is_made(MISTAKES[0]) else first[0]
            near = r1 - far - is_made("full one key beyond the window")
            if first[2] <= r1 - 1 - far + is_made("full one key beyond the window"):
                begin = max(begin, near)
            rounded = is_made("full up to the block of the first query")
            full = set(range(up(begin, kv), up(r0 + 1, kv) if rounded else (r0 + 1) // kv))
            rounded = is_made("full up to the block that a prefix ends in")
            full |= set(range(up(first[0], kv), up(first[2], kv) if rounded else first[2] // kv))
        return met, full

    def met_by_keys(c0: int, c1: int) -> tuple[set[int], set[int]]:
        first, last = covering(c0), covering(c1 - 1)
        asked = first if is_made("prefix of the first document for the last one's keys") else last
        reach = slots + 1 if is_made("window forgotten by keys") else far
        end = last[1] if max(c0, asked[0]) < asked[2] else min(last[1], c1 - 1 + reach)
        begin = first[0] if c0 < first[2] else c0
        if is_made("prefix forgotten by keys"):
            begin, end = c0, min(last[1], c1 - 1 + reach)
        size = kv if is_made("blocks of keys for blocks of queries") else q
        met = set(range(begin // size, up(end, size)))
        full: set[int] = set()
        whole = c1 - c0 == kv or is_made("the last block is whole to keys")
        if first[0] == last[0] and whole:
            reach = slots + 1 if is_made("window forgotten by full keys") else far
            seen_to = first[1] if c1 <= first[2] else min(first[1], max(c0, first[2]) + reach)
            seen_from = first[0] if c1 <= first[2] else c1 - 1
            full = set(range(up(seen_from, size), seen_to // size))
        return met, full

    def split(pairs: list[tuple[set[int], set[int]]]) -> tuple[Lists, Lists]:
        keep = is_made("full blocks are partial too")
        partial = [sorted(met if keep else met - full) for met, full in pairs]
        return partial, [sorted(full) for _, full in pairs]

    rows = [met_by_queries(at, min(at + q, slots)) for at in range(0, slots, q)]
    columns = [met_by_keys(at, min(at + kv, slots)) for at in range(0, slots, kv)]
    return *split(rows), *split(columns)
