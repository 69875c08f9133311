"""`brimful profile` in a terminal: its live display, Ctrl-C, and the program's own streams."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

import brimful as bf
from brimful.cli.bottom_line import BottomLine
from test_cli_profile_program import NUMBERS, command, environment

# The first terminal that a session's leader opens sends it signals.
TAKE_TERMINAL = """
import os, sys
os.open(os.ttyname(0), os.O_RDWR)
os.execv(sys.argv[1], sys.argv[1:])
"""


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def in_terminal(words: list[str], *, interrupt_at: str | None = None) -> str:
    """Runs it in a terminal of 24 x 80; what it shows, and at its end the exit code in brackets.

    Ctrl-C is typed, once, when the terminal shows `interrupt_at`.
    """
    terminal, theirs = pty.openpty()
    resize(terminal, 24, 80)
    variables = {**environment(), "TERM": "xterm-256color"}
    del variables["COLUMNS"]
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    started = [sys.executable, "-c", TAKE_TERMINAL, *words]
    running = subprocess.Popen(started, env=variables, start_new_session=True, **streams)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # it has ended
            break
        if not part:
            break
        seen += part
        if interrupt_at is not None and interrupt_at.encode() in seen:
            os.write(terminal, b"\x03")
            interrupt_at = None
    os.close(terminal)
    return f"{seen.decode()}[{running.wait()}]"


def plain(text: str) -> str:
    """Without what moves the cursor or colours."""
    return re.sub(r"\x1b(\[[\d;?]*[a-zA-Z]|[78D])", "", text)


@pytest.mark.slow
def test_a_live_line_below_the_programs_own_output(tmp_path: Path) -> None:
    train = tmp_path / "train.py"
    train.write_text(
        NUMBERS
        + "print('terminal', sys.stdout.isatty(), sys.stderr.isatty())\n"
        + "loader = make()\nbegan = time.monotonic()\n"
        + "while time.monotonic() - began < 2:\n    for batch in loader: time.sleep(0.01)\n",
        encoding="utf-8",
    )
    seen = in_terminal(command(sys.executable, train))
    assert "terminal True True" in seen
    assert re.search(r"brimful: batch \d+, .* tokens/s, .* full, stall .* %", plain(seen))
    assert seen.index("\x1b[1;23r") < seen.rindex("\x1b[r")  # the last row is taken, and given back
    assert seen.index("verdict: ") > seen.rindex("\x1b[r")
    assert seen.endswith("[0]")


def test_ctrl_c_reaches_the_program_once(tmp_path: Path) -> None:
    train = tmp_path / "train.py"
    train.write_text(
        NUMBERS
        + "import signal\ngot = []\nsignal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
        + "for batch in make(): pass\nprint('ready', flush=True)\n"
        + "while not got: time.sleep(0.01)\n"
        + "time.sleep(0.5)\nprint('interrupted', len(got))\nsys.exit(4)\n",
        encoding="utf-8",
    )
    seen = in_terminal(command(sys.executable, train), interrupt_at="ready")
    assert "interrupted 1\r\n" in seen
    assert "verdict: " in seen
    assert seen.endswith("[4]")


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    with bf.ShardWriter(tmp_path / "shards", dtype="int32") as writer:
        for length in range(1, 60):
            writer.add(np.arange(length, dtype=np.int32))
    return tmp_path / "shards"


@pytest.mark.slow
def test_drawing_is_shown_and_ctrl_c_ends_it_with_a_report(shards: Path) -> None:
    words = [sys.executable, "-m", "brimful.cli", "profile", str(shards), "--seq-len", "64"]
    seen = in_terminal([*words, "--steps", "100000", "--step-ms", "5"], interrupt_at="of 100,000")
    assert re.search(r"batch \d+ of 100,000, .* tokens/s, .* % full, stall", plain(seen))
    assert "verdict: " in seen
    assert seen.endswith("[130]")


def test_the_last_row_is_taken_once_and_again_where_the_terminal_changes() -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as stream:
        line = BottomLine(stream)
        resize(theirs, 24, 10)
        line.show("0123456789abc")
        line.show("second")
        resize(theirs, 30, 10)
        line.show("third")
        resize(theirs, 2, 10)
        line.show("no room")
        line.close()
        line.close()
        stream.write("~")
        stream.flush()
        written = ""
        while not written.endswith("~"):
            written += os.read(ours, 65536).decode()
    os.close(ours)
    assert written.count("\x1b[1;23r") == 1
    assert written.count("\x1b[1;29r") == 1
    assert written.count("\x1b[r") == 1
    assert written.count("\x1b7") == written.count("\x1b8")  # the cursor is always put back
    assert plain(written) == "0123456789secondthird~"
