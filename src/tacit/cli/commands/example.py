"""``tacit example``: a made-up table to try the other commands on."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from tacit.cli._console import Refused, json_option, out

SUFFIXES = (".csv", ".parquet", ".arrow")


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--rows", type=click.IntRange(2, 10_000_000), default=50_000, show_default=True
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@json_option
def command(path: Path, rows: int, seed: int, force: bool, as_json: bool) -> None:
    """Write a made-up census to PATH (.csv, .parquet or .arrow).

    Nobody in it exists, so trying things on it costs no privacy. The column to predict
    is high_income.
    """
    if path.suffix not in SUFFIXES:
        raise Refused(f"PATH must end in {' or '.join(SUFFIXES)}, got {path.name!r}.")
    if path.exists() and not force:
        raise Refused(f"{path} is there already; give another PATH, or --force.")
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    from tacit.datasets import make_census_table

    table = pa.table(make_census_table(rows, seed))
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)

    def human(console: Console) -> None:
        console.print(f"{path}: {rows} made-up persons, {table.num_columns} columns.")

    out(
        as_json, {"path": str(path), "rows": rows, "columns": table.schema.names}, human
    )
