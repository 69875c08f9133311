"""The progress bar: every batch passes through it, and each epoch ends with one line about it."""

import sys

import numpy as np
import torch

import brimful as bf
from truth import corpus_of, same


def test_every_batch_passes_and_an_epoch_ends_with_one_line(capsys):
    loader = bf.DataLoader(corpus_of([5, 30, 2, 8]), seq_len=16, num_workers=0)
    wanted = list(bf.DataLoader(corpus_of([5, 30, 2, 8]), seq_len=16, num_workers=0))
    found = list(bf.progress(loader))
    assert all(same(a, b) for a, b in zip(found, wanted, strict=True))
    line = " ".join(capsys.readouterr().err.split())
    assert f"epoch 0: {len(wanted)} batches, 45 tokens" in line
    assert "1 document split" in line
    list(bf.progress(loader, description="again"))
    line = " ".join(capsys.readouterr().err.split())
    assert f"again: {len(wanted)} batches, 45 tokens" in line, "of this epoch, not of both"


def test_a_break_ends_the_bar_and_says_how_far_it_came(capsys):
    loader = bf.DataLoader(bf.open([np.arange(4)] * 10), seq_len=4)
    bar = bf.progress(loader)
    next(bar)
    bar.close()
    assert "epoch 0: 1 batch, 4 tokens" in " ".join(capsys.readouterr().err.split())
    assert loader.state_dict()["cursor"]["bin"] == 1


def test_without_a_terminal_it_is_one_line_and_nothing_else(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    list(bf.progress(bf.DataLoader(corpus_of([5, 30, 2, 8]), seq_len=16), description="[run] 1"))
    written = capsys.readouterr().err
    assert written.startswith("[run] 1: 3 batches, 45 tokens (")
    assert written.endswith(" 1 document split\n")
    assert written.count("\n") == 1


def test_a_terminal_breaks_the_line_between_figures_only(capsys, monkeypatch):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    list(bf.progress(bf.DataLoader(corpus_of([5, 30, 2, 8]), seq_len=16)))
    written = capsys.readouterr().err
    lines = written[written.index("epoch 0: ") :].splitlines()
    assert len(lines) > 1
    assert all(line.endswith(",") and len(line) <= 40 for line in lines[:-1])
    assert lines[-1].endswith("1 document split")


def test_loaders_on_torchs_path_count_batches(capsys):
    def numbers():
        yield from range(6)

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return numbers()

    for dataset in (range(6), Stream()):
        loader = bf.DataLoader(dataset, 4)
        assert [len(batch) for batch in bf.progress(loader)] == [4, 2]
        line = " ".join(capsys.readouterr().err.split())
        assert line.startswith("epoch: 2 batches, stall 0.0")
    list(bf.progress(loader, description="again"))
    assert "again: 2 batches" in capsys.readouterr().err, "of this epoch, not of both"
