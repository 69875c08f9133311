"""Text to shards: every document once, in order, as its tokenizer says, origin on record."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiktoken
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import brimful as bf
from brimful import manifest
from brimful.prepare import batches, prepare

TEXTS = [
    "The quick brown fox",
    "",
    "jumps över the lazy dog\n",
    "日本語 <|endoftext|> tail",
    "x" * 5000,
]


@pytest.fixture(scope="module")
def trained():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    return tokenizer


def encoding():
    """A small encoding of tiktoken: 256 bytes, two merges, one special token."""
    ranks = {bytes([b]): b for b in range(256)} | {b"th": 256, b"the": 257}
    return tiktoken.Encoding(
        "small", pat_str=r"\s?\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 300}
    )


def documents(folder):
    return [document.tolist() for document in bf.open(folder)]


def as_bytes(texts):
    return [list(text.encode()) for text in texts]


def write_lines(path, texts, field="text"):
    path.write_text("".join(json.dumps({"id": 1, field: text}) + "\n" for text in texts))
    return path


def test_text_files_are_one_document_each(tmp_path):
    for i, text in enumerate(TEXTS):
        (tmp_path / f"{i}.txt").write_bytes(text.encode())
    done = prepare(tmp_path / "*.txt", tmp_path / "out", tokenizer="bytes")
    assert documents(tmp_path / "out") == as_bytes(TEXTS)
    assert (done.documents, done.dtype, done.skipped) == (5, "uint8", 0)
    assert done.tokens == done.bytes == sum(len(text.encode()) for text in TEXTS)


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "ndjson", "parquet"])
def test_lines_and_rows_are_documents(tmp_path, form):
    path = tmp_path / f"a.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"n": range(5), "text": TEXTS}), path, row_group_size=2)
    else:
        write_lines(path, TEXTS)
        if form.endswith("gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    prepare(path, tmp_path / "out", tokenizer="bytes")
    assert documents(tmp_path / "out") == as_bytes(TEXTS)
    (record,) = manifest.check(tmp_path / "out").provenance["inputs"]
    assert record == {
        "path": str(path),
        "format": "parquet" if form == "parquet" else "jsonl",
        "bytes": path.stat().st_size,
        "xxh3": xxhash.xxh3_64_hexdigest(path.read_bytes()),
        "documents": 5,
        "tokens": sum(len(text.encode()) for text in TEXTS),
        "skipped": 0,
    }


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_every_kind_of_string_column(tmp_path, kind):
    pq.write_table(pa.table({"body": pa.array(["a", "b", "a"], kind)}), tmp_path / "a.parquet")
    prepare(tmp_path / "a.parquet", tmp_path / "out", tokenizer="bytes", field="body")
    assert documents(tmp_path / "out") == [[97], [98], [97]]


def test_a_byte_order_mark_and_empty_lines_of_json_lines(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "a"}\r\n\n  \n{"text": "b"}')
    prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    assert documents(tmp_path / "out") == [[97], [98]]


def test_folders_are_searched_in_order_and_each_file_is_taken_once(tmp_path):
    data = tmp_path / "data"
    (data / "b/c").mkdir(parents=True)
    (data / ".git").mkdir()
    for name in ("b/c/3.md", "b/2.txt", "1.txt", ".hidden", ".git/x", "z.jsonl"):
        (data / name).write_text('{"text": "z"}\n' if name == "z.jsonl" else name[0])
    prepare([data / "b/2.txt", data, data / "*.txt"], tmp_path / "out", tokenizer="bytes")
    names = [record["path"] for record in manifest.check(tmp_path / "out").provenance["inputs"]]
    assert names == [str(data / name) for name in ("b/2.txt", "1.txt", "z.jsonl", "b/c/3.md")]
    assert documents(tmp_path / "out") == as_bytes(["b", "1", "z", "b"])


def test_hugging_face_tokenizer_json(tmp_path, trained):
    trained.save(str(tmp_path / "tokenizer.json"))
    write_lines(tmp_path / "a.jsonl", TEXTS)
    prepare(
        tmp_path / "a.jsonl", tmp_path / "out", tokenizer=tmp_path, bos="<s>", eos="<|endoftext|>"
    )
    found = documents(tmp_path / "out")
    assert all(ids[0] == 1 and ids[-1] == 0 for ids in found)
    for ids, text in zip(found, TEXTS, strict=True):
        assert trained.decode(ids[1:-1], skip_special_tokens=False) == text
        assert 0 not in ids[1:-1]  # the special token inside a text stays text
    record = manifest.check(tmp_path / "out")
    assert record.dtype == "uint16"
    assert (record.tokenizer["bos"], record.tokenizer["eos"]) == (1, 0)
    assert record.tokenizer["vocab_size"] == trained.get_vocab_size()
    content = (tmp_path / "tokenizer.json").read_bytes()
    assert record.tokenizer["xxh3"] == xxhash.xxh3_64_hexdigest(content)


def test_truncation_padding_and_template_of_a_tokenizer_are_left_out(tmp_path, trained):
    """They would cut documents short, or add to them, without a word."""
    cutting = Tokenizer.from_str(trained.to_str())
    cutting.enable_truncation(3)
    cutting.enable_padding(length=50)
    cutting.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    cutting.save(str(tmp_path / "tokenizer.json"))
    write_lines(tmp_path / "a.jsonl", TEXTS)
    for name, tokenizer in (("file", tmp_path / "tokenizer.json"), ("object", cutting)):
        prepare(tmp_path / "a.jsonl", tmp_path / name, tokenizer=tokenizer)
        plain = [trained.encode(text, add_special_tokens=False).ids for text in TEXTS[:3]]
        assert documents(tmp_path / name)[:3] == plain
    assert len(cutting.encode(TEXTS[0]).ids) == 50  # the user's object is as it was


def test_special_tokens_in_texts_only_when_asked_for(tmp_path, trained):
    write_lines(tmp_path / "a.jsonl", ["a<|endoftext|>b"])
    for name, tokenizer, end in (("hf", trained, 0), ("tiktoken", encoding(), 300)):
        prepare(tmp_path / "a.jsonl", tmp_path / name, tokenizer=tokenizer)
        assert end not in documents(tmp_path / name)[0]
        parsed = tmp_path / f"{name}-parsed"
        prepare(tmp_path / "a.jsonl", parsed, tokenizer=tokenizer, parse_special=True)
        assert documents(parsed)[0].count(end) == 1
        assert manifest.check(parsed).tokenizer["parse_special"] is True


def test_encodings_of_tiktoken(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["the th", "x"])
    prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=encoding(), eos="<|endoftext|>")
    assert documents(tmp_path / "out") == [[257, 32, 256, 300], [120, 300]]
    record = manifest.check(tmp_path / "out").tokenizer
    assert (record["name"], record["eos"], record["vocab_size"]) == ("small", 300, 301)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_encodings_that_need_no_download(tmp_path, name):
    """By name, or as an object; the text is longer than bpe-openai itself takes."""
    bpe = pytest.importorskip("bpe_openai").get_encoding(name)
    text = "def f(x):\n    return x + 1\n\n\n" * 40_000
    assert len(text) > 1_000_000
    (tmp_path / "a.py").write_text(text)
    prepare(tmp_path / "a.py", tmp_path / "named", tokenizer=name, eos="<|endoftext|>")
    prepare(tmp_path / "a.py", tmp_path / "object", tokenizer=bpe, eos=bpe.eot_token)
    (ids,) = documents(tmp_path / "named")
    assert ids[-1] == bpe.eot_token
    assert bpe.decode(ids[:-1]) == text
    assert documents(tmp_path / "object") == [ids]
    assert manifest.check(tmp_path / "named").dtype == "int32"
    a, b = (manifest.check(tmp_path / name).tokenizer for name in ("named", "object"))
    assert a == b


def test_any_object_with_encode(tmp_path):
    class Words:
        vocab_size = 1000

        def encode(self, text):
            return [len(word) for word in text.split()]

    write_lines(tmp_path / "a.jsonl", ["one three", "", "four"])
    prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=Words(), bos=999)
    assert documents(tmp_path / "out") == [[999, 3, 5], [999], [999, 4]]
    assert manifest.check(tmp_path / "out").tokenizer["name"].endswith("Words")


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({}, "uint8"),
        ({"eos": 256}, "uint16"),
        ({"eos": 65535}, "uint16"),
        ({"bos": 65536}, "int32"),
        ({"dtype": "int64"}, "int64"),
    ],
)
def test_the_dtype_holds_every_id(tmp_path, options, dtype):
    write_lines(tmp_path / "a.jsonl", ["a"])
    assert prepare(tmp_path, tmp_path / "out", tokenizer="bytes", **options).dtype == dtype
    assert manifest.check(tmp_path / "out").dtype == dtype


@settings(deadline=None, max_examples=40)
@given(
    texts=st.lists(st.text(max_size=30), min_size=1, max_size=30),
    batch=st.integers(1, 40),
    threads=st.integers(1, 4),
    files=st.integers(1, 4),
)
def test_order_and_bytes_survive_batches_threads_and_files(
    tmp_path_factory, texts, batch, threads, files
):
    folder = tmp_path_factory.mktemp("prepare")
    (folder / "in").mkdir()
    parts = [texts[i * len(texts) // files : (i + 1) * len(texts) // files] for i in range(files)]
    for i, part in enumerate(parts):
        write_lines(folder / f"in/{i}.jsonl", part)
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_CHARACTERS", batch)
        patch.setattr(batches, "_DOCUMENTS", max(batch // 4, 1))
        prepare(
            folder / "in",
            folder / "out",
            tokenizer="bytes",
            eos=256,
            num_threads=threads,
            progress=told.append,
        )
    assert documents(folder / "out") == [[*text.encode(), 256] for text in texts]
    assert [p.documents for p in told] == sorted({p.documents for p in told})
    assert all(p.bytes <= p.total_bytes for p in told)
    assert told[-1].documents == len(texts)
    counted = [r["documents"] for r in manifest.check(folder / "out").provenance["inputs"]]
    assert counted == [len(part) for part in parts]


def test_the_same_inputs_give_the_same_folder(tmp_path):
    write_lines(tmp_path / "a.jsonl", TEXTS)
    for name in ("x", "y"):
        prepare(tmp_path / "a.jsonl", tmp_path / name, tokenizer=encoding(), num_threads=3)
    for file in (tmp_path / "x").iterdir():
        assert file.read_bytes() == (tmp_path / "y" / file.name).read_bytes()


def test_provenance(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["a"], field="body")
    prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", field="body")
    record = manifest.check(tmp_path / "out")
    assert record.brimful == bf.__version__
    assert record.provenance["settings"]["field"] == "body"
    assert record.provenance["versions"]["numpy"] == np.__version__
