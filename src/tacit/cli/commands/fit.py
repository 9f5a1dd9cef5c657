"""``tacit fit``: a private model from a file, with its report and card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tacit.cli._console import clean, json_option, out, show_account
from tacit.cli._options import (
    Account,
    csv_options,
    estimator_for,
    estimator_options,
    given_settings,
    ledger_options,
    no_ledger_option,
    schema_for,
)

# Most names of columns that are printed
MOST_NAMED = 20


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@estimator_options
@ledger_options
@no_ledger_option
@click.option(
    "--out",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder to write the model, its report and its card to.",
)
@click.option("--force", is_flag=True, help="Replace an existing model.")
@click.option("--label", help="Name of the charge in the ledger.")
@click.option(
    "--measure",
    type=click.FloatRange(0, min_open=True),
    metavar="EPSILON",
    help="Also measure the score privately on rows set aside, with this epsilon.",
)
@click.option(
    "--set-aside",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.2,
    help="Fraction of the rows to measure on.",
)
@click.option(
    "--intervals",
    type=click.FloatRange(0, min_open=True),
    metavar="EPSILON",
    help="Also release confidence intervals of the coefficients, with this epsilon.",
)
@csv_options
@click.option(
    "--scratch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder for rows that do not fit in memory.",
)
@click.option("--quiet", is_flag=True, help="No progress bars.")
@json_option
def command(
    data: Path,
    schema_path: str,
    target: str | None,
    settings: tuple[str, ...],
    account: Account,
    folder: Path,
    force: bool,
    label: str | None,
    measure: float | None,
    set_aside: float,
    intervals: float | None,
    reading: dict[str, Any],
    scratch: Path | None,
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Fit a private model to the table DATA.

    DATA is a CSV, Parquet or Arrow file, or a folder of Parquet files. The ledger is
    charged before the fit. Errors in the files, the schema or the budget are found
    before anything is charged.
    """
    # long: one parameter for each option of the command
    account.require()
    from tacit.cli import _fitting as fitting
    from tacit.cli._output_files import check_folder, check_label

    used = [data, Path(schema_path), *account.files]
    check_folder(folder, force, used, "--out")
    schema = schema_for(schema_path, target)
    model = estimator_for(schema, settings=given_settings(settings), **parameters)
    ledger = account.opened()
    extras = fitting.Extras(measure, set_aside, intervals)
    shown = not (quiet or as_json)
    label = schema.target.name if label is None else label
    check_label(label)
    rows = fitting.read(
        data,
        schema,
        model,
        extras,
        **reading,
        scratch=scratch,
        progress=shown,
    )
    fitting.check_early(model, rows, extras, ledger, label)
    fitted = fitting.fitted(model, rows, extras, ledger, label, shown)
    written = fitting.write(folder, fitted, schema, ledger, label, force)
    out(as_json, written, lambda console: _show(console, fitted, written))


def _selected(names: list[str], how: dict[str, Any], n_columns: int) -> str:
    """Return the result and the cost of a private selection, as a line."""
    if how["asked"] >= n_columns:
        return (
            f"selected     all {n_columns} columns, as no fewer were requested; the "
            "selection costs no budget"
        )
    cost = f"epsilon {how['epsilon']:.3g} of the guarantee"
    if not how["answered"]:
        return (
            f"selected     no selection was released, at a cost of {cost}: one row "
            "might have changed it, so the model is a private mean"
        )
    if not names:
        return (
            f"selected     no column, at a cost of {cost}: none had a strong enough "
            "effect, so the model is a private mean"
        )
    listed = ", ".join(map(clean, names[:MOST_NAMED]))
    more = len(names) - MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"selected     {listed}{rest}; the selection is private, and cost {cost}"


def _paired(pairs: list[list[str]]) -> str:
    """Return the pairs of columns that an additive model has, as a line."""
    listed = "; ".join(f"{clean(a)} and {clean(b)}" for a, b in pairs[:MOST_NAMED])
    more = len(pairs) - MOST_NAMED
    rest = f"; and {more} more" if more > 0 else ""
    return f"pairs        {listed or 'none stood out from the noise'}{rest}"


def _show(console: Console, fitted: Any, written: dict[str, Any]) -> None:
    console.print(str(fitted.model.privacy_))
    chosen = written["selected"]
    if written["selection"] is not None:
        console.print(_selected(chosen, written["selection"], len(written["features"])))
    elif chosen is not None:
        console.print(
            f"selected     {len(chosen)} of {len(written['features'])} columns; "
            "the selection is noisy too"
        )
    if written["additive"] is not None and fitted.model.interactions:
        console.print(_paired(written["additive"]["pairs"]))
    score = written["score"]
    if score is not None:
        console.print(
            f"measured     {score['measure']} {score['value']:.4g}, between "
            f"{score['low']:.4g} and {score['high']:.4g} with 95% confidence; "
            f"charged with epsilon {score['epsilon']:g}"
        )
    for name, reason in written["failed"].items():
        console.print(f"{name:12} FAILED: {reason}")
    console.print(f"model        {written['folder']}")
    console.print(f"report       {written['report']}")
    show_account(console, written["ledger"])
