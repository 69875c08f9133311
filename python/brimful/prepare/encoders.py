"""Tokenizers of every kind as one: texts in, arrays of ids out, with what identifies them."""

from __future__ import annotations

import importlib
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful._core import FormatError, ReadError
from brimful.extras import require
from brimful.tokens import integer_array

Ids = npt.NDArray[Any]


class Encoder(ABC):
    """A tokenizer. Text is text: a special token is only made of it when `parse_special` is set."""

    vocab_size: int | None  # the largest id plus one, where it can be told
    threads_itself = False  # whether one call uses all cores

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of each text. Called from several threads at once."""

    @abstractmethod
    def find_token(self, text: str) -> int | None:
        """The id of one token by its text, such as "<|endoftext|>"."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What tells this tokenizer from others, for the manifest."""


class ByteEncoder(Encoder):
    """The bytes of UTF-8, ids 0 to 255."""

    vocab_size = 256

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def find_token(self, text: str) -> int | None:
        return None

    def identity(self) -> dict[str, Any]:
        return {"kind": "bytes"}


class HuggingFaceEncoder(Encoder):
    """A Hugging Face tokenizer from the JSON that defines it, without its truncation, padding and
    template: these would cut documents or add to them.
    """

    threads_itself = True

    def __init__(self, definition: str, origin: str, parse_special: bool) -> None:
        package = require("tokenizers", "prepare", "a tokenizer.json")
        try:
            tokenizer = package.Tokenizer.from_str(definition)
        except Exception as error:  # the package has no class of its own for this
            raise FormatError(f"{origin}: not a tokenizer of Hugging Face ({error})") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = not parse_special
        self._tokenizer = tokenizer
        self._identity = {
            "kind": "huggingface",
            "origin": origin,
            "xxh3": _xxh3(definition.encode()),
            "package": f"tokenizers {package.__version__}",
        }
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values(), default=-1) + 1

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, np.uint32) for encoding in encodings]

    def find_token(self, text: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(text)
        return found

    def identity(self) -> dict[str, Any]:
        return self._identity


class TiktokenEncoder(Encoder):
    """An encoding of tiktoken."""

    def __init__(self, encoding: Any, parse_special: bool) -> None:
        self._encoding = encoding
        self._parse_special = parse_special
        self.vocab_size = encoding.n_vocab

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        ids = (
            self._encoding.encode(text, allowed_special="all")
            if self._parse_special
            else self._encoding.encode_ordinary(text)
            for text in texts
        )
        return [np.array(document, np.uint32) for document in ids]

    def find_token(self, text: str) -> int | None:
        try:
            found: int = self._encoding.encode_single_token(text)
        except KeyError:
            return None
        return found

    def identity(self) -> dict[str, Any]:
        package = require("tiktoken", "prepare", "an encoding")
        words = [struct.pack("<I", len(word)) + word for word in self._encoding.token_byte_values()]
        return {
            "kind": "tiktoken",
            "name": self._encoding.name,
            "xxh3": _xxh3(b"".join(words)),
            "package": f"tiktoken {package.__version__}",
        }


class ObjectEncoder(Encoder):
    """Anything with `encode(text)` that gives a list of ids."""

    def __init__(self, tokenizer: Any) -> None:
        self._encode = getattr(tokenizer, "encode_ordinary", tokenizer.encode)
        self._name = f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"
        size = getattr(tokenizer, "n_vocab", getattr(tokenizer, "vocab_size", None))
        self.vocab_size = size if isinstance(size, int) else None

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        return [integer_array(self._encode(text), "ids of the tokenizer") for text in texts]

    def find_token(self, text: str) -> int | None:
        return None

    def identity(self) -> dict[str, Any]:
        return {"kind": "object", "name": self._name}


def load_encoder(tokenizer: Any, *, parse_special: bool = False) -> Encoder:
    """The encoder of a tokenizer, however it is given; see `prepare`."""
    if isinstance(tokenizer, Encoder):
        return tokenizer
    if isinstance(tokenizer, str | os.PathLike):
        return _named(os.fspath(tokenizer), parse_special)
    module = type(tokenizer).__module__.split(".")[0]
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)  # of transformers
    if type(backend).__module__.split(".")[0] == "tokenizers":
        origin = str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
        return HuggingFaceEncoder(backend.to_str(), origin, parse_special)
    if module == "tiktoken":
        return TiktokenEncoder(tokenizer, parse_special)
    if module == "bpe_openai":
        return TiktokenEncoder(_encoding(tokenizer.name), parse_special)
    if hasattr(tokenizer, "name_or_path"):
        raise FormatError(
            f"tokenizer is {type(tokenizer).__name__}, a slow one of transformers; "
            "use its fast kind"
        )
    if not callable(getattr(tokenizer, "encode", None)):
        raise FormatError(
            f"tokenizer is {type(tokenizer).__name__}: expected a tokenizer.json, the name of an "
            'encoding, "bytes", or an object with encode(text)'
        )
    if parse_special:
        raise FormatError("special tokens in texts are the affair of a tokenizer that is an object")
    return ObjectEncoder(tokenizer)


def _named(name: str, parse_special: bool) -> Encoder:
    if name == "bytes":
        return ByteEncoder()
    path = Path(name)
    if path.is_dir():
        path = path / "tokenizer.json"
    if path.exists() or path.suffix == ".json" or len(path.parts) > 1:
        try:
            definition = path.read_bytes().decode()
        except UnicodeDecodeError:
            raise FormatError(f"{path}: not a tokenizer of Hugging Face (not UTF-8)") from None
        return HuggingFaceEncoder(definition, str(path), parse_special)
    return TiktokenEncoder(_encoding(name), parse_special)


def _encoding(name: str) -> Any:
    """An encoding of tiktoken by name; its tables come from bpe-openai where that has them, because
    tiktoken itself downloads them.
    """
    tiktoken = require("tiktoken", "prepare", f"the encoding {name}")
    if name not in tiktoken.list_encoding_names():
        raise FormatError(
            f'tokenizer={name!r}: no file, not "bytes", and no encoding of tiktoken, which has '
            + ", ".join(tiktoken.list_encoding_names())
        )
    if name in ("o200k_base", "cl100k_base"):
        try:
            tables = importlib.import_module("bpe_openai.registry").ENCODING_CONSTRUCTORS
        except ModuleNotFoundError:
            pass
        else:
            return tiktoken.Encoding(**tables[name]())
    try:
        return tiktoken.get_encoding(name)
    except OSError as error:  # every error of the network is one
        raise ReadError(
            f"tiktoken could not fetch the encoding {name} ({error}); go online once, or install "
            "bpe-openai, which carries o200k_base and cl100k_base"
        ) from None


def _xxh3(data: bytes) -> str:
    return str(require("xxhash", "prepare", "preparing text").xxh3_64_hexdigest(data))
