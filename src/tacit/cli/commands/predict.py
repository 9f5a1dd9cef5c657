"""``tacit predict``: predictions of a model folder for a file, block by block."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from tacit.cli._console import Rejected, json_option, out
from tacit.cli._options import csv_options


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write, .csv or .parquet.",
)
@click.option("--keep", multiple=True, help="Column of DATA to copy, such as a key.")
@click.option("--probabilities", is_flag=True, help="One more column a class.")
@csv_options
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@json_option
def command(
    folder: Path,
    data: Path,
    path: Path,
    keep: tuple[str, ...],
    probabilities: bool,
    encoding: str,
    delimiter: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Predict the target of each row of DATA with the model in FOLDER.

    The columns are read and scaled by the schema that the model was fitted with. The
    model is private towards the rows it was fitted on; predictions tell about the rows
    of DATA what the model makes of them.
    """
    from tacit.cli._predicting import SUFFIXES, predictions, write_table
    from tacit.persistence import SavedSide, read

    if path.suffix not in SUFFIXES:
        raise Rejected(f"--out must end in {' or '.join(SUFFIXES)}, got {path.name!r}.")
    if path.exists() and not force:
        raise Rejected(f"{path} is there already; give another --out, or --force.")
    saved = read(folder)
    if isinstance(saved.estimator, SavedSide):
        raise Rejected(
            f"{folder} is the item side of a recommender; use 'tacit recommend row'."
        )
    if saved.schema is None:
        raise Rejected(
            f"{folder} has no schema: it was not written by 'tacit fit', 'stream' or "
            "'label'."
        )
    if probabilities and not hasattr(saved.estimator, "predict_proba"):
        name = type(saved.estimator).__name__
        raise Rejected(f"--probabilities are not known to a model of {name}.")
    blocks = predictions(
        saved, data, keep, probabilities, encoding=encoding, delimiter=delimiter
    )
    rows = write_table(path, blocks)

    def human(console: Console) -> None:
        console.print(f"{path}: {rows} predictions.", markup=False)

    out(as_json, {"path": str(path), "rows": rows}, human)
