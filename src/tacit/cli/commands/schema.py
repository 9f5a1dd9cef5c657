"""``tacit schema``: draft, check and confirm the public facts of a table."""

from __future__ import annotations

import getpass
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from tacit.cli._console import Rejected, clean, json_option, out
from tacit.cli._options import csv_options

FILE = click.Path(path_type=Path)


@click.group()
def command() -> None:
    """Draft, check and confirm the public facts about a table.

    These are ranges of numbers, categories, and the column to predict.
    """


@command.command()
@click.argument("data", type=FILE)
@click.option("--target", help="Column to predict.")
@click.option(
    "--out",
    "path",
    type=FILE,
    help="File to write; by default DATA with the suffix .toml.",
)
@click.option(
    "--names-only",
    is_flag=True,
    help="Read only names and types; you fill in the facts.",
)
@click.option("--force", is_flag=True, help="Replace an existing schema.")
@csv_options
@json_option
def init(
    data: Path,
    target: str | None,
    path: Path | None,
    names_only: bool,
    force: bool,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Draft a schema of a table, to correct and confirm.

    The draft is computed from the rows: keep it as private as they are until each entry
    agrees with public knowledge.
    """
    path = data.with_suffix(".toml") if path is None else path
    if path.exists() and not force:
        raise Rejected(f"{path} already exists; give another --out, or --force.")
    from tacit.tables import draft

    schema = draft(data, target, names_only=names_only, **reading)
    schema.save(path)

    def human(console: Console) -> None:
        _show(console, schema)
        console.print(clean(f"{path}: a draft schema."))
        if names_only:
            console.print("Fill in the facts that are missing.")
        else:
            console.print(
                "Its entries come from the rows and are not public yet: correct them, "
                f"then run tacit schema confirm {clean(str(path))} COLUMN..."
            )
        _mention_target(console, path, schema)

    out(as_json, _summary(path, schema), human)


@command.command()
@click.argument("path", type=FILE)
@click.argument("data", type=FILE, required=False)
@csv_options
@json_option
def check(
    path: Path,
    data: Path | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Check a schema, and whether a table agrees with it.

    PATH is the schema and DATA the table.
    """
    from tacit.tables import Schema

    schema = Schema.load(path)
    if data is not None:
        from tacit.tables import check

        check(data, schema, **reading)

    def human(console: Console) -> None:
        _show(console, schema)
        console.print(clean(_state(path, schema)))
        if data is not None:
            console.print(clean(f"{data}: agrees with the schema."))

    found = _summary(path, schema)
    out(as_json, {**found, "data": None if data is None else str(data)}, human)


@command.command()
@click.argument("path", type=FILE)
@click.argument("columns", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Confirm every column.")
@click.option(
    "--range",
    "ends",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="Public range of the column; for one column.",
)
@click.option(
    "--categories",
    metavar="A,B,...",
    help="Public categories of the column; for one column.",
)
@click.option(
    "--missing",
    metavar="VALUE|refuse",
    help="Public number that replaces missing values, or refuse, which rejects rows "
    "with missing values; for one column.",
)
@click.option(
    "--unseen",
    type=click.Choice(["refuse", "other"]),
    help="Treatment of values that are not listed: reject the row, or one category "
    "for all of them; for one column.",
)
@click.option(
    "--kind",
    type=click.Choice(["number", "category", "ignore"]),
    help="Change the kind of the column; for one column.",
)
@click.option(
    "--target", is_flag=True, help="Make the column the target; for one column."
)
@click.option("--by", help="Who confirms it; by default the user of this machine.")
@json_option
def confirm(
    path: Path,
    columns: tuple[str, ...],
    everything: bool,
    ends: tuple[float, float] | None,
    categories: str | None,
    missing: str | None,
    unseen: str | None,
    kind: str | None,
    target: bool,
    by: str | None,
    as_json: bool,
) -> None:
    """Confirm that facts in a schema are publicly known.

    PATH is the schema, COLUMNS are the columns to confirm.

    A range that was computed from the rows and is merely confirmed leaks information
    about them. Confirm only facts that you would write down without seeing the rows.
    """
    if everything == bool(columns):
        raise Rejected("Either COLUMNS or --all must be given.")
    facts = _given(ends, categories, missing, unseen)
    if (facts or kind or target) and len(columns) != 1:
        raise Rejected(
            "--range, --categories, --missing, --unseen, --kind and --target apply to "
            "one column; give exactly one."
        )
    from tacit.tables import Schema

    schema = Schema.load(path)
    if facts or kind:
        schema = schema.with_column(_changed(schema.column(columns[0]), kind, facts))
    if target:
        schema = schema.with_target(columns[0])
    who = getpass.getuser() if by is None else by
    confirmed = schema.confirm(None if everything else columns, by=who)
    confirmed.save(path)

    def human(console: Console) -> None:
        console.print(clean(_state(path, confirmed)))
        _mention_target(console, path, confirmed)

    out(as_json, _summary(path, confirmed), human)


def _given(
    ends: tuple[float, float] | None,
    categories: str | None,
    missing: str | None,
    unseen: str | None,
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if ends is not None:
        found["range"] = ends
    if categories is not None:
        found["categories"] = tuple(map(str.strip, categories.split(",")))
    if missing is not None:
        try:
            found["missing"] = None if missing == "refuse" else float(missing)
        except ValueError:
            raise Rejected("--missing must be a number, or refuse.") from None
    if unseen is not None:
        found["unseen"] = unseen
    return found


def _changed(column: Any, kind: str | None, facts: dict[str, Any]) -> Any:
    """Return the column with new facts; a new kind drops the old facts."""
    if kind is not None and kind != column.kind:
        column = type(column)(
            column.name, kind, source="data", note=column.note, remark=column.remark
        )
    for key in facts:
        wanted = "number" if key in ("range", "missing") else "category"
        if column.kind != wanted:
            raise Rejected(
                f"--{key} needs a column of kind {wanted!r}, and {column.name!r} is of "
                f"kind {column.kind!r}; give --kind to change it."
            )
    if "range" in facts and column.zero is not None:
        low, high = facts["range"]
        column = replace(
            column, zero=column.zero if low <= column.zero <= high else None
        )
    return replace(column, **facts)


def _state(path: Path, schema: Any) -> str:
    waiting = ", ".join(schema.unconfirmed())
    state = f"still to confirm: {waiting}" if waiting else "all entries are public"
    return f"{path}: {state}."


def _mention_target(console: Console, path: Path, schema: Any) -> None:
    if schema.target is None:
        console.print(
            "The schema has no target, and a fit needs one: run tacit schema confirm "
            f"{clean(str(path))} COLUMN --target."
        )


def _summary(path: Path, schema: Any) -> dict[str, Any]:
    return {
        "path": str(path),
        "features": schema.feature_names,
        "row_norm": schema.row_norm,
        "unconfirmed": schema.unconfirmed(),
        "schema": schema.to_dict(),
    }


def _show(console: Console, schema: Any) -> None:
    table = Table(box=None, pad_edge=False)
    for head in ("column", "kind", "facts", "if missing or not listed", "source"):
        table.add_column(head)
    # the target first
    for column in sorted(schema.every_column, key=lambda c: c is not schema.target):
        is_target = column is schema.target
        name = f"{column.name} (target)" if is_target else column.name
        cells = (name, column.kind, _facts(column), _missing(column), column.source)
        table.add_row(*map(clean, cells))
    console.print(table)
    for column in schema.every_column:
        for text in filter(None, (column.remark, column.note)):
            console.print(clean(f"{column.name}: {text}"))


def _facts(column: Any) -> str:
    if column.kind == "ignore":
        return ""
    if not column.is_filled:
        return "to be filled in"
    if column.kind == "number":
        return "{:g} to {:g}".format(*column.range)
    return ", ".join(column.categories)


def _missing(column: Any) -> str:
    """Return the treatment of missing and unlisted values."""
    if column.kind == "ignore":
        return ""
    if column.kind == "category":
        return str(column.unseen)
    return "refuse" if column.missing is None else f"{column.missing:g}"
