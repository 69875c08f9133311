"""Bad text: an error that names file and line, or left out and counted when that is asked for."""

import gzip
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from brimful import manifest
from brimful.prepare import prepare
from test_prepare import documents, write_lines

BAD_LINES = [
    (b'{"text": "\xff"}', "UTF-8"),
    (b'{"text": "a"', "not JSON"),
    (b'{"text": "a"} {', "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b'["a"]', "list, expected an object"),
    (b'"a"', "str, expected an object"),
    (b'{"body": "a", "id": 2}', "no field 'text'; it has 'body', 'id'"),
    (b"{}", "it has none"),
    (b'{"text": null}', "null, expected text"),
    (b'{"text": 3}', "int, expected text"),
    (b'{"text": ["a"]}', "list, expected text"),
    (b'{"text": "\\ud800"}', "surrogate"),
]


@pytest.mark.parametrize(("line", "words"), BAD_LINES)
def test_a_bad_line_names_file_and_line(tmp_path, line, words):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "good"}\n\n' + line + b'\n{"text": "z"}\n')
    with pytest.raises(bf.FormatError) as caught:
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    assert f"{tmp_path / 'a.jsonl'}, line 3: " in str(caught.value)
    assert words in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("line", "words"), BAD_LINES)
def test_bad_lines_are_counted_when_skipped(tmp_path, line, words):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a"}\n' + line + b'\n{"text": "z"}\n')
    done = prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", errors="skip")
    assert documents(tmp_path / "out") == [[97], [122]]
    assert done.skipped == 1
    assert words in done.first_skipped
    assert "line 2" in done.first_skipped
    assert manifest.check(tmp_path / "out").provenance["inputs"][0]["skipped"] == 1


def test_surrogate_pairs_of_json_are_characters(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "\\ud83d\\ude00"}\n')
    prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    assert documents(tmp_path / "out") == [list("😀".encode())]


def test_a_text_file_that_is_not_utf8_names_the_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nthr\xe9e\n")
    (tmp_path / "b.txt").write_bytes(b"good")
    with pytest.raises(bf.FormatError, match=r"a\.txt: line 3 is not UTF-8"):
        prepare(tmp_path / "*.txt", tmp_path / "out", tokenizer="bytes")
    done = prepare(tmp_path / "*.txt", tmp_path / "out", tokenizer="bytes", errors="skip")
    assert (done.documents, done.skipped) == (1, 1)


def test_a_null_in_parquet_names_the_row(tmp_path):
    table = pa.table({"text": ["a", None, "b"]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    with pytest.raises(bf.FormatError, match=r"a\.parquet, row 1: .*null"):
        prepare(tmp_path / "a.parquet", tmp_path / "out", tokenizer="bytes")
    done = prepare(tmp_path / "a.parquet", tmp_path / "out", tokenizer="bytes", errors="skip")
    assert (documents(tmp_path / "out"), done.skipped) == ([[97], [98]], 1)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"body": ["a"]}, "no column 'text'; it has 'body'"),
        ({"text": [1]}, "int64, expected strings"),
        ({"text": [["a"]]}, "expected strings"),
        ({"text": [b"a"]}, "binary, expected strings"),
    ],
)
def test_a_parquet_without_a_text_column(tmp_path, column, words):
    pq.write_table(pa.table(column), tmp_path / "a.parquet")
    with pytest.raises(bf.FormatError, match=words):
        prepare(tmp_path / "a.parquet", tmp_path / "out", tokenizer="bytes", errors="skip")


def test_damaged_files_are_errors_whatever_is_skipped(tmp_path):
    pq.write_table(pa.table({"text": ["a" * 999] * 99}), tmp_path / "a.parquet")
    write_lines(tmp_path / "b.jsonl", [os.urandom(99).hex() for _ in range(99)])
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    (tmp_path / "c.txt.gz").write_bytes(b"no gzip")
    for name, size in (("a.parquet", 200), ("b.jsonl.gz", 2000), ("c.txt.gz", 7)):
        os.truncate(tmp_path / name, size)
        with pytest.raises(bf.FormatError, match=name):
            prepare(tmp_path / name, tmp_path / "out", tokenizer="bytes", errors="skip")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["a.json", "a.json.gz", "a.txt.zst", "a.tar", "a.zip", "p.parquet.gz"]
)
def test_files_that_do_not_tell_what_they_are(tmp_path, name):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(bf.FormatError, match=name):
        prepare(tmp_path, tmp_path / "out", tokenizer="bytes")


def test_a_declared_format_decides(tmp_path):
    (tmp_path / "a.json").write_text('{"text": "a"}\n{"text": "b"}\n')
    prepare(tmp_path / "a.json", tmp_path / "lines", tokenizer="bytes", format="jsonl")
    assert documents(tmp_path / "lines") == [[97], [98]]
    prepare(tmp_path / "a.json", tmp_path / "text", tokenizer="bytes", format="text")
    assert len(documents(tmp_path / "text")) == 1
    with pytest.raises(bf.FormatError, match="format='csv'"):
        prepare(tmp_path / "a.json", tmp_path / "x", tokenizer="bytes", format="csv")


def test_inputs_that_are_not_there(tmp_path):
    for name in ("a.txt", "*.txt", "no/where"):
        with pytest.raises(FileNotFoundError, match=name.replace("*", r"\*")):
            prepare(tmp_path / name, tmp_path / "out", tokenizer="bytes")
    (tmp_path / "empty").mkdir()
    with pytest.raises(bf.FormatError, match="no files"):
        prepare(tmp_path / "empty", tmp_path / "out", tokenizer="bytes")
    with pytest.raises(bf.FormatError, match="no inputs"):
        prepare([], tmp_path / "out", tokenizer="bytes")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(bf.FormatError, match="regular"):
        prepare(tmp_path / "pipe", tmp_path / "out", tokenizer="bytes")


def test_inputs_without_documents(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n\n")
    with pytest.raises(bf.FormatError, match=r"no documents in .*a\.jsonl"):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    (tmp_path / "a.jsonl").write_text("{\n")
    with pytest.raises(bf.FormatError, match=r"1 skipped: .*line 1"):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", errors="skip")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("tokenizer", "error", "words"),
    [
        ("no_such_encoding", bf.FormatError, "o200k_base"),
        ("no/such/file", FileNotFoundError, "no/such/file"),
        ("gone.json", FileNotFoundError, "gone.json"),
        (42, bf.FormatError, "int: expected"),
    ],
)
def test_tokenizers_that_are_none(tmp_path, tokenizer, error, words):
    write_lines(tmp_path / "a.jsonl", ["a"])
    with pytest.raises(error, match=words):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=tokenizer)


def test_a_json_that_is_no_tokenizer(tmp_path):
    for content in (b"{}", b"", b"\xff", b'{"model": {"type": "Nope"}}'):
        (tmp_path / "tokenizer.json").write_bytes(content)
        with pytest.raises(bf.FormatError, match=r"tokenizer\.json: not a tokenizer"):
            prepare(tmp_path, tmp_path / "out", tokenizer=tmp_path / "tokenizer.json")


@pytest.mark.parametrize("token", ["</s>", -1, True, 1.5])
def test_tokens_that_are_none(tmp_path, token):
    write_lines(tmp_path / "a.jsonl", ["a"])
    with pytest.raises(bf.FormatError, match="eos="):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", eos=token)


@pytest.mark.parametrize("ids", [[1.5], [70000], [-1], ["a"], [[1]]])
def test_a_tokenizer_that_gives_no_ids_of_the_dtype(tmp_path, ids):
    class Odd:
        vocab_size = 1000

        def encode(self, text):
            return ids if text == "bad" else [1]

    write_lines(tmp_path / "a.jsonl", ["good", "bad"])
    with pytest.raises(bf.FormatError):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=Odd())
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_that_fails_names_the_document(tmp_path):
    class Picky:
        def encode(self, text):
            if text == "bad":
                raise RuntimeError("no")
            return [1]

    write_lines(tmp_path / "a.jsonl", ["good", "fine", "bad"])
    with pytest.raises(bf.FormatError, match=r"a\.jsonl, line 3: the tokenizer failed.*no"):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=Picky())


def test_an_error_of_the_callback_leaves_nothing(tmp_path):
    def stop(progress):
        raise KeyboardInterrupt

    write_lines(tmp_path / "a.jsonl", ["a"])
    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", progress=stop)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_shards_is_refused_before_any_work(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["a"])
    prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    with pytest.raises(FileExistsError, match="another folder"):
        prepare(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
