"""Documents told apart by a token id, and the cache of where they end."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import boundaries
from shard_files import documents_of, llmc_bytes, write_megatron

E = 9


def cut_plainly(tokens, rule, token):
    """The rules, word by word: a document ends behind an end, and begins at a start."""
    documents = [[]]
    is_open = False
    for t in tokens:
        starts = t == token and (rule == "start" or (rule == "pair" and not is_open))
        ends = t == token and (rule == "end" or (rule == "pair" and is_open))
        is_open = is_open != (t == token)
        if starts:
            documents.append([])
        documents[-1].append(t)
        if ends:
            documents.append([])
    return [document for document in documents if document]


@given(
    st.lists(st.integers(0, 3), max_size=300),
    st.sampled_from(["end", "start", "pair"]),
    st.sampled_from(["uint8", "int16", "uint16", "uint32", "int64"]),
)
@settings(max_examples=200)
def test_c31_each_rule_and_dtype(tokens, rule, dtype):
    corpus = bf.open(np.array(tokens, dtype), eos=(rule, 2))
    assert documents_of(corpus) == cut_plainly(tokens, rule, 2)
    assert corpus.info[0].boundaries == f"{rule} token 2"


@given(st.data())
@settings(max_examples=20)
def test_c31_many_tokens_at_any_alignment(tmp_path_factory, data):
    """Longer than a piece of the scan, with any number of bytes of header before the tokens."""
    n = data.draw(st.integers(65_000, 200_000))
    places = data.draw(st.lists(st.integers(0, n - 1), max_size=30))
    tokens = np.full(n, 7, np.uint32)
    tokens[places] = E
    spaces = data.draw(st.integers(0, 9))
    text = f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({n},)}}".encode() + b" " * spaces
    path = tmp_path_factory.mktemp("eos") / "a.npy"
    header = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
    path.write_bytes(header + tokens.tobytes())
    ends = sorted({0, n, *(place + 1 for place in places)})
    assert bf.open(path, eos=E).lengths.tolist() == np.diff(ends).tolist()


def test_c31_the_end_token_belongs_to_the_document_it_ends():
    corpus = bf.open(np.array([4, 9, 5, 6, 9, 7]), eos=9)
    assert documents_of(corpus) == [[4, 9], [5, 6, 9], [7]]
    assert documents_of(bf.open(np.array([4, 9]), eos=("end", 9))) == [[4, 9]]


def test_c31_a_start_token_belongs_to_the_document_it_begins():
    corpus = bf.open(np.array([1, 3, 3, 3, 1, 3, 3]), eos=("start", 1))
    assert documents_of(corpus) == [[1, 3, 3, 3], [1, 3, 3]]
    assert documents_of(bf.open(np.array([3, 1, 3]), eos=("start", 1))) == [[3], [1, 3]]


def test_c54_an_index_decides_over_the_rule(tmp_path):
    prefix = write_megatron(tmp_path / "a", [5, 6, 7, 8, 4, E], [3, 3])
    corpus = bf.open(prefix, eos=E)
    assert corpus.lengths.tolist() == [3, 3]
    assert "boundaries from index" in corpus.describe()
    without = bf.open(f"{prefix}.bin", eos=E, format="raw", dtype="uint16")
    assert without.lengths.tolist() == [6]
    assert f"boundaries from end token {E}" in without.describe()
    assert bf.open([[5, 6, 7], [8, 4, E]], eos=6).lengths.tolist() == [3, 3]


def test_c54_one_id_for_start_and_end():
    tokens = np.array([E, 5, 6, E, E, 7, 8, E])
    assert bf.open(tokens, eos=("pair", E)).lengths.tolist() == [4, 4]
    assert bf.open(tokens, eos=("end", E)).lengths.tolist() == [1, 3, 1, 3]
    assert bf.open(tokens[:-1], eos=("pair", E)).lengths.tolist() == [4, 3]
    stray = np.array([3, E, 5, E, 4, 4, E, 6, E])
    assert documents_of(bf.open(stray, eos=("pair", E))) == [[3], [E, 5, E], [4, 4], [E, 6, E]]


def test_c54_no_rule_is_one_document(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(llmc_bytes([5, E, 6]))
    assert documents_of(bf.open(path)) == [[5, E, 6]]
    assert documents_of(bf.open(path, eos=E)) == [[5, E], [6]]


@pytest.mark.parametrize("eos", [True, "9", ("stop", 9), ("end", 9, 1), ("end",), 1.5, 2**63, [9]])
def test_an_eos_that_is_no_rule_is_refused(eos):
    with pytest.raises(bf.FormatError, match="expected a token id"):
        bf.open(np.array([1, 2]), eos=eos)


@pytest.mark.parametrize(("dtype", "eos"), [("uint16", 65_536), ("uint8", -1), ("int8", 128)])
def test_an_eos_that_cannot_occur_is_refused(dtype, eos):
    with pytest.raises(bf.FormatError, match=f"eos={eos} cannot occur in tokens of {dtype}"):
        bf.open(np.array([1, 2], dtype), eos=eos)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def shard(tmp_path, home):
    path = tmp_path / "data" / "a.bin"
    path.parent.mkdir()
    write_tokens(path, [1, E, 2, 3, E, 4])
    return path


@pytest.fixture
def scans(monkeypatch):
    """The files whose tokens were read, one entry a scan."""
    read = []
    find = boundaries._core.find_boundaries

    def counted(store, rule, token):
        read.append(store.name)
        return find(store, rule, token)

    monkeypatch.setattr(boundaries, "_core", Wrapped(boundaries._core, find_boundaries=counted))
    return read


class Wrapped:
    def __init__(self, module, **replaced):
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name):
        return getattr(self._module, name)


def write_tokens(path, tokens):
    path.write_bytes(np.array(tokens, np.uint16).tobytes())


def open_shard(path, eos=E, dtype="uint16"):
    return bf.open(path, dtype=dtype, eos=eos).lengths.tolist()


def caches(folder):
    return sorted(file.name for file in folder.rglob("*.documents")) if folder.exists() else []


def test_the_second_opening_reads_no_tokens(shard, home, scans):
    assert open_shard(shard) == [2, 3, 1]
    assert caches(shard.parent) == ["a.bin.end-9.documents"]
    assert open_shard(shard) == [2, 3, 1]
    assert len(scans) == 1
    assert not home.exists()
    assert sorted(file.name for file in shard.parent.iterdir()) == [
        "a.bin",
        "a.bin.end-9.documents",
    ]
    assert len(bf.open(shard.parent, dtype="uint16", eos=E)) == 3


def test_each_rule_dtype_and_format_is_found_anew(shard, scans):
    assert open_shard(shard) == [2, 3, 1]
    assert open_shard(shard, eos=("start", E)) == [1, 3, 2]
    assert open_shard(shard, eos=2) == [3, 3]
    assert open_shard(shard, dtype="uint8", eos=E) == [3, 6, 3]
    assert open_shard(shard) == [2, 3, 1]
    assert len(scans) == 5


def test_a_changed_file_is_read_again(shard, scans):
    assert open_shard(shard) == [2, 3, 1]
    write_tokens(shard, [1, 2, E, 3, E, 4])
    os.utime(shard, ns=(1, 1))
    assert open_shard(shard) == [3, 2, 1]
    write_tokens(shard, [1, 2, E, 3])
    os.utime(shard, ns=(1, 1))
    assert open_shard(shard) == [3, 1]
    assert len(scans) == 3


def test_a_cache_moves_with_its_folder(shard, scans, tmp_path):
    assert open_shard(shard) == [2, 3, 1]
    shard.parent.rename(tmp_path / "moved")
    assert open_shard(tmp_path / "moved" / "a.bin") == [2, 3, 1]
    assert len(scans) == 1


def test_a_cache_of_another_file_is_not_taken(shard, scans):
    assert open_shard(shard) == [2, 3, 1]
    other = shard.with_name("b.bin")
    write_tokens(other, [E, 1, 2, 3, 4, 5])
    stat = shard.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    shutil.copy2(f"{shard}.end-9.documents", f"{other}.end-9.documents")
    assert open_shard(other) == [1, 5]
    assert len(scans) == 2


@given(st.data())
@settings(max_examples=100)
def test_a_damaged_cache_is_made_again(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cache")
    path = folder / "a.bin"
    write_tokens(path, [1, E, 2, 3, E, 4])
    assert open_shard(path) == [2, 3, 1]
    cache = folder / "a.bin.end-9.documents"
    good = cache.read_bytes()
    damaged = bytearray(good)
    if data.draw(st.booleans()):
        damaged = damaged[: data.draw(st.integers(0, len(good) - 1))]
    else:
        damaged[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    cache.write_bytes(damaged + data.draw(st.sampled_from([b"", b"", bytes(8)])))
    assert open_shard(path) == [2, 3, 1]
    assert cache.read_bytes() == good


def test_the_users_cache_serves_where_the_folder_cannot_be_written(shard, home, scans, monkeypatch):
    refuse_writing_in(monkeypatch, shard.parent)
    assert open_shard(shard) == [2, 3, 1]
    assert open_shard(shard) == [2, 3, 1]
    assert len(scans) == 1
    assert caches(shard.parent) == []
    assert len(caches(home / "brimful")) == 1


def test_with_no_place_to_write_nothing_is_kept_and_nothing_fails(shard, home, scans, monkeypatch):
    refuse_writing_in(monkeypatch, shard.parent, home / "brimful")
    assert open_shard(shard) == [2, 3, 1]
    assert open_shard(shard) == [2, 3, 1]
    assert len(scans) == 2


def refuse_writing_in(monkeypatch, *folders):
    open_ = os.open

    def refusing(path, flags, *mode, **how):
        if flags & os.O_ACCMODE != os.O_RDONLY and {Path(path), Path(path).parent} & {*folders}:
            raise PermissionError(path)
        return open_(path, flags, *mode, **how)

    monkeypatch.setattr(os, "open", refusing)


def test_a_failed_write_leaves_no_temporary_file(shard, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(os, "replace", fail)
    assert open_shard(shard) == [2, 3, 1]
    assert [file.name for file in shard.parent.iterdir()] == ["a.bin"]


def test_a_file_that_changes_during_the_scan_is_a_read_error(shard, monkeypatch):
    find = boundaries._core.find_boundaries

    def slow(store, rule, token):
        os.utime(shard, ns=(1, 1))
        return find(store, rule, token)

    monkeypatch.setattr(boundaries, "_core", Wrapped(boundaries._core, find_boundaries=slow))
    with pytest.raises(bf.ReadError, match="changed while"):
        open_shard(shard)
    assert caches(shard.parent) == []


def test_a_file_that_shrinks_during_the_scan_is_a_read_error(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(1 << 20))
    find = boundaries._core.find_boundaries

    def slow(store, rule, token):
        os.truncate(path, 4096)
        return find(store, rule, token)

    monkeypatch.setattr(boundaries, "_core", Wrapped(boundaries._core, find_boundaries=slow))
    with pytest.raises(bf.ReadError, match=r"a\.bin"):
        open_shard(path)
