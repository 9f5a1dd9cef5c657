"""``tacit example``: synthetic tables to try the other commands on."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tacit.cli._console import Rejected, json_option, out

SUFFIXES = (".csv", ".parquet", ".arrow")
# Ratings per user, and number of items
RATINGS = (20, 60)


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--rows", type=click.IntRange(2, 10_000_000), default=50_000, help="Number of rows."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, help="Seed of the random rows."
)
@click.option(
    "--ratings",
    is_flag=True,
    help="Write ratings instead of a census: 20 per user, of items 0 to 59.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def command(
    path: Path, rows: int, seed: int, ratings: bool, force: bool, as_json: bool
) -> None:
    """Write a synthetic census, or synthetic ratings, to try on.

    PATH ends in .csv, .parquet or .arrow. No person in the table exists, so using it
    costs no privacy. The column to predict is high_income. Ratings are 1 or 5, in the
    columns user, item and rating.
    """
    if path.suffix not in SUFFIXES:
        raise Rejected(f"PATH must end in {' or '.join(SUFFIXES)}, got {path.name!r}.")
    if path.exists() and not force:
        raise Rejected(f"{path} already exists; give another PATH, or --force.")
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    from tacit.datasets import make_census_table

    table = pa.table(_ratings(rows, seed) if ratings else make_census_table(rows, seed))
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)

    def human(console: Console) -> None:
        what = "ratings" if ratings else "persons"
        console.print(f"{path}: {rows} synthetic {what}, {table.num_columns} columns.")

    out(
        as_json, {"path": str(path), "rows": rows, "columns": table.schema.names}, human
    )


def _ratings(rows: int, seed: int) -> dict[str, Any]:
    """Return ratings of users who like one half of the items."""
    from tacit.datasets import make_rank_one_ratings

    each, items = RATINGS
    data = make_rank_one_ratings(ceil(rows / each), items, each, random_state=seed)
    stars = {"user": data.users, "item": data.items, "rating": 3 + 2 * data.ratings}
    return {name: column[:rows] for name, column in stars.items()}
