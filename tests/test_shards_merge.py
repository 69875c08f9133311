"""Merging: sequences, documents, masks and order of every corpus arrive in the shards unchanged."""

import itertools
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import manifest, merge, shard_file, shards
from brimful.verify import verify
from megatron_files import read_documents, read_masks, read_pair
from shard_files import write_megatron


def merged(folder, *corpora, **options):
    with bf.ShardWriter(folder, **options) as writer:
        for corpus in corpora:
            writer.extend(corpus)
    assert not list(verify(manifest.check(folder)))
    return folder


def test_c43_both_levels_of_the_index_are_merged(tmp_path):
    p = write_megatron(tmp_path / "p", range(12), [4, 3, 5], [0, 1, 3])
    q = write_megatron(tmp_path / "q", range(100, 108), [2, 6], [0, 2])
    folder = merged(tmp_path / "out", bf.open(p), bf.open(q))
    pair = read_pair(folder / "shard-00000")
    assert pair["lengths"].tolist() == [4, 3, 5, 2, 6]
    assert pair["pointers"].tolist() == [0, 8, 14, 24, 28]
    assert pair["documents"].tolist() == [0, 1, 3, 5]
    assert pair["tokens"].tolist() == [*range(12), *range(100, 108)]
    assert (folder / "shard-00000.bin").stat().st_size == 40
    assert (folder / "shard-00000.idx").stat().st_size == 126
    documents = bf.open(folder)
    assert documents.lengths.tolist() == [4, 8, 8]
    sequences = bf.open(folder, rows="sequences")
    assert sequences.lengths.tolist() == [4, 3, 5, 2, 6]


def test_c43_one_open_of_both_files_and_a_mixture_are_the_same(tmp_path):
    p = write_megatron(tmp_path / "p", range(12), [4, 3, 5], [0, 1, 3])
    q = write_megatron(tmp_path / "q", range(100, 108), [2, 6], [0, 2])
    one = merged(tmp_path / "one", bf.open(p), bf.open(q))
    two = merged(tmp_path / "two", bf.open([p, q]))
    three = merged(tmp_path / "three", bf.mix({"p": bf.open(p), "q": bf.open(q)}))
    for other in (two, three):
        for name in ("shard-00000.bin", "shard-00000.idx"):
            assert (one / name).read_bytes() == (other / name).read_bytes()
    names = [source["name"] for source in manifest.check(three).sources]
    assert names == ["p", "q"]
    assert [source["documents"] for source in manifest.check(three).sources] == [2, 1]


def test_c42_merged_pointers_need_64_bits(tmp_path, monkeypatch):
    """Three sequences of 400,000,000 int32 tokens in a sparse file, written to another one."""
    write_megatron(tmp_path / "big", [], [400_000_000] * 3, [0, 1, 3], dtype="int32")
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(4_800_000_000)
    real = shard_file.HashedFile.write

    def sparse(self, values, start, stop):
        if self.path.suffix == ".bin":
            assert not values[stop - 2 : stop].any()
            self._file.seek(4 * (stop - start), os.SEEK_CUR)
            self._file.truncate()
        else:
            real(self, values, start, stop)

    monkeypatch.setattr(shard_file.HashedFile, "write", sparse)
    corpus = bf.open(tmp_path / "big")
    with bf.ShardWriter(tmp_path / "out", dtype="int32", max_shard_bytes=1 << 40) as writer:
        writer.extend(corpus)
        writer.extend(corpus)
    index = np.fromfile(tmp_path / "out/shard-00000.idx", np.uint8)
    pointers = index[34 + 24 : 34 + 72].view("<i8")
    assert pointers.tolist() == [1_600_000_000 * k for k in range(6)]
    assert index[34 + 72 :].view("<i8").tolist() == [0, 1, 3, 4, 6]


def test_masks_are_carried_along(tmp_path):
    with bf.ShardWriter(tmp_path / "a") as writer:
        writer.add([1, 2, 3], [1, 1, 0])
        writer.add([4])
    plain = bf.open([np.array([5, 6])])
    masked = bf.open([{"input_ids": [7, 8], "loss_mask": [0, 1]}])
    folder = merged(tmp_path / "out", bf.open(tmp_path / "a"), plain, masked)
    assert read_documents(folder) == [[1, 2, 3], [4], [5, 6], [7, 8]]
    assert read_masks(folder) == ([1, 1, 0, 1, 1, 1, 0, 1], [1, 0, 1, 1])


def test_dtypes_are_converted_where_the_tokens_fit(tmp_path):
    with bf.ShardWriter(tmp_path / "a", dtype="int32") as writer:
        writer.add([1, 65535])
    folder = merged(tmp_path / "out", bf.open(tmp_path / "a"), bf.open([np.array([3], np.int64)]))
    assert read_documents(folder) == [[1, 65535], [3]]
    writer = bf.ShardWriter(tmp_path / "no", dtype="int16")
    writer.add([1])
    with pytest.raises(bf.FormatError, match=r"document 2: token 1 is 65535, .* at document 1"):
        writer.extend(bf.open([np.array([3]), np.array([4, 65535])]))
    assert not (tmp_path / "no").exists()


def test_a_failed_merge_cannot_be_finished(tmp_path):
    writer = bf.ShardWriter(tmp_path / "out", dtype="uint8")
    with pytest.raises(bf.FormatError, match="token 0 is 300"):
        writer.extend(bf.open([np.array([300])]))
    with pytest.raises(ValueError, match="given up"):
        writer.close()


@pytest.mark.parametrize("cut", ["bin", "idx"])
def test_a_file_cut_short_under_the_merge_is_an_error(tmp_path, cut):
    with bf.ShardWriter(tmp_path / "a") as writer:
        writer.add_batch(np.zeros(200_000, np.uint16), np.full(50_000, 4))
    corpus = bf.open(tmp_path / "a")
    os.truncate(tmp_path / f"a/shard-00000.{cut}", 100)
    with pytest.raises(bf.ReadError), bf.ShardWriter(tmp_path / "out") as writer:
        writer.extend(corpus)
    assert not (tmp_path / "out").exists()


def test_what_is_no_corpus(tmp_path):
    with bf.ShardWriter(tmp_path) as writer, pytest.raises(TypeError, match=r"brimful\.open"):
        writer.extend("shards/")


def shards_of(folder, tokenizer):
    with bf.ShardWriter(folder, tokenizer=tokenizer) as writer:
        writer.add([1])
    return bf.open(folder)


def test_the_tokenizer_of_merged_shards_is_kept(tmp_path):
    a = shards_of(tmp_path / "a", {"kind": "t", "name": "x", "eos": 3})
    b = shards_of(tmp_path / "b", {"kind": "t", "name": "x", "eos": None, "package": "p 2"})
    kept = merged(tmp_path / "out", a, b)
    assert manifest.check(kept).tokenizer == {"kind": "t", "name": "x", "eos": 3}
    unknown = bf.open([np.array([1])])
    for i, corpora in enumerate(((a, unknown), (unknown, a), (bf.mix({"u": unknown, "a": a}),))):
        folder = merged(tmp_path / f"u{i}", *corpora)
        assert manifest.check(folder).tokenizer is None
    with bf.ShardWriter(tmp_path / "own") as writer:
        writer.extend(a)
        writer.add([2])
    assert manifest.check(tmp_path / "own").tokenizer is None


def test_tokens_of_two_tokenizers_are_not_merged_unasked(tmp_path):
    a = shards_of(tmp_path / "a", {"kind": "t", "xxh3": "1"})
    b = shards_of(tmp_path / "b", {"kind": "t", "xxh3": "2"})
    with bf.ShardWriter(tmp_path / "out") as writer:
        writer.extend(a)
        with pytest.raises(bf.FormatError, match="two tokenizers"):
            writer.extend(b)
        with pytest.raises(bf.FormatError, match="two tokenizers"):
            writer.extend(bf.mix({"a": a, "b": b}))
    assert read_documents(tmp_path / "out") == [[1]]
    folder = merged(tmp_path / "asked", a, b, tokenizer={"name": "mine"})
    assert manifest.check(folder).tokenizer == {"name": "mine"}


def test_the_manifest_lists_what_was_merged(tmp_path):
    folder = merged(tmp_path, bf.open([np.arange(3), np.arange(4)]))
    (source,) = json.loads((folder / "manifest.json").read_text())["sources"]
    assert (source["documents"], source["tokens"], source["dtype"]) == (2, 7, "int64")


two_levels = st.lists(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=4), max_size=6)


@settings(deadline=None, max_examples=60)
@given(
    files=st.lists(two_levels, min_size=1, max_size=3),
    max_items=st.integers(1, 30),
    gather=st.integers(1, 12),
    described=st.integers(1, 4),
    order=st.randoms(use_true_random=False),
    mapped=st.booleans(),
)
def test_merging_loses_moves_and_joins_nothing(
    tmp_path_factory, files, max_items, gather, described, order, mapped
):
    """Any files of documents of sequences, and any row map over them, at any limit."""
    folder = tmp_path_factory.mktemp("merge")
    for i, documents in enumerate(files):
        sequences = [sequence for document in documents for sequence in document]
        write_megatron(
            folder / f"f{i}",
            [token for sequence in sequences for token in sequence],
            [len(sequence) for sequence in sequences],
            np.concatenate(([0], np.cumsum([len(d) for d in documents], dtype=int))),
        )
    corpus = bf.open([folder / f"f{i}" for i in range(len(files))])
    expected = [document for documents in files for document in documents]
    if mapped:
        rows = [order.randrange(len(expected)) for _ in range(len(expected))]
        source = bf._core.Source("m", corpus._parts[0].stores, np.array(rows, np.int64))
        corpus = bf.Corpus(bf._core.Corpus([source]), (source,), corpus.info)
        expected = [expected[row] for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(shards, "_GATHER", gather)
        patch.setattr(merge, "_DOCUMENTS", described)
        merged(folder / "out", corpus, dtype="uint8", max_shard_bytes=max_items)
    found = []
    for path in sorted((folder / "out").glob("*.idx")):
        pair = read_pair(path)
        ends = np.concatenate(([0], np.cumsum(pair["lengths"], dtype=int)))
        sequences = [pair["tokens"][a:b].tolist() for a, b in itertools.pairwise(ends)]
        bounds = pair["documents"]
        found += [sequences[a:b] for a, b in itertools.pairwise(bounds)]
    assert found == expected
