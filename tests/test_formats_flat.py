"""llm.c and headerless files: the header or the declared dtype decides, nothing is guessed."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from shard_files import documents_of, llmc_bytes, write_megatron


def write(tmp_path, content, name="a.bin"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("dtype", "size"), [("uint16", 1_044), ("uint32", 1_064)])
def test_c46_the_header_tells_the_generation(tmp_path, dtype, size):
    largest = int(np.iinfo(dtype).max)
    tokens = [*range(9), largest]
    path = write(tmp_path, llmc_bytes(tokens, dtype))
    assert path.stat().st_size == size
    corpus = bf.open(path)
    assert documents_of(corpus) == [tokens]
    assert corpus[0].dtype == dtype
    assert corpus.info[0].format == "llm.c"


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("change", [-1024, -4, -2, -1, 1, 2, 4])
def test_c46_a_size_that_is_off_is_refused_with_both_sizes(tmp_path, dtype, change):
    content = llmc_bytes(range(10), dtype)
    size = len(content)
    content = content[:change] if change < 0 else content + bytes(change)
    path = write(tmp_path, content)
    words = f"{size + change} bytes" + (f", expected {size}" if size + change >= 1024 else "")
    with pytest.raises(bf.FormatError, match=words):
        bf.open(path, format="llm.c")


@pytest.mark.parametrize(
    ("magic", "version"),
    [(20240520, 2), (20240520, 7), (20240801, 1), (20240801, 0), (20240520, -1)],
)
def test_c46_another_version_is_refused(tmp_path, magic, version):
    path = write(tmp_path, llmc_bytes(range(10), magic=magic, version=version))
    with pytest.raises(bf.FormatError, match=f"magic {magic} version {version}"):
        bf.open(path)


@pytest.mark.parametrize("magic", [0, 20240522, -20240520, 20240802])
def test_c46_another_magic_is_refused(tmp_path, magic):
    path = write(tmp_path, llmc_bytes(range(10), magic=magic))
    with pytest.raises(bf.FormatError, match=f"magic {magic} version 1"):
        bf.open(path, format="llm.c")
    with pytest.raises(bf.FormatError, match="declare the dtype"):
        bf.open(path)


@pytest.mark.parametrize("count", [0, -1, -(2**31)])
def test_c46_a_count_of_nothing_is_refused(tmp_path, count):
    path = write(tmp_path, llmc_bytes(range(10), count=count))
    with pytest.raises(bf.FormatError, match=rf"counts {count} tokens.* holds 10 "):
        bf.open(path)


def test_s03_a_count_beyond_32_bits_is_refused_and_the_size_tells_it(tmp_path):
    tokens = 2**31 + 10
    path = write(tmp_path, llmc_bytes([], count=tokens - 2**32))
    os.truncate(path, 1024 + 2 * tokens)
    with pytest.raises(bf.FormatError, match=f"counts -2147483638 tokens.* holds {tokens} "):
        bf.open(path)


def test_c46_a_list_of_mixed_kinds_reads_each_by_its_own_header(tmp_path):
    files = [
        write(tmp_path, llmc_bytes([1, 2], "uint16"), "a.bin"),
        write(tmp_path, llmc_bytes([70_000, 3], "uint32"), "b.bin"),
        tmp_path / "c.npy",
        write_megatron(tmp_path / "d", [4, 5, 6], [1, 2], dtype="int32"),
    ]
    np.save(files[2], np.array([7, 8], np.int64))
    corpus = bf.open(files)
    assert documents_of(corpus) == [[1, 2], [70_000, 3], [7, 8], [4], [5, 6]]
    assert "llm.c + npy + megatron" in corpus.describe()
    assert documents_of(bf.open(tmp_path)) == documents_of(corpus)
    with pytest.raises(bf.FormatError, match="holds uint32, but dtype=uint16"):
        bf.open(files[:2], dtype="uint16")
    files.append(write(tmp_path, np.array([1, 2], np.uint16).tobytes(), "e.bin"))
    with pytest.raises(bf.FormatError, match=r"e\.bin: no header and no e\.idx"):
        bf.open(files)


@given(st.data())
@settings(max_examples=200)
def test_c46_a_damaged_header_is_refused_or_says_the_same(tmp_path_factory, data):
    dtype = data.draw(st.sampled_from(["uint16", "uint32"]))
    content = bytearray(llmc_bytes(range(10), dtype))
    at = data.draw(st.integers(0, 15))
    content[at] = data.draw(st.integers(0, 255))
    path = write(tmp_path_factory.mktemp("llmc"), bytes(content))
    try:
        corpus = bf.open(path, format="llm.c")
    except bf.FormatError:
        return
    assert documents_of(corpus) == [list(range(10))]
    assert corpus[0].dtype == dtype


def test_c47_an_undeclared_dtype_is_refused_with_those_that_fit(tmp_path):
    path = write(tmp_path, np.array([1, 70_000], np.uint32).tobytes())
    with pytest.raises(bf.FormatError, match=r"8 bytes fit uint8, .*uint16, .*uint32, .*int64"):
        bf.open(path)
    assert documents_of(bf.open(path, dtype="uint32")) == [[1, 70_000]]
    odd = write(tmp_path, bytes(6), "odd.bin")
    with pytest.raises(bf.FormatError, match=r"6 bytes fit uint8, int8, uint16, int16$"):
        bf.open(odd)


@pytest.mark.parametrize(
    "dtype", ["numpy.uint32", "uint31", "", "float32", "uint64", "bool", ">u2", "U4", object, 7]
)
def test_c47_an_unknown_dtype_is_an_error_and_never_a_default(tmp_path, dtype):
    path = write(tmp_path, bytes(8))
    with pytest.raises(bf.FormatError, match="expected one of uint8"):
        bf.open(path, dtype=dtype)


@pytest.mark.parametrize("dtype", ["uint16", np.uint16, np.dtype("uint16"), np.dtype("<u2")])
def test_c47_numpy_dtypes_are_known(tmp_path, dtype):
    path = write(tmp_path, np.array([1, 65_535], np.uint16).tobytes())
    assert documents_of(bf.open(path, dtype=dtype)) == [[1, 65_535]]


@pytest.mark.parametrize(("dtype", "size"), [("uint16", 7), ("uint32", 6), ("int64", 12)])
def test_c47_half_a_token_at_the_end_is_refused(tmp_path, dtype, size):
    path = write(tmp_path, bytes(size))
    with pytest.raises(bf.FormatError, match=f"{size} bytes are not a whole number of {dtype}"):
        bf.open(path, dtype=dtype)


def test_c47_a_length_beyond_16_bits_stays_what_it_is(tmp_path):
    tokens = np.arange(65_537, dtype=np.uint32)
    path = write(tmp_path, tokens.tobytes())
    assert bf.open(path, dtype="uint32").lengths.tolist() == [65_537]
    assert bf.open([tokens]).lengths.tolist() == [65_537]
    assert bf.open(write_megatron(tmp_path / "m", tokens % 9, [65_537])).lengths[0] == 65_537


def test_s04_an_index_decides_over_the_caller(tmp_path):
    prefix = write_megatron(tmp_path / "a", [5, 6, 7], [3], dtype="int32")
    with pytest.raises(bf.FormatError, match="holds int32"):
        bf.open(prefix.with_suffix(".bin"), dtype="uint16")


def test_an_empty_headerless_file_holds_no_document(tmp_path):
    corpus = bf.open([write(tmp_path, b""), write(tmp_path, b"\1\0", "b.bin")], dtype="uint16")
    assert documents_of(corpus) == [[1]]


def test_a_file_that_shrinks_is_a_read_error(tmp_path):
    path = write(tmp_path, bytes(1 << 16))
    corpus = bf.open(path, dtype="uint8")
    os.truncate(path, 4096)
    with pytest.raises(bf.ReadError, match=r"a\.bin"):
        corpus[0]


def test_a_file_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.bin")
    with pytest.raises(bf.FormatError, match="not a regular file"):
        bf.open(tmp_path / "pipe.bin", dtype="uint8")
    with pytest.raises(bf.FormatError, match="not a regular file"):
        bf.open(tmp_path / "pipe.bin", dtype="uint8", format="raw")


def test_a_name_that_is_no_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xe9.bin"
    with open(path, "wb") as file:
        file.write(b"\1\2\3")
    assert documents_of(bf.open(os.fsdecode(path), dtype="uint8")) == [[1, 2, 3]]
    with pytest.raises(bf.FormatError, match="not a whole number"):
        bf.open(os.fsdecode(path), dtype="uint16")
