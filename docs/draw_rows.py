"""Draws docs/rows.svg: the first rows that a model sees, padded and packed, document by document.

    python docs/draw_rows.py SHARDS docs/rows.svg

SHARDS is the folder that `brimful demo --out SHARDS` writes. Every twentieth document is taken, in
the order of the files: enough to see, few enough to draw. A new shade is a new piece of a
document; grey is padding.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import brimful as bf

SEQ_LEN = 4096
EVERY = 20
WIDTH, ROW, BAR, GAP = (
    360,
    2.6,
    2,
    24,
)  # pixels: a row's width, height and bar; between the two pictures
SHADES = ("#1b6ca8", "#63a4d4", "#2f8f83", "#8cc7a1", "#d08c3f", "#e8bf7a")

Rows = list[list[int]]  # lengths in tokens of the pieces of each row


def packed(lengths: np.ndarray, strategy: str) -> Rows:
    plan = bf.pack(lengths, SEQ_LEN, strategy=strategy)
    return [piece.tolist() for piece in np.split(plan.lengths, plan.bin_offsets[1:-1])]


def draw(rows: Rows, left: int, title: str) -> list[str]:
    tokens = sum(sum(row) for row in rows)
    share = int(1e4 * tokens / (len(rows) * SEQ_LEN)) / 100
    label = f"{title}: {len(rows)} rows, {share:.2f} % tokens"
    lines = [f'<text x="{left}" y="16">{label}</text>']
    shade = 0
    for y, row in enumerate(rows):
        top = round(26 + y * ROW, 1)
        lines.append(f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{BAR}" fill="#e4e4e4"/>')
        begin = 0
        for length in row:
            x, width = left + WIDTH * begin / SEQ_LEN, WIDTH * length / SEQ_LEN
            box = f'x="{x:.1f}" y="{top}" width="{width:.1f}" height="{BAR}"'
            lines.append(f'<rect {box} fill="{SHADES[shade % len(SHADES)]}"/>')
            begin += length
            shade += 1
    return lines


def main(shards: str, out: str) -> None:
    lengths = bf.open(shards).lengths[::EVERY]
    left, right = packed(lengths, "pad"), packed(lengths, "best_fit_decreasing")
    height = round(26 + ROW * max(len(left), len(right)) + 6)
    width = 2 * WIDTH + 3 * GAP
    body = [
        *draw(left, GAP, "one document a row, padded"),
        *draw(right, 2 * GAP + WIDTH, "best_fit_decreasing"),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12" fill="#222">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
    )
    Path(out).write_text("\n".join([head, *body, "</svg>\n"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
