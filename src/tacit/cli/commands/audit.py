"""``tacit audit``: a lower bound on the epsilon of an estimator, by attack."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tacit._execution import bar
from tacit.cli._console import REFUTED, Rejected, clean, json_option, out
from tacit.cli._options import given_settings


@click.command()
@click.argument("path", metavar="[PACKAGE.MODULE:CLASS]", required=False)
@click.option(
    "--model",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Attack the estimator of a saved model, with its parameters and guarantee, "
    "instead of PACKAGE.MODULE:CLASS; 'tacit report --audit' shows the result.",
)
@click.option(
    "--epsilon",
    type=float,
    default=1.0,
    help="Epsilon that the estimator is audited with.",
)
@click.option("--delta", type=float, help="Delta; by default that of the estimator.")
@click.option(
    "--neighbors",
    type=click.Choice(["replace_one", "add_or_remove_one"]),
    help="Neighbors of the guarantee; replace_one by default.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another parameter of the estimator; the value is JSON or a string.",
)
@click.option(
    "--one-run",
    is_flag=True,
    help="Train once, on many canaries, instead of many times on pairs.",
)
@click.option(
    "--canaries",
    type=click.IntRange(20),
    default=1000,
    help="With --one-run: rows whose label or presence is decided by a coin.",
)
@click.option(
    "--runs",
    type=click.IntRange(20),
    default=1000,
    help="Trainings on each data set of a pair; a larger epsilon needs more.",
)
@click.option(
    "--rows", type=click.IntRange(4), default=10, help="Rows of each data set."
)
@click.option(
    "--features",
    type=click.IntRange(2),
    help="Columns; 2 by default, and with --one-run as many as canaries.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Confidence of the bound.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "clopper-pearson", "any", "gaussian"]),
    default="auto",
    help="Statistical bound. gaussian is tighter and assumes Gaussian noise; auto uses "
    "it if the estimator's report claims Gaussian noise, and otherwise "
    "clopper-pearson, or any with --one-run, which hold for any mechanism.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=min(2, os.cpu_count() or 1),
    help="Number of processes.",
)
@click.option(
    "--seed", type=click.IntRange(0), help="Seed, to repeat an audit exactly."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@json_option
def command(
    path: str | None,
    folder: Path | None,
    epsilon: float,
    delta: float | None,
    neighbors: str | None,
    settings: tuple[str, ...],
    one_run: bool,
    canaries: int,
    runs: int,
    rows: int,
    features: int | None,
    confidence: float,
    method: Any,
    jobs: int,
    seed: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Attack an estimator, to test its privacy guarantee.

    PACKAGE.MODULE:CLASS is an estimator, such as
    tacit.linear_model:LogisticRegression.

    It is trained many times on synthetic data sets that differ in one row,
    which is at the public bounds or far beyond them. The better the results can be
    distinguished, the larger the lower bound on epsilon.

    With --one-run the estimator is trained once, on many synthetic rows. A coin decides
    the label of each of these canaries, or whether it is present if neighbors add or
    remove a row. The number of coins guessed right gives the lower bound. This is fast,
    and the bound is smaller.

    The audit can refute a guarantee, but never prove one: a better attack, other rows
    or more runs may show more. The exit code is 5 if the guarantee is refuted. The
    audit reads none of your rows and charges nothing.
    """
    # long: one parameter for each option of the command
    _reject_options_of_other_kind(one_run)
    if (path is None) == (folder is None):
        raise Rejected("Either PACKAGE.MODULE:CLASS or --model FOLDER must be given.")
    if folder is not None:
        estimator, features = _of_model(folder, features, one_run)
    else:
        options = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
        estimator = _estimator(str(path), given_settings(settings), options)
    common: dict[str, Any] = {
        "confidence": confidence,
        "neighbors": neighbors,
        "delta": delta,
        "method": method,
        "random_state": seed,
    }
    if one_run:
        _one_run(estimator, canaries, features, common, as_json)
        return
    from tacit.audit import audit_estimator

    # a bar only on a terminal
    shown = not (quiet or as_json) and Console(stderr=True).is_terminal
    with bar("trainings", shown=shown, transient=True) as on_run:
        found = audit_estimator(
            estimator,
            n_rows=rows,
            n_features=features or 2,
            runs=runs,
            jobs=jobs,
            on_run=on_run,
            **common,
        )
    lines = [f"leak         {leak}" for leak in found.leaks]
    lines.append(
        f"trainings    {runs} on each data set of a pair, {found.result.method}"
    )
    _print_result(found, "runs", lines, as_json)


def _one_run(
    estimator: Any,
    canaries: int,
    features: int | None,
    common: dict[str, Any],
    as_json: bool,
) -> None:
    """Audit by one training and print the result."""
    from tacit.audit import audit_one_run

    found = audit_one_run(estimator, n_canaries=canaries, n_features=features, **common)
    result = found.result
    guesses = (
        f"guesses      {result.n_correct} of {result.n_guesses} right, from "
        f"{found.attribute}, {result.method}"
    )
    _print_result(found, "canaries", [guesses], as_json)


def _print_result(found: Any, effort: str, lines: list[str], as_json: bool) -> None:
    """Print the result of an audit, and exit with a code of its own if it refutes."""

    def human(console: Console) -> None:
        console.print(
            f"guarantee    epsilon {found.epsilon:g}, delta {found.delta:.3g}"
        )
        console.print(
            f"result       epsilon is at least {found.epsilon_lower:.3g}; the most "
            f"that this number of {effort} can show is {found.most_shown:.3g}"
        )
        for line in (*lines, found.verdict):
            console.print(clean(line))

    out(as_json, found.to_dict(), human)
    if found.refuted:
        click.get_current_context().exit(REFUTED)


def _reject_options_of_other_kind(one_run: bool) -> None:
    """Reject options of the other kind of audit, rather than ignore them."""
    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    for name in ("runs", "rows", "jobs") if one_run else ("canaries",):
        if context.get_parameter_source(name) is given:
            where = "without" if one_run else "with"
            raise Rejected(f"--{name} is for an audit {where} --one-run.")


def _of_model(
    folder: Path, features: int | None, one_run: bool
) -> tuple[Any, int | None]:
    """Return an unfitted copy of a saved estimator, and the columns to attack."""
    from sklearn.base import clone

    from tacit.persistence import read
    from tacit.persistence._sides import SavedSide

    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    for name in ("epsilon", "delta", "neighbors", "settings"):
        if context.get_parameter_source(name) is given:
            option = "set" if name == "settings" else name
            raise Rejected(
                f"--{option} cannot be combined with --model: the saved model has its "
                "own parameters."
            )
    saved = read(folder)
    if saved.privacy is None or isinstance(saved.estimator, SavedSide):
        raise Rejected(
            f"{folder} contains no estimator that can be fitted and audited."
        )
    estimator = clone(saved.estimator)
    # a default delta depends on the number of rows, and an audit has fewer
    estimator.set_params(delta=saved.privacy.guarantee.delta)
    if features is None and (not one_run or hasattr(estimator, "feature_bounds")):
        features = int(saved.estimator.n_features_in_)
    return estimator, features


def _estimator(path: str, settings: dict[str, Any], options: dict[str, Any]) -> Any:
    """Return the estimator of an import path, with these parameters."""
    from importlib import import_module

    from tacit.persistence._values import restored_parameter

    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise Rejected(f"The estimator must have the form MODULE:CLASS, got {path!r}.")
    # modules of this folder can be audited, but do not shadow installed ones
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        kind = getattr(import_module(module), name)
    except ImportError as error:
        raise Rejected(f"{module} cannot be imported: {error}.") from error
    except AttributeError:
        raise Rejected(f"{module} has no class {name!r}.") from None
    if not isinstance(kind, type):
        raise Rejected(f"{path} is not a class.")
    given = {key: restored_parameter(key, value) for key, value in settings.items()}
    for option in options:
        if option in given:
            raise Rejected(f"--set cannot set {option}; use --{option}.")
    try:
        estimator = kind(**given)
        known = estimator.get_params(deep=False)
        chosen = {key: value for key, value in options.items() if value is not None}
        # an estimator of another library may have no delta and no neighbors
        estimator.set_params(**{k: v for k, v in chosen.items() if k in known})
    except (AttributeError, TypeError) as error:
        raise Rejected(
            f"{name} cannot be created with these parameters: {error}."
        ) from error
    return estimator
