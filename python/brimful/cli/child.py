"""Runs a program as if it had been started by itself: its streams, its signals, its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

_PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
_KEYS = (signal.SIGINT, signal.SIGQUIT)  # which a terminal sends to all that run in front of it


def run_child(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    tick: Callable[[], None],
    seconds: float,
) -> int:
    """Runs it to its end and returns its exit code, 128 + n where signal n ended it, as shells do.

    `tick` is called every `seconds` meanwhile. Ctrl-C reaches the program from the terminal; what
    becomes of it is the program's decision, and this waits for it. Signals that only this process
    gets are passed on. What this process ignores, the program ignores too.

    Raises:
        OSError: there is no such program, or it cannot be executed.
    """
    child = subprocess.Popen(command, env=dict(environment))

    def pass_on(number: int, frame: object) -> None:
        if number not in _KEYS or not _in_front_of_terminal():
            child.send_signal(number)

    before = {
        number: signal.signal(number, pass_on)
        for number in _PASSED_ON
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        while True:
            try:
                code = child.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                tick()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _in_front_of_terminal() -> bool:
    """Whether the keys of a terminal send signals to this process, and so to its child."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
