"""Megatron .bin/.idx: units, checks at open, loss masks."""

import os
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful.repair import rebuild_pointers
from shard_files import MEGATRON_CODES, documents_of, megatron_index, write_megatron


@given(st.data())
@settings(max_examples=60)
def test_documents_and_sequences_are_units(tmp_path_factory, data):
    dtype = data.draw(st.sampled_from(sorted(MEGATRON_CODES)))
    lengths = data.draw(st.lists(st.integers(0, 5), max_size=10))
    cuts = data.draw(st.lists(st.integers(0, len(lengths)), max_size=6))
    documents = [0, *sorted(cuts), len(lengths)] if lengths or cuts else [0]
    tokens = np.arange(sum(lengths)) % 120
    prefix = write_megatron(
        tmp_path_factory.mktemp("shard") / "a", tokens, lengths, documents, dtype
    )
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    sequences = [tokens[a:b].tolist() for a, b in pairwise(ends)]
    by_sequence = bf.open(prefix, rows="sequences")
    assert documents_of(by_sequence) == sequences
    assert by_sequence.lengths.tolist() == lengths
    by_document = bf.open(prefix)
    expected = [tokens[ends[a] : ends[b]].tolist() for a, b in pairwise(documents)]
    assert documents_of(by_document) == expected
    assert by_document.lengths.tolist() == [len(d) for d in expected]
    assert by_document.num_tokens == by_sequence.num_tokens == len(tokens)
    assert all(document.dtype == dtype for document in by_document)
    assert by_document.info[0].unit == "documents"
    assert by_sequence.info[0].unit == "sequences"


@pytest.mark.parametrize("suffix", ["", ".bin", ".idx"])
def test_a_pair_has_three_names(tmp_path, suffix):
    prefix = write_megatron(tmp_path / "data.v1", [1, 2, 3], [2, 1])
    assert documents_of(bf.open(f"{prefix}{suffix}")) == [[1, 2], [3]]


def write_index(tmp_path, index, bin_bytes):
    (tmp_path / "a.bin").write_bytes(bin_bytes)
    (tmp_path / "a.idx").write_bytes(index)
    return tmp_path / "a.bin"


def test_c42_pointers_beyond_32_bits(tmp_path):
    lengths = [400_000_000] * 3
    path = write_index(tmp_path, megatron_index(lengths, [0, 1, 2, 3], 4), b"")
    os.truncate(path, 4_800_000_000)
    with path.open("r+b") as file:
        file.seek(3_200_000_000)
        file.write(np.array([77], np.int32).tobytes())
    corpus = bf.open(path)
    assert corpus.lengths.tolist() == lengths
    assert corpus[2][0] == 77
    assert corpus[1][-1] == 0
    assert corpus.num_tokens == 1_200_000_000


@pytest.mark.parametrize(
    ("pointers", "bad", "found", "expected"),
    [
        ([0, 1_600_000_000, 3_200_000_000 - 2**32], 2, -1_094_967_296, 3_200_000_000),
        ([0, 1_600_000_000, 3_200_000_004], 2, 3_200_000_004, 3_200_000_000),
        ([0, 1_600_000_000 + 2**32, 3_200_000_000], 1, 1_600_000_000 + 2**32, 1_600_000_000),
        ([4, 1_600_000_004, 3_200_000_004], 0, 4, 0),
        ([-4, 1_600_000_000, 3_200_000_000], 0, -4, 0),
    ],
)
def test_c42_the_first_wrong_pointer_is_named(tmp_path, pointers, bad, found, expected):
    index = megatron_index([400_000_000] * 3, [0, 1, 2, 3], 4, pointers)
    path = write_index(tmp_path, index, b"")
    os.truncate(path, 4_800_000_000)
    with pytest.raises(bf.FormatError, match=f"pointer {bad} is {found}, expected {expected}"):
        bf.open(path)


def test_c42_pointers_are_rebuilt_on_request(tmp_path):
    lengths = [400_000_000] * 3
    right = megatron_index(lengths, [0, 1, 2, 3], 4)
    wrapped = megatron_index(lengths, [0, 1, 2, 3], 4, [0, 1_600_000_000, -1_094_967_296])
    path = write_index(tmp_path, wrapped, b"")
    os.truncate(path, 4_800_000_000)
    assert rebuild_pointers(tmp_path / "a.idx") == 1
    assert (tmp_path / "a.idx").read_bytes() == right
    assert bf.open(path).lengths.tolist() == lengths
    assert rebuild_pointers(tmp_path / "a.idx") == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.bin", "a.idx"]


@pytest.mark.parametrize(
    ("index", "size"),
    [
        (megatron_index([4, 3], [0, 2], 8), 16),
        (megatron_index([4, -3], [0, 2], 8), 2),
        (megatron_index([4, 3], [0, 2], 7), 14),
        (megatron_index([4, 3], [0, 2], 8)[:-1], 14),
        (megatron_index([4, 3], [0, 2], 8, version=2), 14),
        (b"MMIDIDX", 0),
    ],
)
def test_c42_an_index_that_does_not_tell_is_not_rebuilt(tmp_path, index, size):
    write_index(tmp_path, index, bytes(size))
    with pytest.raises(bf.FormatError, match=r"a\.idx"):
        rebuild_pointers(tmp_path / "a.idx")
    assert (tmp_path / "a.idx").read_bytes() == index


@given(st.lists(st.integers(0, 9), min_size=2, max_size=300), st.data())
@settings(max_examples=60)
def test_c42_any_wrong_pointer_is_found(tmp_path_factory, lengths, data):
    pointers = np.concatenate([[0], np.cumsum(np.array(lengths) * 2)[:-1]])
    bad = data.draw(st.integers(0, len(lengths) - 1))
    pointers[bad] += data.draw(st.sampled_from([-(2**62), -(2**32), -2, -1, 1, 2, 2**31, 2**62]))
    index = megatron_index(lengths, [0, len(lengths)], 8, pointers)
    path = write_index(tmp_path_factory.mktemp("shard"), index, bytes(2 * sum(lengths)))
    with pytest.raises(bf.FormatError, match=f"pointer {bad} is"):
        bf.open(path)


@pytest.mark.parametrize("size", [0, 22, 23, 25, 26, 1 << 20])
def test_c42_the_end_of_the_index_is_the_size_of_the_tokens(tmp_path, size):
    path = write_index(tmp_path, megatron_index([4, 3, 5], [0, 1, 3], 8), bytes(size))
    with pytest.raises(bf.FormatError, match=f"{size} bytes, but .* describes 24"):
        bf.open(path)


def test_a_negative_length_is_named(tmp_path):
    path = write_index(tmp_path, megatron_index([4, -3, 5], [0, 3], 8), bytes(12))
    with pytest.raises(bf.FormatError, match="sequence 1 has length -3"):
        bf.open(path)


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ([0, 1, 2], "ends with 2, but there are 3"),
        ([0, 1, 4], "ends with 4, but there are 3"),
        ([0], "ends with 0, but there are 3"),
        ([1, 3], "begins with 1, expected 0"),
        ([0, 2, 1, 3], "document entry 2 is 1 after 2"),
        ([0, 9, 3], "document entry 2 is 3 after 9"),
        ([0, -1, 3], "document entry 1 is -1 after 0"),
        ([], "an empty document index"),
    ],
)
@pytest.mark.parametrize("rows", ["documents", "sequences"])
def test_c43_the_document_index_is_checked(tmp_path, documents, words, rows):
    path = write_index(tmp_path, megatron_index([4, 3, 5], documents, 8), bytes(24))
    with pytest.raises(bf.FormatError, match=words):
        bf.open(path, rows=rows)


def test_c43_documents_of_several_sequences(tmp_path):
    tokens = np.arange(12)
    prefix = write_megatron(tmp_path / "p", tokens, [4, 3, 5], [0, 1, 3])
    assert bf.open(prefix).lengths.tolist() == [4, 8]
    assert bf.open(prefix, rows="sequences").lengths.tolist() == [4, 3, 5]
    assert "sequences" in bf.open(prefix, rows="sequences").describe()


@pytest.mark.parametrize(
    ("code", "dtype"), [(1, "u1"), (2, "i1"), (3, "i2"), (4, "i4"), (5, "i8"), (8, "u2")]
)
def test_c45_every_integer_code_is_read(tmp_path, code, dtype):
    largest = int(np.iinfo(dtype).max)
    tokens = np.array([1, largest, 0], dtype)
    path = write_index(tmp_path, megatron_index([3], [0, 1], code), tokens.tobytes())
    corpus = bf.open(path)
    assert corpus[0].tolist() == [1, largest, 0]
    assert corpus[0].dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("code", "words"),
    [(6, "float64"), (7, "float32"), (0, "unknown"), (9, "unknown"), (255, "unknown")],
)
def test_c45_other_codes_are_refused(tmp_path, code, words):
    path = write_index(tmp_path, megatron_index([3], [0, 1], code), bytes(24))
    with pytest.raises(bf.FormatError, match=rf"a\.idx: dtype code {code} is {words}"):
        bf.open(path)


def test_s02_unaligned_arrays_and_an_empty_sequence(tmp_path):
    index = megatron_index([4, 0, 3], [0, 1, 2, 3], 8)
    assert len(index) == 102
    assert struct.unpack_from("<3q", index, 46) == (0, 8, 8)
    path = write_index(tmp_path, index, np.arange(7, dtype=np.uint16).tobytes())
    for rows in ("documents", "sequences"):
        corpus = bf.open(path, rows=rows)
        assert documents_of(corpus) == [[0, 1, 2, 3], [], [4, 5, 6]]


def test_s04_a_declared_dtype_never_overrides_the_index(tmp_path):
    prefix = write_megatron(tmp_path / "a", [1, 2, 3], [3], dtype="int32")
    assert bf.open(prefix, dtype="int32")[0].tolist() == [1, 2, 3]
    with pytest.raises(bf.FormatError, match="holds int32, but dtype=uint16"):
        bf.open(prefix, dtype="uint16")


def test_s04_tokens_of_another_size_than_the_index_says_are_refused(tmp_path):
    path = write_index(
        tmp_path, megatron_index([3], [0, 1], 8), np.arange(3, dtype=np.uint32).tobytes()
    )
    with pytest.raises(bf.FormatError, match=r"12 bytes, but .* describes 6"):
        bf.open(path)


@pytest.mark.parametrize("missing", [".bin", ".idx"])
def test_half_a_pair_is_an_absent_file(tmp_path, missing):
    prefix = write_megatron(tmp_path / "a", [1], [1])
    (tmp_path / f"a{missing}").unlink()
    with pytest.raises(FileNotFoundError, match=f"a{missing}"):
        bf.open(prefix, format="megatron")


@given(st.data())
@settings(max_examples=300)
def test_a_damaged_index_is_refused_or_says_the_same(tmp_path_factory, data):
    """Any bytes changed, cut or added: a typed error, or a consistent corpus of the same tokens."""
    index = bytearray(megatron_index([2, 0, 3], [0, 1, 3], 8))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(index) - 1))
        index[at] = data.draw(st.integers(0, 255))
    index = index[: data.draw(st.integers(0, len(index)))] if data.draw(st.booleans()) else index
    index += data.draw(st.sampled_from([b"", b"", b"\0", bytes(8)]))
    tokens = np.arange(5, dtype=np.uint16)
    path = write_index(tmp_path_factory.mktemp("shard"), bytes(index), tokens.tobytes())
    try:
        corpus = bf.open(path)
    except bf.FormatError:
        return
    assert b"".join(d.tobytes() for d in corpus) == tokens.tobytes()


def write_loss(tmp_path, mask, counts):
    content = np.array(mask, np.uint8).tobytes() + np.array(counts, "<i8").tobytes()
    (tmp_path / "a.loss.bin").write_bytes(content)


def test_a_loss_mask_lies_beside_its_tokens(tmp_path):
    prefix = write_megatron(tmp_path / "a", [1, 2, 3, 4, 5], [3, 2])
    assert bf.open(prefix).info[0].loss_masks == "none"
    with pytest.raises(FileNotFoundError, match=r"a\.loss\.bin"):
        bf.open(prefix, loss_masks=True)
    write_loss(tmp_path, [1, 0, 1, 1, 1], [1, 1])
    assert bf.open(prefix).info[0].loss_masks == "all"
    assert bf.open(prefix, loss_masks=True).info[0].loss_masks == "all"
    assert bf.open(prefix, loss_masks=False).info[0].loss_masks == "none"
    assert bf.open(prefix, rows="sequences").info[0].loss_masks == "all"
    assert len(bf.open(tmp_path)) == len(bf.open(f"{tmp_path}/*.bin")) == 2


@pytest.mark.parametrize(
    ("mask", "counts", "words"),
    [
        ([1] * 5, [1], "13 bytes, expected 21"),
        ([1] * 4, [1, 1], "20 bytes, expected 21"),
        ([], [], "0 bytes, expected 21"),
        ([1] * 5, [3, 1], "document 0 counts 3 effective tokens, expected 0 to 2"),
        ([1] * 5, [0, -1], "document 1 counts -1"),
    ],
)
def test_a_loss_mask_that_does_not_fit_is_refused(tmp_path, mask, counts, words):
    prefix = write_megatron(tmp_path / "a", [1, 2, 3, 4, 5], [3, 2])
    write_loss(tmp_path, mask, counts)
    with pytest.raises(bf.FormatError, match=words):
        bf.open(prefix)
