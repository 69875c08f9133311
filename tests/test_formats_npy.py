""".npy files: the header is obeyed, or the file refused."""

import io
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from shard_files import documents_of

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"]


def npy_bytes(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return file.getvalue()


def write(tmp_path, content):
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_c58_every_version_and_dtype(tmp_path, dtype, version):
    tokens = np.arange(10, dtype=dtype)
    tokens[-1] = np.iinfo(dtype).max
    corpus = bf.open(write(tmp_path, npy_bytes(tokens, version)))
    assert documents_of(corpus) == [tokens.tolist()]
    assert corpus[0].dtype == dtype


def test_c58_data_begin_behind_the_header(tmp_path):
    content = npy_bytes(np.arange(10, dtype="<u2"))
    assert len(content) == 148
    assert documents_of(bf.open(write(tmp_path, content))) == [list(range(10))]


def test_c58_big_endian_is_refused(tmp_path):
    path = write(tmp_path, npy_bytes(np.arange(10, dtype=">u2")))
    with pytest.raises(bf.FormatError, match=r"big-endian.*astype\('uint16'\)"):
        bf.open(path)


def test_c58_column_order_is_refused(tmp_path):
    path = write(tmp_path, npy_bytes(np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))))
    with pytest.raises(bf.FormatError, match="column by column"):
        bf.open(path)


def test_c58_a_matrix_holds_a_document_a_row(tmp_path):
    path = write(tmp_path, npy_bytes(np.arange(6, dtype=np.int32).reshape(2, 3)))
    corpus = bf.open(path, eos=1)
    assert documents_of(corpus) == [[0, 1, 2], [3, 4, 5]]
    assert "matrix rows" in corpus.describe()
    path = write(tmp_path, npy_bytes(np.array([[4, 9, 5]], np.int32)))
    assert documents_of(bf.open(path, eos=9)) == [[4, 9, 5]]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([{}], object), "O"),
        (np.zeros(3, np.float32), "f4"),
        (np.zeros(3, np.uint64), "u8"),
        (np.zeros(3, bool), "b1"),
        (np.zeros(3, "S2"), "S2"),
        (np.zeros(3, [("a", "<u2")]), "cannot be read"),
        (np.zeros((1, 1, 1), np.uint16), "3 dimensions"),
        (np.array(7, np.uint16), "0 dimensions"),
        (np.zeros((3, 0), np.uint16), "no columns"),
    ],
)
def test_c58_what_holds_no_documents_of_tokens_is_refused(tmp_path, array, words):
    path = write(tmp_path, npy_bytes(array))
    with pytest.raises(bf.FormatError, match=words):
        bf.open(path)


@pytest.mark.parametrize("change", [-140, -20, -1, 1, 2])
def test_c58_a_size_that_is_off_is_refused(tmp_path, change):
    content = npy_bytes(np.arange(10, dtype=np.uint16))
    content = content[:change] if change < 0 else content + bytes(change)
    with pytest.raises(bf.FormatError):
        bf.open(write(tmp_path, content))


def test_a_headerless_file_named_npy_is_refused_with_the_way_out(tmp_path):
    path = write(tmp_path, np.arange(100, dtype=np.uint16).tobytes())
    with pytest.raises(bf.FormatError, match='format="raw"'):
        bf.open(path)
    assert documents_of(bf.open(path, format="raw", dtype="uint16")) == [list(range(100))]


def test_a_declared_dtype_must_be_the_one_in_the_header(tmp_path):
    path = write(tmp_path, npy_bytes(np.arange(4, dtype=np.uint16)))
    assert len(bf.open(path, dtype=np.uint16)) == 1
    with pytest.raises(bf.FormatError, match="holds uint16, but dtype=uint32"):
        bf.open(path, dtype=np.uint32)


@given(st.data())
@settings(max_examples=500)
def test_c58_a_damaged_header_is_refused_or_read_as_numpy_reads_it(tmp_path_factory, data):
    array = np.arange(6, dtype=np.uint16)
    if data.draw(st.booleans()):
        array = array.reshape(2, 3)
    content = bytearray(npy_bytes(array, data.draw(st.sampled_from([(1, 0), (2, 0), (3, 0)]))))
    end = len(content) - array.nbytes
    interesting = [i for i in range(end) if content[i] != ord(" ")]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(interesting))
        content[at] = data.draw(
            st.one_of(st.integers(0, 255), st.sampled_from(list(b" 0123456789<>|=uif,()'TF:{}")))
        )
    path = write(tmp_path_factory.mktemp("npy"), bytes(content))
    try:
        corpus = bf.open(path)
    except bf.FormatError:
        return
    expected = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    assert documents_of(corpus) == np.atleast_2d(expected).tolist()
    assert corpus[0].dtype == expected.dtype


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }",
        "{'shape': (3,), 'fortran_order': False, 'descr': '<u2'}",
        '{"descr":"<u2","fortran_order":False,"shape":(3,)}',
        "{ 'descr' : '<u2' , 'fortran_order' : True , 'shape' : ( 3 , ) , }",
    ],
)
def test_c58_a_header_in_another_spelling(tmp_path, header):
    text = header.encode() + b"\n"
    content = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
    path = write(tmp_path, content + np.array([7, 8, 9], "<u2").tobytes())
    assert documents_of(bf.open(path)) == [[7, 8, 9]]
    assert documents_of(bf.open(path, eos=8)) == [[7, 8], [9]]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{}",
        "{'descr': '<u2', 'fortran_order': False}",
        "{'descr': '<u2', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)} 1",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775807, 2)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}",
    ],
)
def test_c58_a_header_that_is_no_plain_array_is_refused(tmp_path, header):
    text = header.encode()
    content = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
    with pytest.raises(bf.FormatError):
        bf.open(write(tmp_path, content + bytes(6)))


def test_c44_a_document_number_beyond_32_bits(tmp_path):
    rows = 2**31 + 5
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, 1)}}".encode()
    path = write(tmp_path, b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text)
    begin = path.stat().st_size
    os.truncate(path, begin + rows)
    with path.open("r+b") as file:
        file.seek(begin + rows - 1)
        file.write(b"\7")
    corpus = bf.open(path)
    assert len(corpus) == rows
    assert corpus[2**31 + 4].tolist() == [7]
    assert corpus[-2].tolist() == [0]
