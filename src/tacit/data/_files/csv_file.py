"""CSV files, with types forced by the schema."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, csv

from tacit.data._files import TableError

__all__ = ["NULLS", "CSVFile", "csv_header", "of_arrow"]

# Texts of numbers that are missing. In a column of categories only an empty cell is
NULLS = csv.ConvertOptions().null_values
DELIMITERS = (",", ";", "\t")
# Bytes of the beginning in which the header is looked for
HEAD = 2**16
# Bytes of the file parsed together
BLOCK = 2**20
NOT_CSV = (
    "the file cannot be read as CSV; give the delimiter if it is not one of comma, "
    "semicolon and tab."
)
# Codecs that can spell a line feed in other ways, or whose state outlasts a line
UNSAFE = re.compile(r"utf.7|.*unicode.escape|punycode|idna|hz|iso2022.*")
# The words of pyarrow about a cell, which come before what they quote of it
CONVERSION = re.compile(
    r"In CSV column #(\d+): CSV conversion error to [^:]*: invalid (UTF8 data)?"
)

Bytes = NDArray[np.uint8]
Positions = NDArray[np.intp]

QUOTE, NEWLINE = b'"\n'
QUOTES = (
    "a quote in it is not closed in its line, or does not enclose a whole cell; a "
    "quote in a cell is written twice, within quotes; export it without line breaks in "
    "cells, or save it as Parquet."
)
BREAKS = (
    "a line of it ends in a carriage return alone; export it without line breaks in "
    "cells, or save it as Parquet."
)
BLANK = "it has an empty line, and every line must be a row; remove empty lines."
UNENDED = (
    "its last line does not end in a line feed, so it may be cut off; end it "
    "with one, such as by `echo >> FILE`."
)
LONG = "a line of it is too long; leave out long texts, or save it as Parquet."


@dataclass(frozen=True)
class CSVFile:
    """A CSV file with a header."""

    path: Path
    names: list[str]
    encoding: str
    delimiter: str
    n_rows: int | None = None  # unknown before it is read

    @classmethod
    def open(cls, path: Path, encoding: str, delimiter: str | None) -> CSVFile:
        """Read the header."""
        with open(path, "rb") as opened:
            head = opened.read(HEAD)
        _, encoding, delimiter = csv_header(path, head, encoding, delimiter)
        file = cls(path, [], encoding, delimiter)
        with file._explained():
            first, _ = next(file._blocks())
            parsed = csv.read_csv(of_arrow(first), parse_options=file._parsing)
        return cls(path, parsed.column_names, encoding, delimiter)

    @property
    def schema(self) -> Any:
        """Types as the beginning of the file looks."""
        with self._explained():
            _, lines = next(self._blocks())
            return self._parsed(lines, csv.ConvertOptions()).schema

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
        with self._explained():
            for _, lines in self._blocks():
                if lines:
                    yield from self._parsed(lines, options).to_batches()

    @property
    def _parsing(self) -> Any:
        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=False)

    def _blocks(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the header, and lines of rows."""
        header = b""
        for lines in Lines(self.path, self.encoding, self.delimiter).blocks(BLOCK):
            end = 0 if header else lines.index(b"\n") + 1
            header = header or lines[:end]
            yield header, lines[end:]

    def _parsed(self, lines: bytes, options: Any) -> Any:
        """Return the table of some lines, each of which is a row of it."""
        n_lines = np.count_nonzero(np.frombuffer(lines, np.uint8) == NEWLINE)
        if lines.startswith(codecs.BOM_UTF8):
            # pyarrow drops a mark at the beginning of what it is given, and which line
            # is there depends on the lengths of those before it
            lines = codecs.BOM_UTF8 + lines
        reading = csv.ReadOptions(column_names=self.names, block_size=len(lines) + 1)
        table = csv.read_csv(of_arrow(lines), reading, self._parsing, options)
        if table.num_rows != n_lines:
            raise TableError(f"{self.path}: {NOT_CSV}")
        return table

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what pyarrow says, which quotes cells, into a sentence that does not."""
        try:
            yield
        except UnicodeError:
            words = wrong_encoding(self.encoding)
        except pa.ArrowException as error:
            words = self._sentence(str(error))
        else:
            return
        raise TableError(f"{self.path}: {words}") from None

    def _sentence(self, message: str) -> str:
        # all that follows is about what pyarrow wrote, as cells are quoted after it
        found = CONVERSION.match(message)
        if found and found.group(2):
            return wrong_encoding(self.encoding)
        if found and int(found.group(1)) < len(self.names):
            name = self.names[int(found.group(1))]
            return text_in_number(name)
        if message.startswith("Empty CSV"):
            return "the table has a header and no rows."
        if message.startswith("CSV parse error: Expected"):
            return (
                "the rows do not all have as many fields as the header; look for "
                "misplaced delimiters and quotes."
            )
        return NOT_CSV


def of_arrow(content: bytes) -> Any:
    """Return bytes in memory of pyarrow, whose threads may let go of them late.

    For bytes of Python they need its lock, and abort a process that ends meanwhile.
    """
    sink = pa.BufferOutputStream()
    sink.write(content)
    return sink.getvalue()


def text_in_number(name: str) -> str:
    """Return the sentence about text in a column of numbers."""
    return (
        f"column {name!r} holds text that is no number; correct the file, or, if it "
        'has a schema, make it a column of kind "category".'
    )


def as_number(path: Path, name: str, texts: Any) -> Any:
    """Return texts of a CSV file as numbers, by the rules of the reader."""
    missing = compute.is_in(texts, value_set=pa.array(NULLS, pa.string()))
    plain = compute.if_else(missing, None, compute.utf8_trim_whitespace(texts))
    try:
        return plain.cast(pa.float64())
    except pa.ArrowInvalid:
        raise TableError(f"{path}: {text_in_number(name)}") from None


def csv_header(
    path: Path, head: bytes, encoding: str, delimiter: str | None
) -> tuple[str, str, str]:
    """Return the first line of a file, its encoding, and what separates its fields."""
    encoding = _known(encoding)
    if delimiter is not None and not _separates(delimiter):
        raise TableError("delimiter must be one character of ASCII, and no quote.")
    header = _header(path, head, encoding)
    if not header.strip():
        raise TableError(f"{path}: the file has no header in its first line.")
    if delimiter is None:
        # in names that are quoted they stand for themselves
        bare = re.sub(r'"[^"]*"', "", header)
        delimiter = max(DELIMITERS, key=bare.count)
    return header, encoding, delimiter


def _known(encoding: str) -> str:
    try:
        "a".encode(encoding)  # some that Python knows are not of text
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError, UnicodeError):
        raise TableError(
            f"encoding must be one that Python knows, got {encoding!r}."
        ) from None
    if UNSAFE.fullmatch(name):
        raise TableError(
            f"encoding must be one that reads each line by itself, got {encoding!r}; "
            "save the file as UTF-8."
        )
    return "utf8" if name in ("utf-8", "ascii", "utf-8-sig") else name


def _separates(delimiter: str) -> bool:
    return len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\n\r\0'


def _header(path: Path, head: bytes, encoding: str) -> str:
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head
    if encoding == "utf8" and wide:
        raise TableError(f"{path}: {wrong_encoding(encoding)}")
    try:
        # the last character may be cut off
        text = codecs.getincrementaldecoder(encoding)().decode(head)
        line = text.partition("\n")[0]
    except UnicodeError as error:
        # below the header, the column that is wrong can be named
        start = getattr(error, "start", 0)
        if encoding != "utf8" or b"\n" not in head[:start]:
            raise TableError(f"{path}: {wrong_encoding(encoding)}") from None
        line = head[: head.index(b"\n")].decode()
    return line


class Lines:
    """The lines of a file as UTF-8, each checked before anybody reads it.

    A reader of CSV takes a quote that is not closed for the beginning of a text that
    goes on in the next lines: one cell could swallow the rows of others, or bring rows
    of its own. So a quote must open at the beginning of a cell and close at its end in
    the same line, and nothing but a line feed ends a line. Every line is a row, so an
    empty one is an error wherever it is, and so is a last line without a line feed: if
    it were a row, replacing it by an empty one would remove it. The delimiter is one
    letter of ASCII.

    Notes
    -----
    **Guarantee.** Every line that is passed on is a row of its own: what is in it
    changes neither another row nor the number of rows.
    """

    def __init__(self, path: Path, encoding: str, delimiter: str) -> None:
        self._path, self._encoding = path, encoding
        self._delimiter = ord(delimiter)
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._begun = self._ended = False
        self._rest = b""

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield whole lines, about so many bytes at a time."""
        with open(self._path, "rb") as file:
            while not self._ended:
                lines = self._whole_lines(file, size)
                if lines:
                    yield self._checked(lines, size)

    def _whole_lines(self, file: IO[bytes], size: int) -> bytes:
        """Read on, and leave the beginning of a line for the next time."""
        if len(self._rest) >= size:
            self._reject(LONG)
        raw = file.read(size - len(self._rest))
        self._ended = not raw
        if self._encoding != "utf8":
            raw = self._decoder.decode(raw, self._ended).encode()
        text = self._rest + raw
        if self._ended and text:
            if self._begun:
                self._reject(UNENDED)
            text += b"\n"  # a header without rows
        end = text.rfind(b"\n") + 1
        self._rest = text[end:]
        if end and not self._begun:
            self._begun = True
            return text[:end].removeprefix(codecs.BOM_UTF8)
        return text[:end]

    def _checked(self, lines: bytes, size: int) -> bytes:
        """Return lines that all end in a line feed alone, or reject them."""
        if b"\0" in lines:
            self._reject(wrong_encoding(self._encoding))
        if b"\r" in lines:
            bare = lines.replace(b"\r\n", b"\n")
            if b"\r" in bare:
                self._reject(BREAKS)
            lines = bare
        # numpy finds two letters in a row several times faster than bytes do
        letters = np.frombuffer(lines, dtype=np.uint8)
        ends = np.flatnonzero(letters == NEWLINE)
        lengths = np.diff(ends, prepend=-1)
        if lengths.min() == 1:
            self._reject(BLANK)
        # other encodings take fewer bytes, so that one may have come in as a whole
        if lengths.max() > size:
            self._reject(LONG)
        if b'"' in lines:
            self._check_quotes(letters, ends)
        return lines

    def _check_quotes(self, letters: Bytes, ends: Positions) -> None:
        quotes = np.flatnonzero(letters == QUOTE)
        if (np.searchsorted(quotes, ends) % 2).any():
            self._reject(QUOTES)
        # every line has an even number by now, so that they open and close in turn
        opens, closes = quotes[::2], quotes[1::2]
        apart = closes[:-1] + 1 != opens[1:]  # else a quote inside a text
        opens = opens[np.concatenate([[True], apart])]
        closes = closes[np.concatenate([apart, [True]])]
        # the last letter ends a line, and so does what comes before the first
        around = np.concatenate([letters[opens - 1], letters[closes + 1]])
        if ((around != self._delimiter) & (around != NEWLINE)).any():
            self._reject(QUOTES)

    def _reject(self, words: str) -> NoReturn:
        raise TableError(f"{self._path}: {words}")


def wrong_encoding(encoding: str) -> str:
    """Return the sentence about text in another encoding."""
    return (
        f"the file is not text in {encoding}; give its encoding, such as latin-1 or "
        "utf-16, or save it as UTF-8."
    )
