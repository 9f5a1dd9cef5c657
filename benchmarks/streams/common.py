"""What the benchmarks of streams share: where rows of results go, and a table of them.

A module of this package has ``main(argv)``: it measures, prints a table in Markdown and
writes the same rows to ``results/<name>.csv``, which `benchmarks.streams.report` reads.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def arguments(
    argv: Sequence[str] | None, description: str | None
) -> argparse.Namespace:
    """Return the options that every module has: ``quick``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="smaller and fewer, in a few seconds"
    )
    return parser.parse_args(argv)


def save(name: str, rows: Iterable[Mapping[str, Any]], *, quick: bool) -> Path:
    """Write rows with the same fields, in place of those of the last run.

    Those of a quick run are marked, so that no page takes them for the whole.
    """
    rows = [{**row, "quick": "yes" if quick else None} for row in rows]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(name: str) -> list[dict[str, str]]:
    """Return the rows that were written, as text; none where nothing was measured."""
    path = RESULTS / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


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
