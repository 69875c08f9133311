"""The manifest: what it promises is checked at open, and every byte of it when asked."""

import copy
import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import manifest
from brimful.verify import verify


@pytest.fixture
def folder(tmp_path):
    """Two shards: three documents of 400,000 tokens (2.4 MB), then two short ones with masks."""
    with bf.ShardWriter(tmp_path / "s", max_shard_bytes=2_400_000) as writer:
        for i in range(3):
            writer.add(np.full(400_000, i, np.uint16))
        writer.add([7, 8, 9], [1, 1, 0])
        writer.add([10])
    return tmp_path / "s"


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_sound_folder(folder):
    checked = manifest.check(folder)
    assert (checked.documents, checked.sequences, checked.tokens) == (5, 5, 1_200_004)
    assert [shard.documents for shard in checked.shards] == [3, 2]
    assert not list(verify(checked))
    assert manifest.find(folder) == checked


@pytest.mark.parametrize(
    ("position", "block", "documents"),
    [
        (0, 0, range(2)),
        ((1 << 20) - 1, 0, range(2)),
        (1 << 20, 1, range(1, 3)),
        (2_399_999, 2, range(2, 3)),
    ],
)
def test_damage_names_file_block_and_documents(folder, position, block, documents):
    """Documents take 800,000 bytes each; a block has 1,048,576."""
    flip(folder / "shard-00000.bin", position)
    (damage,) = verify(manifest.check(folder))
    assert damage.file == folder / "shard-00000.bin"
    assert (damage.block, damage.documents) == (block, documents)
    for part in ("shard-00000.bin", f"block {block}", f"{documents[0]} to {documents[-1]}"):
        assert part in str(damage)


def test_damage_in_a_later_shard_counts_documents_of_the_folder(folder):
    flip(folder / "shard-00001.bin", 7)
    (damage,) = verify(manifest.check(folder))
    assert (damage.block, damage.documents) == (0, range(3, 5))


def test_documents_without_tokens_in_a_block_are_not_blamed(tmp_path):
    with bf.ShardWriter(tmp_path, dtype="uint8") as writer:
        writer.add_batch(np.zeros((1 << 20) + 5, np.uint8), [0, 1 << 20, 0, 5, 0])
    flip(tmp_path / "shard-00000.bin", (1 << 20) + 2)
    (damage,) = verify(manifest.check(tmp_path))
    assert 3 in damage.documents
    assert 1 not in damage.documents


def test_damage_of_every_kind_of_file(folder):
    flip(folder / "shard-00001.idx", 34)
    flip(folder / "shard-00001.loss.bin", 0)
    flip(folder / "shard-00001.bin", 0)
    flip(folder / "shard-00000.bin", 5)
    found = list(verify(manifest.check(folder)))
    assert {(d.file.name, d.block) for d in found} == {
        ("shard-00000.bin", 0),
        ("shard-00001.idx", None),
        ("shard-00001.loss.bin", None),
        ("shard-00001.bin", 0),
    }
    # An index that is damaged itself cannot tell which documents are.
    assert [d.documents for d in found if d.file.name == "shard-00001.bin"] == [None]
    assert all(str(d.file) in str(d) for d in found)


@pytest.mark.parametrize("name", ["shard-00000.bin", "shard-00001.idx", "shard-00001.loss.bin"])
@pytest.mark.parametrize("change", [-1, 1])
def test_sizes_are_checked_at_open(folder, name, change):
    size = (folder / name).stat().st_size
    os.truncate(folder / name, size + change)
    for open_it in (manifest.check, bf.open):
        with pytest.raises(bf.FormatError, match=f"{name}: {size + change} bytes, expected {size}"):
            open_it(folder)


@pytest.mark.parametrize("name", ["shard-00000.bin", "shard-00001.idx", "shard-00001.loss.bin"])
def test_files_that_are_gone(folder, name):
    (folder / name).unlink()
    for open_it in (manifest.check, bf.open):
        with pytest.raises(FileNotFoundError, match=name):
            open_it(folder)


@pytest.mark.parametrize("position", [0, 9, 17, 18, 26])
def test_headers_of_the_index_are_checked_at_open(folder, position):
    flip(folder / "shard-00000.idx", position)
    with pytest.raises(bf.FormatError, match=r"shard-00000\.idx: .*expected"):
        manifest.check(folder)


def test_a_shard_that_is_not_named_is_not_passed_over(folder):
    for suffix in (".bin", ".idx"):
        shutil.copy(folder / f"shard-00001{suffix}", folder / f"shard-00002{suffix}")
    with pytest.raises(bf.FormatError, match=r"shard-00002\.bin: not named"):
        bf.open(folder)
    assert len(bf.open(folder / "*.idx")) == 7  # a glob does not look at the manifest


def test_other_files_may_lie_there(folder):
    (folder / "README.md").write_text("hello")
    assert manifest.check(folder).documents == 5


def test_the_manifest_decides_about_order(folder):
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    data["shards"].reverse()
    path.write_text(json.dumps(data))
    assert bf.open(folder)[0].tolist() == [7, 8, 9]


def test_a_folder_without_a_manifest(tmp_path):
    assert manifest.find(tmp_path) is None
    with pytest.raises(FileNotFoundError):
        manifest.check(tmp_path)


def test_a_newer_schema_says_so(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(bf.FormatError, match=r"schema_version is 2, .*update brimful"):
        bf.open(folder)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "3", "null", '{"name": "an app"}', "[" * 100_000]
)
def test_what_is_no_manifest(folder, content):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(bf.FormatError, match=r"manifest\.json"):
        bf.open(folder)


@pytest.mark.parametrize(
    "name", ["../s/shard-00000", "/etc/passwd", "", ".", "a\0b", "a\ud800", ".hidden", "x"]
)
def test_names_stay_in_the_folder(folder, name):
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    data["shards"][0]["name"] = name
    for file, suffix in zip(data["shards"][0]["files"], (".bin", ".idx"), strict=True):
        file["name"] = name + suffix
    path.write_text(json.dumps(data))
    with pytest.raises((bf.FormatError, FileNotFoundError)):
        bf.open(folder)


def places(value, place=()):
    """Where every value of a JSON document is."""
    yield place
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


FREE = ("brimful", "tokenizer", "provenance", "sources")


@settings(deadline=None, max_examples=300)
@given(
    data=st.data(),
    change=st.sampled_from(["remove", None, -1, 1 << 63, 10**30, 1.5, True, "x", "", [], {}, [0]]),
)
def test_any_change_of_a_manifest_is_seen(tmp_path_factory, data, change):
    folder = tmp_path_factory.getbasetemp() / "changed"
    if not folder.exists():
        with bf.ShardWriter(folder) as writer:
            writer.add([1, 2, 3], [0, 1, 1])
        shutil.copy(folder / "manifest.json", folder / "sound.json")
    sound = json.loads((folder / "sound.json").read_text())
    changed = copy.deepcopy(sound)
    place = data.draw(st.sampled_from([p for p in places(sound) if p and p[0] not in FREE]))
    parent = changed
    for key in place[:-1]:
        parent = parent[key]
    if change == "remove":
        del parent[place[-1]]
    else:
        parent[place[-1]] = change
    (folder / "manifest.json").write_text(json.dumps(changed))
    with pytest.raises((bf.FormatError, FileNotFoundError)):
        manifest.check(folder)


@pytest.mark.parametrize("change", [None, -1, 0, 1, 1.5, True, float("nan"), "x", [], {}])
@pytest.mark.parametrize("key", ["shards", "files", "blocks"])
def test_items_of_another_type_are_refused(folder, key, change):
    path = folder / "manifest.json"
    for whole in (False, True):
        data = json.loads(path.read_text())
        parent = {
            "shards": data,
            "files": data["shards"][0],
            "blocks": data["shards"][0]["files"][0],
        }[key]
        if whole:
            parent[key] = [change]
        else:
            parent[key][0] = change
        (folder / "changed").mkdir(exist_ok=True)
        (folder / "changed" / "manifest.json").write_text(json.dumps(data))
        with pytest.raises(bf.FormatError, match=r"manifest\.json: shards\[0\]"):
            bf.open(folder / "changed")
