"""What a writer of shards refuses: tokens, masks and dtypes that do not fit. Nothing wraps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brimful as bf
from megatron_files import read_documents, read_pair


@pytest.mark.parametrize("dtype", ["numpy.uint32", "uint32", "float32", "token", None, "bool", ""])
def test_c47_unknown_dtype_is_never_a_default(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(bf.FormatError, match="uint16") as caught:
        bf.ShardWriter(tmp_path / "s", dtype=dtype)
    assert not (tmp_path / "s").exists()
    if dtype == "uint32":
        assert "int32 or int64" in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "tokens", "position", "value"),
    [
        ("uint16", [1, 70000], 1, 70000),
        ("uint16", [1, 2, -1], 2, -1),
        ("uint8", np.array([3, 256], np.uint16), 1, 256),
        ("int8", np.array([128], np.uint8), 0, 128),
        ("int16", np.array([0, 0, 40000], ">u2"), 2, 40000),
        ("int32", [2**31], 0, 2**31),
        ("int64", [0, 2**63], 1, 2**63),
        ("int64", np.array([2**64 - 1], np.uint64), 0, 2**64 - 1),
        ("int64", [5, 2**70], 1, 2**70),
        ("int64", [2**63, -1], 0, 2**63),
        ("uint16", np.arange(65537) + np.arange(65537) // 65536, 65536, 65537),
    ],
)
def test_c47_a_token_that_does_not_fit_is_refused(
    tmp_path: Path, dtype: str, tokens: Any, position: int, value: int
) -> None:
    info = np.iinfo(dtype)
    with bf.ShardWriter(tmp_path, dtype=dtype) as writer:
        writer.add([1])
        with pytest.raises(bf.FormatError) as caught:
            writer.add(tokens)
        with pytest.raises(bf.FormatError):
            writer.add_batch(tokens, [len(tokens)])
        writer.add([2])
    for part in ("document 1", f"token {position} is {value},", f"({info.min} to {info.max})"):
        assert part in str(caught.value)
    assert read_documents(tmp_path) == [[1], [2]]  # the writer goes on as if nothing had been


def test_c47_a_length_past_16_bits_stays(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path, dtype="uint8") as writer:
        writer.add(np.zeros(65537, np.int64))
    assert read_pair(tmp_path / "shard-00000")["lengths"].tolist() == [65537]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ([1, 2.0], "token 1 is 2.0 (float)"),
        ([1, None], "token 1 is None"),
        ([True, False], "bool"),
        (["a"], "<U1"),
        (np.array([1.0]), "float64"),
        (np.array([1.5], np.float16), "float16"),
        ([[1, 2], [3, 4]], "(2, 2)"),
        ([[1], [2, 3]], "document 0"),
        (np.int64(3), "()"),
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, tokens: Any, words: str) -> None:
    with bf.ShardWriter(tmp_path) as writer, pytest.raises(bf.FormatError) as caught:
        writer.add(tokens)
    assert words in str(caught.value)
    assert "document 0" in str(caught.value)


@pytest.mark.parametrize("mask", [[1], [1, 0, 1], [], [[1, 0]]])
def test_a_mask_of_another_length_names_the_document(tmp_path: Path, mask: Any) -> None:
    with bf.ShardWriter(tmp_path) as writer:
        writer.add([5])
        with pytest.raises(bf.FormatError, match="document 1: a loss mask of shape"):
            writer.add([1, 2], mask)


@pytest.mark.parametrize("mask", [[0, 2], [-1, 0], [0.0, 1.0], [257, 0], ["a", "b"]])
def test_a_mask_of_other_values_is_refused(tmp_path: Path, mask: Any) -> None:
    with (
        bf.ShardWriter(tmp_path) as writer,
        pytest.raises(bf.FormatError, match=r"expected .*0 .*1"),
    ):
        writer.add([1, 2], mask)


def test_add_batch_refuses_lengths_that_do_not_fit(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path) as writer:
        for lengths in ([1, 1], [4], [-1, 4], [], [2**70], [2**63, 3]):
            with pytest.raises(bf.FormatError, match="lengths sum"):
                writer.add_batch([1, 2, 3], lengths)
        with pytest.raises(bf.FormatError, match="document 1: token 0 is 70000"):
            writer.add_batch([1, 2, 70000], [2, 1])
        writer.add_batch([], [])
        writer.add_batch([], [0, 0])
    assert read_documents(tmp_path) == [[], []]
