"""What benchmarks share that end in a page of figures: rows, tables and pages.

A module of such a benchmark has ``main(argv)``: it measures, prints a table in Markdown
and writes the same rows to ``results/<name>.csv`` of its package, which the report of
that package reads.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
START, END = "<!-- measured -->", "<!-- /measured -->"


def arguments(
    argv: Sequence[str] | None, description: str | None
) -> argparse.Namespace:
    """Return the options that every module has: ``quick``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="smaller and fewer, in a few seconds"
    )
    return parser.parse_args(argv)


def code_of(files: Iterable[Path]) -> str:
    """Return a digest of some files of code."""
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


@dataclass
class Results:
    """Tables of a package of benchmarks in its folder ``results``."""

    folder: Path

    @classmethod
    def beside(cls, module: str) -> Results:
        """Return the results of the package that a file is in."""
        return cls(Path(module).resolve().parent / "results")

    def save(
        self, name: str, rows: Iterable[Mapping[str, Any]], *, quick: bool
    ) -> Path:
        """Write rows with the same fields, in place of those of the last run.

        Those of a quick run are marked, so that no page takes them for the whole.
        """
        rows = [{**row, "quick": "yes" if quick else None} for row in rows]
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    def read(self, name: str) -> list[dict[str, str]]:
        """Return the rows that were written, as text; none if nothing was measured."""
        path = self.folder / f"{name}.csv"
        if not path.is_file():
            return []
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    def measured(self, name: str, *, whole: bool) -> list[dict[str, str]]:
        """Return the rows that were written, and end where there are none.

        With ``whole`` those of a quick run will not do, as they are too small to be
        shown.
        """
        rows, package = self.read(name), self.folder.parent.name
        if not rows or (whole and any(row.get("quick") for row in rows)):
            wrong = "of a quick run" if rows else "missing"
            raise SystemExit(
                f"benchmarks/{package}/results/{name}.csv is {wrong}: run "
                f"python -m benchmarks.{package}.{name} first."
            )
        return rows

    def log(
        self,
        name: str,
        fields: Sequence[str],
        holds: Callable[[Mapping[str, str]], bool],
        *,
        quick: bool,
    ) -> Log:
        """Return a log whose rows of the last run stay where ``holds`` is true."""
        mark = "yes" if quick else ""
        rows = [row for row in self.read(name) if row["quick"] == mark and holds(row)]
        self.folder.mkdir(exist_ok=True)
        return Log(self.folder / f"{name}.csv", fields, rows, mark)


class Log:
    """Rows that reach a file one by one, so that a run can be stopped."""

    def __init__(
        self, path: Path, fields: Sequence[str], rows: list[dict[str, str]], mark: str
    ) -> None:
        self._mark, self.rows = mark, rows
        self._file = path.open("w", newline="")
        self._writer = csv.DictWriter(self._file, [*fields, "quick"], restval="")
        self._writer.writeheader()
        self._writer.writerows(self.rows)
        self._file.flush()

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one more row."""
        text = {
            name: "" if value is None else str(value) for name, value in row.items()
        }
        text["quick"] = self._mark
        self._writer.writerow(text)
        self._file.flush()
        self.rows.append(text)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as a table; numbers in four digits."""
    rows = list(rows)
    if not rows:
        return ""
    lines = ["| " + " | ".join(str(name).replace("_", " ") for name in rows[0]) + " |"]
    lines.append("| --- " * len(rows[0]) + "|")
    for row in rows:
        lines.append("| " + " | ".join(shown(value) for value in row.values()) + " |")
    return "\n".join(lines)


def shown(value: Any) -> str:
    """Return a number in four digits, whole ones with commas, and text as it is."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return "" if value is None else str(value)
    if number != number or number in (float("inf"), float("-inf")):
        return str(value)
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


@dataclass(frozen=True)
class Section:
    """One file of results and what a reader has to know about it.

    Rows are divided into tables by their ``part``, where they have one. With a column
    named, only rows that have something in it are shown.
    """

    name: str
    title: str
    words: str
    spread: tuple[str, str] | None = None
    with_column: str | None = None

    def lines(self, rows: list[dict[str, str]]) -> list[str]:
        """Return a title, the words and the tables of these rows."""
        lines = [f"## {self.title}", "", self.words, ""]
        parts: dict[str, list[dict[str, str]]] = {}
        for row in rows:
            parts.setdefault(row.pop("part", ""), []).append(row)
        for part, table in parts.items():
            if part:
                lines += [f"### {part.capitalize()}", ""]
            found = filled(
                [row for row in table if not self.with_column or row[self.with_column]]
            )
            if self.spread is not None:
                found = spread(found, *self.spread)
            lines += [markdown(found), ""]
        return lines


def filled(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return rows without the columns in which none of them has anything."""
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    return [{name: row[name] for name in names} for row in rows]


def spread(rows: list[dict[str, str]], over: str, value: str) -> list[dict[str, str]]:
    """Return a row for all values of ``over``, each of which becomes a column.

    Columns after ``value``, such as times, are left out.
    """
    names = list(rows[0])
    keys = [name for name in names[: names.index(value)] if name != over]
    columns = sorted({row[over] for row in rows}, key=_position)
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        empty = dict(zip(keys, key, strict=True)) | dict.fromkeys(columns, "")
        found.setdefault(key, empty)[row[over]] = row[value]
    return list(found.values())


def _position(text: str) -> tuple[bool, float]:
    """Return where a column goes: numbers by size, then words."""
    try:
        return False, float(text)
    except ValueError:
        return True, 0.0


def rewrite(page: Path, lines: Sequence[str]) -> None:
    """Put lines in the place of what a page has between its two marks."""
    text = page.read_text()
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    page.write_text("\n".join([before + START, "", *lines, END]) + after)


def print_report(
    argv: Sequence[str] | None,
    description: str | None,
    page: Callable[..., Sequence[str]],
    write: Callable[[Sequence[str]], None],
) -> None:
    """Print a page of tables, and write it to the documentation if asked."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--docs", action="store_true")
    docs = parser.parse_args(argv).docs
    lines = page(whole=docs)
    print("\n".join(lines))
    if docs:
        write(lines)
