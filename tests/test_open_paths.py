"""Which files a path, a pattern, a directory or a list of these means."""

import numpy as np
import pytest

import brimful as bf
from shard_files import documents_of, llmc_bytes, write_megatron


@pytest.fixture
def folder(tmp_path):
    write_megatron(tmp_path / "b", [1, 2, 3], [1, 2])
    np.save(tmp_path / "a.npy", np.array([4, 5], np.uint16))
    (tmp_path / "c.bin").write_bytes(llmc_bytes([6]))
    (tmp_path / "README.md").write_text("no tokens")
    (tmp_path / "inside").mkdir()
    np.save(tmp_path / "inside" / "d.npy", np.array([7], np.uint16))
    return tmp_path


def test_a_directory_holds_files_of_every_format(folder):
    assert documents_of(bf.open(folder)) == [[4, 5], [1], [2, 3], [6]]
    assert documents_of(bf.open(str(folder))) == documents_of(bf.open(folder))


@pytest.mark.parametrize(
    ("format", "expected"),
    [("megatron", [[1], [2, 3]]), ("npy", [[4, 5]])],
)
def test_a_declared_format_chooses_the_files_of_a_directory(folder, format, expected):
    (folder / "c.bin").unlink()
    assert documents_of(bf.open(folder, format=format)) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.npy", [[4, 5]]),
        ("**/*.npy", [[4, 5], [7]]),
        ("b.*", [[1], [2, 3]]),
        ("[bc].bin", [[1], [2, 3], [6]]),
        ("?.idx", [[1], [2, 3]]),
    ],
)
def test_a_pattern_takes_each_file_once(folder, pattern, expected):
    assert documents_of(bf.open(f"{folder}/{pattern}")) == expected


def test_a_list_keeps_its_order_and_repetitions(folder):
    files = [folder / "c.bin", folder / "a.npy", folder / "c.bin"]
    assert documents_of(bf.open(files)) == [[6], [4, 5], [6]]
    both_halves = [folder / "b.idx", folder / "b.bin", folder / "a.npy"]
    assert documents_of(bf.open(both_halves)) == [[1], [2, 3], [4, 5]]
    assert documents_of(bf.open([folder / "inside", f"{folder}/c*"])) == [[7], [6]]


@pytest.mark.parametrize("name", ["none.bin", "none", "none/*.bin", "*.none", "none.idx"])
def test_an_absent_path_is_file_not_found(folder, name):
    with pytest.raises(FileNotFoundError, match="none"):
        bf.open(folder / name)
    with pytest.raises(FileNotFoundError, match="none"):
        bf.open([folder / "a.npy", folder / name], dtype="uint16")


def test_a_directory_without_tokens_is_refused(tmp_path):
    with pytest.raises(bf.FormatError, match="no token files"):
        bf.open(tmp_path)


def test_what_the_system_says_keeps_its_type(folder):
    with pytest.raises(IsADirectoryError, match="inside"):
        bf._core.open_raw(folder / "inside", "uint8")


def test_a_path_with_signs_of_a_pattern_in_its_name(tmp_path):
    np.save(tmp_path / "a[1].npy", np.array([1], np.uint16))
    assert documents_of(bf.open(tmp_path / "a[1].npy")) == [[1]]


def test_a_pattern_leaves_out_what_goes_with_tokens(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes([1, 9, 2]))
    expected = [[1, 9], [2]]
    for _ in range(2):
        assert documents_of(bf.open(f"{tmp_path}/*", dtype="uint8", eos=9)) == expected


def test_files_take_no_arrays_as_loss_masks(folder):
    with pytest.raises(bf.FormatError, match="None, True or False"):
        bf.open(folder, loss_masks=[[1]])


def test_sequences_need_an_index(folder):
    with pytest.raises(bf.FormatError, match=r"a\.npy: rows=.* needs a Megatron index"):
        bf.open(folder, rows="sequences")


def test_a_demanded_loss_mask_needs_a_megatron_file(folder):
    with pytest.raises(bf.FormatError, match=r"a\.npy: loss masks"):
        bf.open(folder / "a.npy", loss_masks=True)


def test_the_manifest_of_a_folder_is_checked(tmp_path):
    with bf.ShardWriter(tmp_path / "s", dtype="uint16") as writer:
        writer.add([1, 2])
        writer.add([3], loss_mask=[0])
    corpus = bf.open(tmp_path / "s")
    assert documents_of(corpus) == [[1, 2], [3]]
    assert corpus.info[0].loss_masks == "all"
    bin = next((tmp_path / "s").glob("shard-?????.bin"))
    bin.write_bytes(bin.read_bytes()[:-2])
    with pytest.raises(bf.FormatError, match=r"manifest\.json"):
        bf.open(tmp_path / "s")


@pytest.mark.parametrize("name", ["shard-00000", "shard-00000.bin", "shard-00000.idx", "*.bin"])
@pytest.mark.parametrize("damage", ["", "cut", "newer"])
def test_a_loss_mask_that_a_manifest_names_is_not_lost(tmp_path, name, damage):
    with bf.ShardWriter(tmp_path / "s", dtype="uint16") as writer:
        writer.add([1, 2], loss_mask=[0, 1])
    assert bf.open(f"{tmp_path}/s/{name}").info[0].loss_masks == "all"
    (tmp_path / "s" / "shard-00000.loss.bin").unlink()
    manifest = tmp_path / "s" / "manifest.json"
    if damage == "cut":
        manifest.write_text(manifest.read_text()[:-9])
    elif damage == "newer":
        manifest.write_text(manifest.read_text().replace('version": 1', 'version": 2'))
    with pytest.raises(bf.FormatError, match=r"shard-00000\.loss\.bin: not there, .*manifest"):
        bf.open(f"{tmp_path}/s/{name}")
    corpus = bf.open(f"{tmp_path}/s/{name}", loss_masks=False)
    assert (documents_of(corpus), corpus.info[0].loss_masks) == ([[1, 2]], "none")
    manifest.unlink()
    assert bf.open(f"{tmp_path}/s/{name}").info[0].loss_masks == "none"


def test_a_manifest_of_something_else_is_no_matter(folder):
    (folder / "manifest.json").write_text('{"files": ["a.loss.bin"]}')
    assert documents_of(bf.open(folder / "b")) == [[1], [2, 3]]


def test_a_loss_mask_is_never_tokens(tmp_path):
    mask = tmp_path / "x.loss.bin"
    mask.write_bytes(bytes([0, 1]))
    for source in (tmp_path, f"{tmp_path}/*", mask, [mask]):
        with pytest.raises(bf.FormatError, match=r"no token files|holds a loss mask"):
            bf.open(source, dtype="uint8")
    (tmp_path / "y.bin").write_bytes(bytes([7]))
    for source in (tmp_path, f"{tmp_path}/*"):
        assert documents_of(bf.open(source, dtype="uint8")) == [[7]]


def test_tokens_with_an_index_may_be_named_like_a_mask(tmp_path):
    write_megatron(tmp_path / "x.loss", [1, 2], [2])
    for source in (tmp_path, f"{tmp_path}/*.bin", tmp_path / "x.loss.bin"):
        assert documents_of(bf.open(source)) == [[1, 2]]


def test_several_names_of_a_pair_are_one(folder):
    names = [folder / "b", folder / "b.bin", folder / "b.idx"]
    for first in names:
        for second in names:
            times = 2 if first == second else 1
            assert documents_of(bf.open([first, second])) == [[1], [2, 3]] * times
    assert documents_of(bf.open([*names, folder / "c.bin"])) == [[1], [2, 3], [6]]


@pytest.mark.parametrize("name", ["", "a\0b", "a\0*", "a\ud800"])
def test_what_can_be_no_name_is_file_not_found(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    for source in (name, [name], ["a.npy", name]):
        with pytest.raises(FileNotFoundError, match="no file can have this name"):
            bf.open(source)
