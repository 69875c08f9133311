"""A line at the bottom of the terminal that a program's own output scrolls above.

The terminal does it: its scrolling region ends one row earlier. So the program keeps its standard
streams, with the terminal behind them, and nothing passes through us.
"""

from __future__ import annotations

import os
from typing import TextIO


class BottomLine:
    """Opened by the first `show`, closed by `close`. `stream` must be a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows = 0  # of the terminal when the region was set; 0: not open

    def show(self, text: str) -> None:
        """Writes the line, cut to the width of the terminal, wherever the cursor is now."""
        columns, rows = os.get_terminal_size(self._stream.fileno())
        if rows < 3:
            return
        out = ""
        if rows != self._rows:
            # One row down and up again: the cursor may stand in the row that is taken away.
            out += f"\033D\033[1A\0337\033[1;{rows - 1}r\0338"
            self._rows = rows
        # The cursor and its colours are kept, so one write between two of the program is unseen.
        out += f"\0337\033[{rows};1H\033[0m\033[2K{text[:columns]}\0338"
        self._write(out)

    def close(self) -> None:
        """Gives the row back, empty."""
        if self._rows:
            self._write(f"\0337\033[r\033[{self._rows};1H\033[2K\0338")
            self._rows = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
