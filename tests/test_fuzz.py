"""Damaged files: every reader gives the tokens that are there or a typed error, nothing else.

`BRIMFUL_FUZZ` sets the number of examples of each test, for longer runs by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import manifest
from shard_files import MEGATRON_CODES, llmc_bytes, megatron_index

EXAMPLES = int(os.environ.get("BRIMFUL_FUZZ", "400"))
# What may be said of a file; anything else, from KeyError to the end of the process, is a defect.
ERRORS = (bf.FormatError, bf.ReadError, FileNotFoundError)

fuzz = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
# Numbers that break arithmetic: ends of types, and small ones around zero.
numbers = st.sampled_from(
    [0, 1, 2, 3, 34, *(2**n + d for n in (15, 16, 31, 32, 62, 63) for d in (-1, 0)), 2**64 - 1]
)


@st.composite
def damaged(draw: Any, content: bytes) -> bytes:
    """The content with a few bytes changed, numbers put in, cut, or grown."""
    data = bytearray(content)
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["byte", "number", "cut", "grow", "swap"]))
        at = draw(st.integers(0, len(data)))
        if kind == "byte" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif kind == "number":
            size = draw(st.sampled_from([1, 2, 4, 8]))
            number = draw(numbers) % 2 ** (8 * size)
            data[at : at + size] = number.to_bytes(size, "little")
        elif kind == "cut":
            del data[at:]
        elif kind == "grow":
            data += draw(st.binary(max_size=16))
        else:
            other = draw(st.integers(0, len(data)))
            data[at : at + 8], data[other : other + 8] = data[other : other + 8], data[at : at + 8]
    return bytes(data)


def read_all(source: Any, **arguments: Any) -> None:
    """Opens and reads everything; what opens must agree with itself."""
    try:
        corpus = bf.open(source, **arguments)
    except ERRORS:
        return
    lengths = corpus.lengths
    assert int(lengths.sum()) == corpus.num_tokens
    assert (lengths >= 0).all()
    assert [len(corpus[i]) for i in range(min(len(corpus), 50))] == lengths[:50].tolist()
    for io in ("mmap", "pread"):
        loader = bf.DataLoader(corpus, seq_len=8, num_workers=0, window=64, io=io)
        tokens = 0
        try:
            for batch in loader:
                tokens += batch.num_tokens
        except ERRORS:
            return  # a loss mask whose counts are not its own
        assert tokens + loader.stats().bad_tokens == corpus.num_tokens


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.filterwarnings("ignore:a bad document")
@fuzz
@given(
    data=st.data(),
    dtype=st.sampled_from(sorted(MEGATRON_CODES)),
    rows=st.sampled_from(["documents", "sequences"]),
    part=st.sampled_from([".idx", ".bin", ".loss.bin"]),
)
def test_megatron_files(folder, data, dtype, rows, part):
    lengths = data.draw(st.lists(st.integers(0, 9), max_size=8))
    count = len(lengths)
    cuts = data.draw(st.lists(st.integers(0, count), max_size=3).map(sorted))
    documents = [0, *cuts, count]
    counts = np.maximum(np.add.reduceat([*lengths, 0], documents[:-1]), 1) - 1
    files = {
        ".idx": megatron_index(lengths, documents, MEGATRON_CODES[dtype]),
        ".bin": np.arange(sum(lengths)).astype(dtype).tobytes(),
        ".loss.bin": bytes([1] * sum(lengths)) + counts.astype("<i8").tobytes(),
    }
    files[part] = data.draw(damaged(files[part]))
    if part != ".loss.bin":
        files[".loss.bin"] = b""
    for suffix, content in files.items():
        (folder / f"m{suffix}").write_bytes(content)
    read_all(folder / "m", rows=rows, loss_masks=part == ".loss.bin")


@fuzz
@given(data=st.data(), dtype=st.sampled_from(["uint16", "uint32"]))
def test_llmc_files(folder, data, dtype):
    content = data.draw(damaged(llmc_bytes(range(20), dtype)))
    (folder / "l.bin").write_bytes(content)
    read_all(folder / "l.bin", format="llm.c", eos=data.draw(st.sampled_from([None, 3])))


@pytest.mark.filterwarnings("ignore:a bad document")
@fuzz
@given(data=st.data(), shape=st.sampled_from([(12,), (4, 3), (0,), (3, 0), (1, 12)]))
def test_npy_files(folder, data, shape):
    path = folder / "n.npy"
    np.save(
        path,
        np.arange(np.prod(shape), dtype=data.draw(st.sampled_from(["<u2", "<i4"]))).reshape(shape),
    )
    content = path.read_bytes()
    header = data.draw(damaged(content[:128]))
    path.write_bytes(header + content[128:])
    read_all(path, format="npy")


@pytest.mark.filterwarnings("ignore:a bad document")
@fuzz
@given(data=st.data(), dtype=st.sampled_from(["uint8", "int16", "int64"]))
def test_headerless_files(folder, data, dtype):
    (folder / "r.bin").write_bytes(data.draw(st.binary(max_size=200)))
    eos = data.draw(
        st.one_of(
            st.none(), st.tuples(st.sampled_from(["end", "start", "pair"]), st.integers(0, 9))
        )
    )
    read_all(folder / "r.bin", format="raw", dtype=dtype, eos=eos)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=4), st.floats()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=4,
)


def change(draw: Any, value: Any) -> Any:
    """A JSON value with one place of it changed."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 3)) == 0:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: change(draw, value[key])}
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], change(draw, value[at]), *value[at + 1 :]]
    return draw(json_values)


@fuzz
@given(data=st.data(), as_text=st.booleans())
def test_manifests(folder, data, as_text):
    shards = folder / "shards"
    if not shards.exists():
        with bf.ShardWriter(shards, dtype="uint16") as writer:
            for n in (3, 0, 5):
                writer.add(np.arange(n), loss_mask=[1] * n)
        (folder / "manifest").write_bytes((shards / "manifest.json").read_bytes())
    good = (folder / "manifest").read_bytes()
    bad = (
        data.draw(damaged(good))
        if as_text
        else json.dumps(change(data.draw, json.loads(good))).encode()
    )
    (shards / "manifest.json").write_bytes(bad)
    read_all(shards)
    with contextlib.suppress(*ERRORS, bf.PlanError):
        manifest.check(shards)
        bf.DataLoader(shards, seq_len=4, num_workers=0, verify="checksum")
