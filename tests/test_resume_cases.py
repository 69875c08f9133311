"""Faults of resumes that other loaders had: hidden buffers, and states that grow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import brimful as bf
from stepped import make
from truth import all_pieces, pieces


def test_c78_a_window_of_documents_is_no_hidden_state(tmp_path: Path) -> None:
    """A state taken in the middle of a window goes on alike in the same loader and elsewhere."""
    lengths, how = [4] * 200, {"shuffle": True, "window": 100, "seq_len": 4}
    whole = all_pieces(make(lengths, **how))
    loader = make(lengths, **how)
    first = [pieces(batch)[0] for _, batch in zip(range(20), loader, strict=False)]
    state = json.dumps(loader.state_dict())
    loader.load_state_dict(json.loads(state))
    here = all_pieces(loader)
    (tmp_path / "state.json").write_text(state)
    program = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from stepped import make
from truth import all_pieces
loader = make({lengths!r}, **{how!r})
loader.load_state_dict(json.load(open({str(tmp_path / "state.json")!r})))
print(json.dumps(all_pieces(loader)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    elsewhere = [tuple(piece) for piece in json.loads(done.stdout)]
    assert first + here == first + elsewhere == whole
    assert len({document for document, _, _ in whole}) == 200


def test_c82_a_state_is_small_however_many_documents_there_are(tmp_path: Path) -> None:
    path = tmp_path / "tokens.bin"
    with path.open("wb") as file:
        file.truncate(10_000_000 * 8 * 2)
    tokens = np.memmap(path, np.uint16, "r").reshape(10_000_000, 8)
    loader = bf.DataLoader(bf.open(tokens), seq_len=64, shuffle=True, num_workers=0)
    sizes = []
    for _, batch in zip(range(50), loader, strict=False):
        state = loader.state_dict()
        assert state["step"] == batch.step + 1
        sizes.append(len(json.dumps(state)))
    assert max(sizes) < 2048
