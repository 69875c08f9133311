"""SIGBUS, which a cut file raises where it is mapped, beside others who handle it, too."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from programs import run

PROGRAM = """
    import faulthandler, mmap
    path = {path!r}
    def read():
        loader = bf.DataLoader(bf.open(path, dtype="uint16"), seq_len=1024, num_workers={workers})
        return sum(batch.num_tokens for batch in loader)
    whole = read()  # which installs the handler
    {others}
    iterator = iter(bf.DataLoader(bf.open(path, dtype="uint16"), seq_len=1024, num_workers=0))
    next(iterator)
{then}
"""
CUT_AND_READ = """
    os.truncate(path, 0)
    try:
        list(iterator)
    except bf.ReadError as error:
        print("read error", path in str(error))
"""
FOREIGN = """
    foreign = mmap.mmap(os.open(path, os.O_RDWR), 0)
    os.truncate(path, 0)
    print("before", flush=True)
    foreign[200_000]
"""
OTHERS = {
    "nobody": "",
    "the default put back": "signal.signal(signal.SIGBUS, signal.SIG_DFL)",
    "ignored": "signal.signal(signal.SIGBUS, signal.SIG_IGN)",
    "a handler of Python's": "signal.signal(signal.SIGBUS, lambda *_: print('handled'))",
    "faulthandler": "faulthandler.enable()",
}


def program(tmp_path: Path, others: str, then: str, workers: int = 0) -> str:
    path = tmp_path / "tokens.bin"
    np.arange(200_000, dtype=np.uint16).tofile(path)
    return PROGRAM.format(path=str(path), others=OTHERS[others], workers=workers, then=then)


@pytest.mark.parametrize("others", OTHERS)
def test_c59_a_cut_file_is_an_error_whoever_handles_the_signal_since(
    tmp_path: Path, others: str
) -> None:
    done = run(program(tmp_path, others, CUT_AND_READ))
    assert (done.returncode, done.stdout, done.stderr) == (0, "read error True\n", "")


@pytest.mark.parametrize("others", ["nobody", "the default put back", "faulthandler"])
def test_a_signal_that_is_not_brimfuls_ends_the_process_as_ever(
    tmp_path: Path, others: str
) -> None:
    done = run(program(tmp_path, others, FOREIGN, workers=2))
    assert done.returncode == -signal.SIGBUS
    assert done.stdout == "before\n"
    assert done.stderr.count("Bus error") == (others == "faulthandler")
