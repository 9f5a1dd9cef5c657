"""CSV files, with types forced by the schema."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, csv

from tacit.tables._errors import TableError

__all__ = ["NULLS", "CSVFile"]

# Texts of numbers that are missing. In a column of categories only an empty cell is
NULLS = csv.ConvertOptions().null_values
DELIMITERS = (",", ";", "\t")
# Bytes of the beginning in which the header is looked for
HEAD = 2**16
# Bytes of the file parsed together
BLOCK = 2**20
CONVERSION = re.compile(r"In CSV column #(\d+): (.*)", re.DOTALL)


@dataclass(frozen=True)
class CSVFile:
    """A CSV file with a header."""

    path: Path
    names: list[str]
    encoding: str
    delimiter: str
    n_rows: int | None = None  # only reading tells

    @classmethod
    def open(cls, path: Path, encoding: str, delimiter: str | None) -> CSVFile:
        """Read the header."""
        encoding = _known(encoding)
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\n\r'):
            raise TableError("delimiter must be one character, and no quote.")
        with open(path, "rb") as opened:
            head = opened.read(HEAD)
        header = _header(path, head, encoding)
        if not header.strip():
            raise TableError(f"{path}: the file has no header in its first line.")
        if delimiter is None:
            # in names that are quoted they stand for themselves
            bare = re.sub(r'"[^"]*"', "", header)
            delimiter = max(DELIMITERS, key=bare.count)
        file = cls(path, [], encoding, delimiter)
        with file._explained(), file._reader(csv.ConvertOptions()) as reader:
            names = list(reader.schema.names)
        return cls(path, names, encoding, delimiter)

    @property
    def schema(self) -> Any:
        """Types as the beginning of the file looks."""
        with self._explained(), self._reader(csv.ConvertOptions()) as reader:
            return reader.schema

    def read(self, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Yield batches of the columns named; a block is parsed whole, however long."""
        types = {
            "number": pa.float64(),
            "category": pa.dictionary(pa.int32(), pa.string()),
            "raw": pa.string(),
        }
        options = csv.ConvertOptions(
            column_types={name: types[kind] for name, kind in kinds.items()},
            include_columns=list(kinds),
            null_values=NULLS,
        )
        with self._explained(), self._reader(options) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield batch

    def _reader(self, options: Any) -> Any:
        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(encoding=self.encoding, block_size=BLOCK),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True
            ),
            convert_options=options,
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what pyarrow says, which quotes cells, into a sentence that does not."""
        try:
            yield
        except UnicodeError:
            words = _wrong_encoding(self.encoding)
        except pa.ArrowException as error:
            words = self._sentence(str(error))
        else:
            return
        raise TableError(f"{self.path}: {words}") from None

    def _sentence(self, message: str) -> str:
        found = CONVERSION.match(message)
        if "UTF8" in message:
            return _wrong_encoding(self.encoding)
        if found and int(found.group(1)) < len(self.names):
            name = self.names[int(found.group(1))]
            return text_in_number(name)
        if "Empty CSV" in message:
            return "the table has a header and no rows."
        if "CSV" not in message and self.encoding != "utf8":
            return _wrong_encoding(self.encoding)
        if "Expected" in message:
            return (
                "the rows do not all have as many fields as the header; look for "
                "stray delimiters and quotes."
            )
        return (
            "the file cannot be read as CSV; look for quotes that are not closed, and "
            "give the delimiter if it is not one of comma, semicolon and tab."
        )


def text_in_number(name: str) -> str:
    """Return the sentence about text in a column of numbers."""
    return (
        f"column {name!r} holds text where the schema has a number; mend the file, or "
        'make it a column of kind "category".'
    )


def as_number(path: Path, name: str, texts: Any) -> Any:
    """Return texts of a CSV file as numbers, by the rules of the reader."""
    missing = compute.is_in(texts, value_set=pa.array(NULLS, pa.string()))
    plain = compute.if_else(missing, None, compute.utf8_trim_whitespace(texts))
    try:
        return plain.cast(pa.float64())
    except pa.ArrowInvalid:
        raise TableError(f"{path}: {text_in_number(name)}") from None


def _known(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise TableError(
            f"encoding must be one that Python knows, got {encoding!r}."
        ) from None
    return "utf8" if name in ("utf-8", "ascii", "utf-8-sig") else name


def _wrong_encoding(encoding: str) -> str:
    return (
        f"the file is not text in {encoding}; give its encoding, such as latin-1 or "
        "utf-16, or save it as UTF-8."
    )


def _header(path: Path, head: bytes, encoding: str) -> str:
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head
    if encoding == "utf8" and wide:
        raise TableError(f"{path}: {_wrong_encoding(encoding)}")
    try:
        # the last character may be cut off
        text = codecs.getincrementaldecoder(encoding)().decode(head)
        line = (text.splitlines() or [""])[0]
    except UnicodeError as error:
        # below the header, the column that is wrong can be named
        start = getattr(error, "start", 0)
        if encoding != "utf8" or b"\n" not in head[:start]:
            raise TableError(f"{path}: {_wrong_encoding(encoding)}") from None
        line = head[: head.index(b"\n")].decode()
    return line
