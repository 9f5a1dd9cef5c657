"""``tacit predict``: predictions of a saved model for the rows of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from tacit.cli._console import Rejected, json_option, out
from tacit.cli._options import csv_options

if TYPE_CHECKING:
    import pyarrow as pa

    from tacit.persistence import SavedModel


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
@click.option(
    "--probabilities",
    is_flag=True,
    help="Also write one column of probabilities per class.",
)
@csv_options
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def command(
    folder: Path,
    data: Path,
    path: Path,
    keep: tuple[str, ...],
    probabilities: bool,
    reading: dict[str, Any],
    force: bool,
    as_json: bool,
) -> None:
    """Predict the target of each row of a table.

    DATA is the table and FOLDER the model. The columns are read and scaled by the
    schema that the model was fitted with. The guarantee of the model protects the rows
    it was fitted on, not those of DATA.
    """
    from tacit.cli._output_files import SUFFIXES, write_table
    from tacit.persistence import read
    from tacit.persistence._sides import SavedSide

    if path.suffix not in SUFFIXES:
        raise Rejected(f"--out must end in {' or '.join(SUFFIXES)}, got {path.name!r}.")
    if path.exists() and not force:
        raise Rejected(f"{path} already exists; give another --out, or --force.")
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
        raise Rejected(f"{name} has no probabilities; leave --probabilities out.")
    blocks = _predictions(saved, data, keep, probabilities, **reading)
    rows = write_table(path, blocks)

    def human(console: Console) -> None:
        console.print(f"{path}: {rows} predictions.")

    out(as_json, {"path": str(path), "rows": rows}, human)


def _predictions(
    saved: SavedModel,
    data: Path,
    keep: tuple[str, ...],
    probabilities: bool,
    **reading: Any,
) -> Iterator[pa.Table]:
    """Yield tables of kept columns and predictions."""
    import pyarrow as pa

    from tacit.cli._reporting import model_reads_cells
    from tacit.tables import Schema, batches, cell_batches

    assert saved.schema is not None
    schema = Schema.from_dict(saved.schema)
    assert schema.target is not None  # a model was fitted to it
    model, name = saved.estimator, schema.target.name
    added = [name]
    if probabilities:
        added += [f"{name}={label}" for label in model.classes_]
    if set(added) & set(keep):
        raise Rejected(
            f"--keep cannot keep {name!r}, which is the target that is predicted."
        )
    read = cell_batches if model_reads_cells(model) else batches
    for block in read(data, schema, keep=keep, **reading):
        columns: dict[str, Any] = {key: block.kept[key] for key in keep}
        columns[name] = pa.array(model.predict(block.X))
        if probabilities:
            probability = model.predict_proba(block.X).T
            columns.update(zip(added[1:], probability, strict=True))
        yield pa.table(columns)
