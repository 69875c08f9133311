"""Shards: the bytes that a writer leaves, where a shard ends, and what it takes in memory."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful as bf
from brimful import manifest, runs, shard_file, shard_layout, shards
from brimful.verify import verify
from megatron_files import leftovers, read_documents, read_masks, read_pair

DISK_DTYPES = ("uint8", "int8", "uint16", "int16", "int32", "int64")
CODES = (1, 2, 8, 3, 4, 5)


def test_bytes_of_a_small_pair(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path / "s", dtype="uint16") as writer:
        writer.add([7, 65535])
        writer.add([])
        writer.add([1])
    assert leftovers(tmp_path / "s") == ["manifest.json", "shard-00000.bin", "shard-00000.idx"]
    assert (tmp_path / "s/shard-00000.bin").read_bytes() == b"\x07\x00\xff\xff\x01\x00"
    assert (tmp_path / "s/shard-00000.idx").read_bytes() == (
        b"MMIDIDX\x00\x00"
        + (1).to_bytes(8, "little")
        + b"\x08"
        + (3).to_bytes(8, "little")
        + (4).to_bytes(8, "little")
        + b"".join(n.to_bytes(4, "little") for n in (2, 0, 1))
        + b"".join(n.to_bytes(8, "little") for n in (0, 4, 4))
        + b"".join(n.to_bytes(8, "little") for n in (0, 1, 2, 3))
    )


@pytest.mark.parametrize(("dtype", "code"), tuple(zip(DISK_DTYPES, CODES, strict=True)))
def test_type_codes_and_extremes(tmp_path: Path, dtype: str, code: int) -> None:
    info = np.iinfo(dtype)
    with bf.ShardWriter(tmp_path, dtype=dtype) as writer:
        writer.add([int(info.min), 0, int(info.max)])
    assert (tmp_path / "shard-00000.idx").read_bytes()[17] == code
    assert read_documents(tmp_path) == [[int(info.min), 0, int(info.max)]]
    assert manifest.check(tmp_path).dtype == dtype


documents_strategy = st.lists(
    st.tuples(
        st.lists(st.integers(0, 255), max_size=12),
        st.one_of(st.none(), st.integers(0, 2**12 - 1)),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(
    documents=documents_strategy,
    dtype=st.sampled_from(("uint8", "uint16", "int16", "int32", "int64")),
    max_items=st.integers(1, 40),
    gather=st.integers(1, 20),
    max_sequence=st.integers(1, 9),
    batched=st.booleans(),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[tuple[list[int], int | None]],
    dtype: str,
    max_items: int,
    gather: int,
    max_sequence: int,
    batched: bool,
) -> None:
    """Any documents and masks, with limits so low that every way through the writer is taken."""
    folder = tmp_path_factory.mktemp("shards")
    masks = [
        None if bits is None else [bits >> i & 1 for i in range(len(tokens))]
        for tokens, bits in documents
    ]
    ones = [mask or [1] * len(tokens) for mask, (tokens, _) in zip(masks, documents, strict=True)]
    size = np.dtype(dtype).itemsize
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # thousands of small files
        patch.setattr(shards, "_GATHER", gather)
        patch.setattr(runs, "MAX_SEQUENCE", max_sequence)
        for module in (shard_file, shard_layout, manifest):
            patch.setattr(module, "BLOCK_BYTES", 16)
        with bf.ShardWriter(folder, dtype=dtype, max_shard_bytes=max_items * size) as writer:
            if batched:
                flat = [token for tokens, _ in documents for token in tokens]
                lengths = [len(tokens) for tokens, _ in documents]
                writer.add_batch(flat, lengths, [m for mask in ones for m in mask])
            else:
                for (tokens, _), mask in zip(documents, masks, strict=True):
                    writer.add(tokens, mask)
        reopened = [document.tolist() for document in bf.open(folder)]
    assert reopened == [tokens for tokens, _ in documents]
    assert (writer.num_documents, writer.num_tokens) == (
        len(documents),
        sum(len(tokens) for tokens, _ in documents),
    )
    assert read_documents(folder) == [tokens for tokens, _ in documents]
    first = 0
    for path in sorted(folder.glob("*.idx")):
        pair = read_pair(path)
        assert pair["dtype"] == dtype
        assert pair["lengths"].max(initial=0) <= max_sequence
        stop = first + len(pair["documents"]) - 1
        sizes = [len(tokens) for tokens, _ in documents[first:stop]]
        assert sum(sizes) <= max_items or sizes[0] == sum(sizes)
        loss = path.with_suffix(".loss.bin")
        assert loss.exists() == (batched or any(mask is not None for mask in masks[first:stop]))
        if loss.exists():
            expected = [m for mask in ones[first:stop] for m in mask]
            counts = [sum(mask[1:]) for mask in ones[first:stop]]
            assert loss.read_bytes() == bytes(expected) + np.array(counts, "<i8").tobytes()
        first = stop
    assert first == len(documents)


def test_masks_begin_where_the_first_one_is_given(tmp_path: Path) -> None:
    """A shard has a sidecar when some document of it has a mask; the others count as all ones."""
    with bf.ShardWriter(tmp_path, max_shard_bytes=12) as writer:
        writer.add([1, 2])
        writer.add([3, 4, 5], [1, 0, 1])
        writer.add([6])
        writer.add([7, 8, 9, 10])  # another shard, without masks
    assert [name for name in leftovers(tmp_path) if "loss" in name] == ["shard-00000.loss.bin"]
    assert read_masks(tmp_path) == ([1, 1, 1, 0, 1, 1], [1, 1, 0])
    checked = manifest.check(tmp_path)
    assert [shard.documents for shard in checked.shards] == [3, 1]
    assert not list(verify(checked))


def test_shards_roll_over_between_documents(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path, dtype="uint8", max_shard_bytes=10) as writer:
        for size in (4, 6, 1, 25, 10, 0, 3):
            writer.add(np.full(size, size))
    sizes = [shard.bin.bytes for shard in manifest.check(tmp_path).shards]
    assert sizes == [10, 1, 25, 10, 3]
    assert [len(d) for d in read_documents(tmp_path)] == [4, 6, 1, 25, 10, 0, 3]


def test_arrays_may_be_used_again_after_add(tmp_path: Path) -> None:
    tokens, mask = np.array([1, 2, 3], np.uint16), np.array([1, 0, 1], np.uint8)
    with bf.ShardWriter(tmp_path) as writer:
        writer.add(tokens, mask)
        tokens[:], mask[:] = 9, 0
        writer.add(tokens, mask)
    assert read_documents(tmp_path) == [[1, 2, 3], [9, 9, 9]]
    assert read_masks(tmp_path)[0] == [1, 0, 1, 0, 0, 0]


def test_torch_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with bf.ShardWriter(tmp_path) as writer:
        writer.add(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
        with pytest.raises(bf.FormatError):
            writer.add(torch.tensor([1.0]))
    assert read_documents(tmp_path) == [[1, 2, 3]]
    assert read_masks(tmp_path) == ([1, 0, 1], [1])


def test_memory_stays_at_the_buffer(tmp_path: Path) -> None:
    """A document of 64 MiB, converted on its way, and many short ones."""
    tokens = np.broadcast_to(np.int64(7), 8 << 20)  # one number in memory
    short = np.zeros(4, np.uint16)
    with bf.ShardWriter(tmp_path, dtype="uint8") as writer:
        writer.add([1])
        tracemalloc.start()
        writer.add(tokens, np.broadcast_to(np.uint8(1), tokens.size))
        for _ in range(70):
            writer.add_batch(np.broadcast_to(short, (1000, 4)).reshape(-1), [4] * 1000)
            writer.add(short)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 24 << 20
    assert manifest.check(tmp_path).tokens == 1 + tokens.size + 280_280


def test_c42_pointers_need_64_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sequences of 400,000,000 int32 tokens; the tokens are a hole in the file."""
    real = shard_file.HashedFile.write

    def sparse(self: shard_file.HashedFile, values: np.ndarray, start: int, stop: int) -> None:
        if self.path.suffix == ".bin":
            self._file.seek(4 * (stop - start), os.SEEK_CUR)
            self._file.truncate()
        else:
            real(self, values, start, stop)

    monkeypatch.setattr(shard_file.HashedFile, "write", sparse)
    tokens = np.broadcast_to(np.int32(0), 400_000_000)
    with bf.ShardWriter(tmp_path, dtype="int32", max_shard_bytes=1 << 40) as writer:
        for _ in range(3):
            writer.add(tokens)
    index = np.fromfile(tmp_path / "shard-00000.idx", np.uint8)
    assert index[34 + 12 : 34 + 36].view("<i8").tolist() == [0, 1_600_000_000, 3_200_000_000]
    assert (tmp_path / "shard-00000.bin").stat().st_size == 4_800_000_000


def test_checksums_are_xxh3_of_files_and_blocks(tmp_path: Path) -> None:
    tokens = np.arange(3 << 18, dtype=np.int64) % 60000
    with bf.ShardWriter(tmp_path, dtype="uint16") as writer:
        writer.add(tokens)
        writer.add([1, 2, 3], [0, 1, 0])
    data = (tmp_path / "shard-00000.bin").read_bytes()
    assert len(data) == (3 << 19) + 6
    shard = json.loads((tmp_path / "manifest.json").read_text())["shards"][0]
    for file in shard["files"]:
        content = (tmp_path / file["name"]).read_bytes()
        assert file["bytes"] == len(content)
        assert file["xxh3"] == xxhash.xxh3_64_hexdigest(content)
    blocks = [xxhash.xxh3_64_hexdigest(data[at : at + (1 << 20)]) for at in (0, 1 << 20)]
    assert shard["files"][0]["blocks"] == blocks


def test_a_folder_of_nothing(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path):
        pass
    assert leftovers(tmp_path) == ["manifest.json"]
    checked = manifest.check(tmp_path)
    assert (checked.documents, checked.tokens, checked.shards) == (0, 0, ())


def test_tokenizer_and_provenance_are_kept(tmp_path: Path) -> None:
    with bf.ShardWriter(tmp_path, tokenizer={"name": "t"}, provenance={"from": "hér"}) as writer:
        writer.add([1])
    checked = manifest.check(tmp_path)
    assert checked.tokenizer == {"name": "t"}
    assert checked.provenance == {"from": "hér"}
    assert checked.brimful == bf.__version__
    with pytest.raises(TypeError):
        bf.ShardWriter(tmp_path / "x", provenance={"bad": object()})
    assert not (tmp_path / "x").exists()
