"""The documents of an input file, one at a time, with what is wrong with the bad ones."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from brimful._core import FormatError
from brimful.extras import require
from brimful.prepare.inputs import Input

_BUFFER = 1 << 20
_PARQUET_ROWS = 1024
_BOM = b"\xef\xbb\xbf"


class Item(NamedTuple):
    """A document, or why there is none; `place` names file and line or row."""

    place: str
    text: str
    problem: str | None = None


class Reader:
    """Reads one file. `bytes_read` and, at the end, `xxh3` speak of the bytes on disk."""

    def __init__(self, input: Input, field: str) -> None:
        self.input = input
        self.bytes_read = 0
        self._field = field
        self._hash = require("xxhash", "prepare", "preparing text").xxh3_64()

    @property
    def xxh3(self) -> str:
        return str(self._hash.hexdigest())

    def items(self) -> Iterator[Item]:
        """Documents in the order of the file; bad ones are items with a problem.

        Raises:
            FormatError: the file as a whole cannot be read as what it is.
        """
        if self.input.format == "parquet":
            return self._parquet()
        return self._text_or_lines()

    def _text_or_lines(self) -> Iterator[Item]:
        with self.input.path.open("rb", buffering=0) as raw:
            counted = io.BufferedReader(_Counted(raw, self), _BUFFER)
            file = gzip.GzipFile(fileobj=counted) if self.input.gzipped else counted
            try:
                if self.input.format == "text":
                    yield self._text(file.read())
                else:
                    yield from self._lines(file)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise FormatError(f"{self.input.path}: not a whole gzip file ({error})") from None

    def _text(self, data: bytes) -> Item:
        place = str(self.input.path)
        try:
            return Item(place, data.decode())
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            return Item(place, "", f"line {line} is not UTF-8 ({error.reason}, byte {error.start})")

    def _lines(self, file: Any) -> Iterator[Item]:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(_BOM)
            if line.strip():
                yield self._line(line, f"{self.input.path}, line {number}")

    def _line(self, line: bytes, place: str) -> Item:
        try:
            record = json.loads(line.decode())
        except UnicodeDecodeError as error:
            return Item(place, "", f"not UTF-8 ({error.reason}, byte {error.start} of the line)")
        except (ValueError, RecursionError) as error:
            return Item(place, "", f"not JSON ({error})")
        if not isinstance(record, dict):
            return Item(place, "", f"{type(record).__name__}, expected an object")
        if self._field not in record:
            return Item(place, "", f"no field {self._field!r}; it has {_some(record)}")
        text = record[self._field]
        if not isinstance(text, str):
            return Item(place, "", f"field {self._field!r} is {_kind(text)}, expected text")
        if b"\\u" in line and not _is_encodable(text):
            return Item(place, "", f"field {self._field!r} has half of a surrogate pair")
        return Item(place, text)

    def _parquet(self) -> Iterator[Item]:
        parquet = require("pyarrow.parquet", "prepare", "reading parquet")
        arrow = require("pyarrow", "prepare", "reading parquet")
        path = self.input.path
        self._hash_file(path)
        try:
            file = parquet.ParquetFile(path)
            self._check_column(file.schema_arrow, arrow)
            rows, row = max(file.metadata.num_rows, 1), 0
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=[self._field]):
                for value in batch.column(0):
                    yield self._value(value, f"{path}, row {row}")
                    row += 1
                self.bytes_read = self.input.bytes * row // rows
        except (arrow.ArrowInvalid, OSError) as error:
            raise FormatError(f"{path}: not a whole parquet file ({error})") from None

    def _check_column(self, schema: Any, arrow: Any) -> None:
        if self._field not in schema.names:
            raise FormatError(
                f"{self.input.path}: no column {self._field!r}; it has {_some(schema.names)}"
            )
        kind = schema.field(self._field).type
        inner = kind.value_type if arrow.types.is_dictionary(kind) else kind
        if not (arrow.types.is_string(inner) or arrow.types.is_large_string(inner)):
            raise FormatError(
                f"{self.input.path}: column {self._field!r} is {kind}, expected strings"
            )

    def _value(self, value: Any, place: str) -> Item:
        try:
            text = value.as_py()
        except UnicodeDecodeError as error:
            return Item(place, "", f"not UTF-8 ({error.reason}, byte {error.start} of the text)")
        if text is None:
            return Item(place, "", f"column {self._field!r} is null, expected text")
        return Item(place, text)

    def _hash_file(self, path: Path) -> None:
        """Parquet is read out of order, so its checksum is a reading of its own."""
        with path.open("rb") as file:
            while data := file.read(_BUFFER):
                self._hash.update(data)


class _Counted(io.RawIOBase):
    """Tells a reader of every byte that passes."""

    def __init__(self, raw: Any, reader: Reader) -> None:
        self._raw = raw
        self._reader = reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._raw.readinto(buffer)
        self._reader._hash.update(memoryview(buffer)[:count])
        self._reader.bytes_read += count
        return int(count)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__


def _some(names: Any) -> str:
    shown = [repr(name) for name in list(names)[:8]]
    return (", ".join(shown) or "none") + (", ..." if len(names) > 8 else "")
