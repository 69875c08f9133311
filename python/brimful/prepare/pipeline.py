"""`prepare`: texts in, shards out, and in their manifest where they come from."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError
from brimful.prepare.batches import Encoded, Reading, encode_batches
from brimful.prepare.encoders import Encoder, load_encoder
from brimful.prepare.inputs import Input, find_inputs
from brimful.shards import MAX_SHARD_BYTES, ShardWriter


@dataclass(frozen=True)
class Progress:
    """How far `prepare` is, told after every batch that was written."""

    file: Path  # being read
    bytes: int  # of the inputs, read
    total_bytes: int  # of the inputs
    documents: int
    tokens: int
    skipped: int  # bad documents


@dataclass(frozen=True)
class Prepared:
    """What `prepare` has written."""

    folder: Path
    dtype: str
    documents: int
    tokens: int
    bytes: int  # of the inputs
    skipped: int  # bad documents, with errors="skip"
    first_skipped: str | None  # where the first of them is and what is wrong with it
    seconds: float


def prepare(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    tokenizer: Any,
    format: Literal["text", "jsonl", "parquet"] | None = None,
    field: str = "text",
    bos: int | str | None = None,
    eos: int | str | None = None,
    parse_special: bool = False,
    dtype: npt.DTypeLike | None = None,
    errors: Literal["error", "skip"] = "error",
    num_threads: int | None = None,
    max_shard_bytes: int = MAX_SHARD_BYTES,
    progress: Callable[[Progress], None] | None = None,
) -> Prepared:
    """Tokenize texts into a folder of shards. Documents keep the order of the inputs.

    Args:
        inputs: files, glob patterns and folders. A text file is one document; a file of JSON lines
            or parquet has one a line or row. Text is UTF-8, taken as it is.
        out: the folder of the shards; see `ShardWriter`.
        tokenizer: a Hugging Face `tokenizer.json` or the folder that has it; the name of a tiktoken
            encoding, such as "o200k_base"; "bytes" (ids 0 to 255); or an object: a tokenizer of
            `tokenizers`, `transformers`, `tiktoken` or `bpe_openai`, or any with `encode(text)`.
        format: what all files are; None tells by the name (.jsonl, .ndjson, .parquet, else text).
        field: the field of JSON lines, or the column of parquet, that holds the text.
        bos: put before each document: an id, or the text of a token such as "<|endoftext|>".
        eos: put after each document, likewise. It is kept in the manifest.
        parse_special: whether the text of a special token inside a document becomes that token.
            By default it is ordinary text, so that no document can end itself.
        dtype: of the tokens on disk; None takes the smallest of uint8, uint16 and int32 that holds
            every id of the tokenizer.
        errors: what a bad document does (bytes that are not UTF-8, a line that is not JSON, a
            field that is missing or no text): "error" raises, "skip" leaves it out and counts it.
        num_threads: threads that encode; None is one a core. A Hugging Face tokenizer uses threads
            of its own, whose number RAYON_NUM_THREADS sets.
        max_shard_bytes: see `ShardWriter`.
        progress: called with a `Progress` after every batch.

    Raises:
        FormatError: a bad document, with its file and line or row; a token that the tokenizer does
            not have; inputs without any document.
        FileNotFoundError: an input or the tokenizer is not there.
        FileExistsError: `out` holds shards already.
    """
    began = time.perf_counter()
    if errors not in ("error", "skip"):
        raise FormatError(f'errors={errors!r}: expected "error" or "skip"')
    encoder = load_encoder(tokenizer, parse_special=parse_special)
    bos_id, eos_id = _token(encoder, "bos", bos), _token(encoder, "eos", eos)
    identity = encoder.identity() | {
        "vocab_size": _vocab_size(encoder, bos_id, eos_id),
        "bos": bos_id,
        "eos": eos_id,
        "parse_special": parse_special,
    }
    files = find_inputs(inputs, format)
    total_bytes = sum(file.bytes for file in files)
    reading = Reading(files, field, skip=errors == "skip")
    encoded = encode_batches(
        reading.batches(), encoder, bos_id, eos_id, num_threads or len(os.sched_getaffinity(0))
    )
    writer = ShardWriter(
        out,
        dtype=_smallest_dtype(identity["vocab_size"]) if dtype is None else dtype,
        max_shard_bytes=max_shard_bytes,
        tokenizer=identity,
    )
    with writer, closing(encoded):
        for part in encoded:
            writer.add_batch(part.tokens, part.lengths)
            reading.count(part)
            if progress is not None:
                progress(_progress(part, files, writer, total_bytes))
        if writer.num_documents == 0:
            why = f" ({reading.skipped} skipped: {reading.first_skipped})" * bool(reading.skipped)
            raise FormatError(f"no documents in {_names(files)}{why}")
        writer.provenance = {
            "inputs": [tally.to_json() for tally in reading.tallies],
            "settings": {
                "format": format,
                "field": field,
                "errors": errors,
                "max_shard_bytes": max_shard_bytes,
            },
            "versions": {"python": platform.python_version(), "numpy": np.__version__},
        }
    return Prepared(
        folder=Path(out),
        dtype=writer.dtype,
        documents=writer.num_documents,
        tokens=writer.num_tokens,
        bytes=total_bytes,
        skipped=reading.skipped,
        first_skipped=reading.first_skipped,
        seconds=time.perf_counter() - began,
    )


def _token(encoder: Encoder, argument: str, token: int | str | None) -> int | None:
    if token is None or (isinstance(token, int) and not isinstance(token, bool) and token >= 0):
        return token
    if not isinstance(token, str):
        raise FormatError(f"{argument}={token!r}: expected an id or the text of a token")
    found = encoder.find_token(token)
    if found is None:
        raise FormatError(
            f"{argument}={token!r}: the tokenizer has no such token; give its id, a number"
        )
    return found


def _vocab_size(encoder: Encoder, *ids: int | None) -> int | None:
    if encoder.vocab_size is None:
        return None
    return max(encoder.vocab_size, *(0 if id is None else id + 1 for id in ids))


def _smallest_dtype(vocab_size: int | None) -> str:
    if vocab_size is None or vocab_size > 1 << 16:
        return "int32"
    return "uint8" if vocab_size <= 1 << 8 else "uint16"


def _progress(part: Encoded, files: list[Input], writer: ShardWriter, total_bytes: int) -> Progress:
    return Progress(
        file=files[part.batch.sources[-1]].path,
        bytes=part.batch.bytes_read,
        total_bytes=total_bytes,
        documents=writer.num_documents,
        tokens=writer.num_tokens,
        skipped=part.batch.skipped,
    )


def _names(files: list[Input]) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(str(file.path) for file in files[:3]) + more
