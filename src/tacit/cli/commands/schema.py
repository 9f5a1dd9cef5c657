"""``tacit schema``: public facts of a table, drafted, checked and confirmed."""

from __future__ import annotations

import getpass
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tacit.cli._console import Refused, json_option, out

FILE = click.Path(path_type=Path)

encoding_option = click.option(
    "--encoding", default="utf-8", show_default=True, help="Of a CSV file."
)


@click.group()
def command() -> None:
    """Public facts about the columns of a table: ranges, categories, the target."""


@command.command()
@click.argument("data", type=FILE)
@click.option("--target", help="Column to predict.")
@click.option("--out", "path", type=FILE, help="DATA with .toml at its end by default.")
@click.option(
    "--names-only",
    is_flag=True,
    help="Read names and types only, and leave the facts to you.",
)
@click.option("--force", is_flag=True, help="Replace the schema if it is there.")
@encoding_option
@json_option
def init(
    data: Path,
    target: str | None,
    path: Path | None,
    names_only: bool,
    force: bool,
    encoding: str,
    as_json: bool,
) -> None:
    """Draft a schema of DATA for you to correct and confirm.

    The draft is read off the rows: keep it as private as they are until each entry
    agrees with what is publicly known.
    """
    path = data.with_suffix(".toml") if path is None else path
    if path.exists() and not force:
        raise Refused(f"{path} is there already; give another --out, or --force.")
    from tacit.tables import draft

    schema = draft(data, target, names_only=names_only, encoding=encoding)
    schema.save(path)

    def human(console: Console) -> None:
        _show(console, schema)
        console.print(f"{path}: a draft.", markup=False)
        console.print(
            "Fill in the facts that are missing."
            if names_only
            else "What was read off the rows is not public yet: correct it, then run "
            f"tacit schema confirm {path} COLUMN...",
            markup=False,
        )

    out(as_json, _summary(path, schema), human)


@command.command()
@click.argument("path", type=FILE)
@click.argument("data", type=FILE, required=False)
@encoding_option
@json_option
def check(path: Path, data: Path | None, encoding: str, as_json: bool) -> None:
    """Check the schema in PATH, and that DATA agrees with it."""
    from tacit.tables import Schema

    schema = Schema.load(path)
    if data is not None:
        from tacit.tables import check

        check(data, schema, encoding=encoding)

    def human(console: Console) -> None:
        _show(console, schema)
        waiting = ", ".join(schema.unconfirmed())
        told = f"still to confirm: {waiting}" if waiting else "all entries are public"
        console.print(f"{path}: {told}.", markup=False)
        if data is not None:
            console.print(f"{data}: agrees with the schema.", markup=False)

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
    help="Public range of the one column named.",
)
@click.option(
    "--categories",
    metavar="A,B,...",
    help="Public categories of the one column named.",
)
@click.option("--by", help="Who stands behind it; the user of this machine by default.")
@json_option
def confirm(
    path: Path,
    columns: tuple[str, ...],
    everything: bool,
    ends: tuple[float, float] | None,
    categories: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Say that the facts of COLUMNS in the schema PATH are publicly known.

    A range that was read off the rows and is merely confirmed releases something of
    them. Confirm what you would have written down without seeing the rows.
    """
    if everything == bool(columns):
        raise Refused("Name the COLUMNS to confirm, or give --all, and not both.")
    facts = _given(ends, categories)
    if facts and len(columns) != 1:
        raise Refused("--range and --categories are for one column; name it.")
    from tacit.tables import Schema

    schema = Schema.load(path)
    for key, value in facts.items():
        column = schema.column(columns[0])
        kind = "number" if key == "range" else "category"
        if column.kind != kind:
            raise Refused(
                f"--{key} is for a column of kind {kind!r}, and {column.name!r} is of "
                f"kind {column.kind!r}; change it in {path}."
            )
        schema = schema.with_column(replace(column, **{key: value}))
    who = getpass.getuser() if by is None else by
    confirmed = schema.confirm(None if everything else columns, by=who)
    confirmed.save(path)

    def human(console: Console) -> None:
        waiting = ", ".join(confirmed.unconfirmed())
        told = f"still to confirm: {waiting}" if waiting else "all entries are public"
        console.print(f"{path}: {told}.", markup=False)

    out(as_json, _summary(path, confirmed), human)


def _given(ends: tuple[float, float] | None, categories: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if ends is not None:
        found["range"] = ends
    if categories is not None:
        found["categories"] = tuple(map(str.strip, categories.split(",")))
    return found


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
    for head in ("column", "kind", "facts", "source"):
        table.add_column(head)
    # the target first
    for column in sorted(schema.every_column, key=lambda c: c is not schema.target):
        is_target = column is schema.target
        name = f"{column.name} (target)" if is_target else column.name
        source = "" if column.kind == "ignore" else column.source
        table.add_row(escape(name), column.kind, escape(_facts(column)), source)
    console.print(table)


def _facts(column: Any) -> str:
    if column.kind == "ignore":
        return str(column.note)
    if not column.is_filled:
        return "to be filled in"
    if column.kind == "number":
        return "{:g} to {:g}".format(*column.range)
    return ", ".join(column.categories)
