"""Draws the pictures of docs/profiling.md: parts of a profile's page, with numbers to refer to.

    python docs/draw_report.py report.html docs/pictures/

`report.html` is what `brimful.profile(...).report("report.html")` wrote. Needs chromium and pillow.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

WIDTH, TALLEST = 1000, 4000
MARK = """
.mark { display: inline-block; width: 26px; height: 26px; margin: 0 8px 0 0; border-radius: 13px;
        background: #000; color: #fff; font: 600 15px/26px sans-serif; text-align: center;
        letter-spacing: 0; vertical-align: 3px; }
figure > .mark, dl > .mark { float: left; }
"""
# What is shown, and marked in the order of the numbers.
PICTURES = {
    "report_verdict.png": (
        "<h1>",
        '<figure class="vessels">',
        "<h2>Where the time went",
        "<h2>What to change",
        "<h2>What you would gain",
    ),
    "report_steps.png": (
        "<h2>Over the steps",
        "<h2>One step",
        "<h2>Lengths",
        "<h2>Utilization by strategy",
    ),
}


def main(report: str, folder: str) -> None:
    page = Path(report).read_text()
    number = 0
    for name, parts in PICTURES.items():
        shown = page
        for part in parts:
            number += 1
            begin = part[: part.index(">") + 1]
            assert shown.count(part) == 1, f"{report} does not have {part} once"
            shown = shown.replace(part, f'{begin}<b class="mark">{number}</b>{part[len(begin) :]}')
        kept = [part.partition(">")[2] for part in parts if part.startswith("<h2>")]
        style = MARK + "footer { display: none } " + _hidden(page, kept)
        if "<h1>" not in parts:
            style += " header { display: none }"
        photograph(shown.replace("</head>", f"<style>{style}</style></head>"), Path(folder, name))


def _hidden(page: str, kept: list[str]) -> str:
    """Rules that leave out every section but those of these titles."""
    titles = [part.partition("<")[0] for part in page.split("<h2>")[1:]]
    assert set(kept) <= set(titles), f"{set(kept) - set(titles)} not among {titles}"
    return " ".join(
        f".page > section:nth-of-type({place}) {{ display: none }}"
        for place, title in enumerate(titles, 1)
        if title not in kept
    )


def photograph(page: str, target: Path) -> None:
    """Writes what a browser shows of a page, without the empty rows below it, in few colours."""
    with tempfile.TemporaryDirectory() as folder:
        html, png = Path(folder, "page.html"), Path(folder, "page.png")
        html.write_text(page)
        size = f"--window-size={WIDTH},{TALLEST}"
        browser = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", size]
        subprocess.run([*browser, f"--screenshot={png}", html.as_uri()], check=True)
        picture = Image.open(png).convert("RGB")
    blank = Image.new("RGB", picture.size, picture.getpixel((0, TALLEST - 1)))
    _, _, _, bottom = ImageChops.difference(picture, blank).getbbox() or (0, 0, 0, TALLEST)
    picture.crop((0, 0, WIDTH, min(bottom + 20, TALLEST))).quantize(256).save(target, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
