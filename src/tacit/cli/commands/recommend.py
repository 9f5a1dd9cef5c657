"""``tacit recommend``: a private item side, and rows that users complete at home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from tacit.cli._console import Rejected, clean, json_option, out, show_account
from tacit.cli._options import (
    Account,
    Names,
    given_settings,
    ledger_options,
    no_ledger_option,
    settings_option,
)

if TYPE_CHECKING:
    from tacit.cli._recommending import OwnRow


def _solvers() -> list[str]:
    from tacit.recommend._plan import SOLVERS

    return list(SOLVERS)


mine_options = click.option(
    "--columns",
    nargs=2,
    default=("item", "rating"),
    metavar="ITEM RATING",
    help="Columns of MINE.",
)


@click.group()
def command() -> None:
    """Fit a private recommender, and predict ratings locally."""


# long, as each option is a parameter
@command.command()
@click.argument("ratings", type=click.Path(path_type=Path), required=False)
@click.option(
    "--items",
    required=True,
    metavar="N|FILE",
    help="Public list of items: their number, if they are numbered from 0, or a file "
    "of labels (.txt, .json, .csv, .parquet).",
)
@click.option(
    "--range",
    "rating_range",
    nargs=2,
    type=float,
    required=True,
    metavar="LOW HIGH",
    help="Lowest and highest rating, set without the data.",
)
@click.option("--epsilon", type=float, required=True, help="Budget of the fit.")
@click.option("--delta", type=float, help="1 / users^2 unless given.")
@click.option(
    "--neighbors",
    type=click.Choice(["replace_one", "add_or_remove_one"]),
    default="replace_one",
    help="How neighboring data sets differ in one user with all ratings; with "
    "replace_one the number of users is public.",
)
@click.option(
    "--expected-users",
    type=int,
    help="Public guess of the number of users: for --plan, and where it is private.",
)
@click.option(
    "--columns",
    nargs=3,
    default=("user", "item", "rating"),
    metavar="USER ITEM RATING",
    help="Columns of RATINGS.",
)
@click.option("--solver", type=Names(_solvers), default="als")
@click.option(
    "--rank", type=click.IntRange(1), help="Maximum number of learned directions."
)
@click.option(
    "--max-ratings",
    type=click.IntRange(1),
    help="Maximum number of ratings of a user that are used; noise grows with it, "
    "except for als.",
)
@settings_option
@ledger_options
@no_ledger_option
@click.option("--label", help="Name of the charge in the ledger.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder for the item side, its report and its card; all of it is public.",
)
@click.option(
    "--force", "--overwrite", "force", is_flag=True, help="Replace an existing side."
)
@click.option(
    "--scratch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder for ratings that do not fit in memory.",
)
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Show the plan and its charge, and exit; reads no rating and charges nothing.",
)
@click.option("--quiet", is_flag=True, help="No progress bars.")
@json_option
def fit(
    ratings: Path | None,
    items: str,
    columns: tuple[str, str, str],
    solver: str,
    rank: int | None,
    settings: tuple[str, ...],
    account: Account,
    label: str | None,
    folder: Path | None,
    force: bool,
    scratch: Path | None,
    only_plan: bool,
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Fit a private recommender to RATINGS, and write its item side.

    The item side is what the model learned about items, and may be published.

    RATINGS has a row for each rating, of a user, an item and a number: a CSV file, a
    Parquet file or a folder of those; --plan needs none. All ratings of a user are
    protected together. Errors in files, options or the budget are reported before
    anything is charged.
    """
    # long: one parameter for each option of the command
    account.require(only_plan)
    from tacit.cli import _recommending as recommending
    from tacit.cli._output_files import check_folder, check_label

    shown = not (quiet or as_json)
    catalogue = recommending.catalogue(items, columns[1], ratings)
    model = recommending.model_for(
        solver,
        rank,
        given_settings(settings),
        items=catalogue,
        scratch=scratch,
        **parameters,
    )
    ledger = account.opened()
    if only_plan:
        facts = recommending.plan_facts(model, ledger)
        out(as_json, facts, lambda console: _show_plan(console, facts))
        return
    if ratings is None:
        raise Rejected("RATINGS must be given; only --plan works without.")
    if folder is None:
        raise Rejected("--out must name the folder for the item side.")
    label = "recommend" if label is None else label
    check_label(label)
    used = [ratings, *recommending.item_files(items), *account.files]
    check_folder(folder, force, used, "--out", "side")
    recommending.fitted(model, ratings, columns, ledger, label, shown)
    written = recommending.write(folder, model, ledger, label, force)
    out(as_json, written, lambda console: _show(console, model, written))


@command.command()
@click.argument("side", type=click.Path(path_type=Path))
@click.argument("mine", type=click.Path(path_type=Path, allow_dash=True))
@mine_options
@click.option(
    "--out",
    "path",
    type=click.Path(path_type=Path),
    help="File to write, .csv or .parquet; it reveals what was rated: keep it private.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def row(
    side: Path,
    mine: Path,
    columns: tuple[str, str],
    path: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Predict the rating of every item, from one user's own ratings.

    SIDE is the folder that 'tacit recommend fit' wrote.

    MINE is a CSV, Parquet or JSON file of items and ratings of one user, or - for
    standard input.
    Nothing else is read, nothing is charged and nothing leaves this machine.
    """
    from tacit.cli import _recommending as recommending

    if path is not None:
        recommending.check_table(path, force, [side, mine])
    own = recommending.own_row(side, mine, columns)
    if path is not None:
        recommending.write_row(path, own)
    data: dict[str, Any] = {**own.facts, "path": None if path is None else str(path)}
    if path is None:
        data["row"] = own.lines()

    def human(console: Console) -> None:
        _show_row(console, data)
        _show_released(console, own)

    out(as_json, data, human)


@command.command()
@click.argument("side", type=click.Path(path_type=Path))
@click.argument("mine", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--k", "k", type=click.IntRange(1), default=10, help="Number of items.")
@mine_options
@json_option
def top(
    side: Path, mine: Path, k: int, columns: tuple[str, str], as_json: bool
) -> None:
    """Show the best predicted items that a user has not rated.

    MINE is as for 'tacit recommend row', and stays on this machine.
    """
    from tacit.cli import _recommending as recommending

    own = recommending.own_row(side, mine, columns)
    data: dict[str, Any] = {**own.facts, "top": own.best(k)}

    def human(console: Console) -> None:
        _show_items(console, data["top"], rated=False)
        _show_unknown(console, data)
        _show_released(console, own)

    out(as_json, data, human)


def _show_plan(console: Console, facts: dict[str, Any]) -> None:
    console.print(facts["words"])
    show_account(console, facts["ledger"])


def _show(console: Console, model: Any, written: dict[str, Any]) -> None:
    console.print(str(model.privacy_))
    side = written["side"]
    console.print(
        f"items        {side['items']:,}, each with an offset and a vector of "
        f"{side['vectors']:,}, by {written['solver']}"
    )
    if written["rows"] is not None and model.privacy_.guarantee.delta > (
        1 / written["rows"]
    ):
        console.print(
            "warning      delta is above one over the number of users; "
            "take a smaller one"
        )
    for name, why in written["failed"].items():
        console.print(f"{name:12} FAILED: {why}")
    console.print(f"side         {written['folder']}")
    console.print(f"report       {written['report']}")
    show_account(console, written["ledger"])


def _show_row(console: Console, data: dict[str, Any]) -> None:
    if data["path"] is None:
        _show_items(console, data["row"], rated=True)
    else:
        console.print(
            f"{data['path']}: {data['items']} predictions, from {data['rated']} "
            "rating(s)."
        )
    _show_unknown(console, data)


def _show_items(console: Console, listed: list[dict[str, Any]], rated: bool) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("item", overflow="fold")
    table.add_column("prediction", justify="right")
    if rated:
        table.add_column("rated")
    for line in listed:
        cells = [clean(str(line["item"])), f"{line['prediction']:.4g}"]
        if rated:
            cells.append("yes" if line["rated"] else "")
        table.add_row(*cells)
    console.print(table)


def _show_unknown(console: Console, data: dict[str, Any]) -> None:
    if data["unknown"]:
        console.print(
            f"left out     {data['unknown']} rating(s) of items that the side does not "
            "have"
        )


def _show_released(console: Console, own: OwnRow) -> None:
    if not own.row.side.has_vectors:
        console.print(f"released     {own.facts['released']}")
