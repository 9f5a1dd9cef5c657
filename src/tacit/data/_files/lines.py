"""CSV text in which a line is a row, whatever is in its cells."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.data._files.errors import TableError

__all__ = ["NEWLINE", "Lines", "wrong_encoding"]

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


def wrong_encoding(encoding: str) -> str:
    """Return the sentence about text in another encoding."""
    return (
        f"the file is not text in {encoding}; give its encoding, such as latin-1 or "
        "utf-16, or save it as UTF-8."
    )


class Lines:
    """The lines of a file as UTF-8, each checked before anybody reads it.

    A reader of CSV takes a quote that is not closed for the beginning of a text that
    goes on in the next lines: one cell could swallow the rows of others, or bring rows
    of its own. So a quote must open at the beginning of a cell and close at its end in
    the same line, and nothing but a line feed ends a line. Every line is a row, so an
    empty one is an error wherever it is, and so is a last line without a line feed: if
    it were a row, replacing it by an empty one would remove it.

    Parameters
    ----------
    path, encoding
        Of the file.
    delimiter
        One letter of ASCII.

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
        """Return lines that all end in a line feed alone, or refuse them."""
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
