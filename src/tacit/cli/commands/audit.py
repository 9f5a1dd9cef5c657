"""``tacit audit``: attack an installed estimator and bound its epsilon from below."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tacit._progress import bar
from tacit.cli._console import REFUTED, Rejected, clean, json_option, out
from tacit.cli._options import given_settings


@click.command()
@click.argument("path", metavar="[PACKAGE.MODULE:CLASS]", required=False)
@click.option(
    "--model",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Attack the estimator of a saved model, with its parameters and promise, in "
    "place of PACKAGE.MODULE:CLASS; 'tacit report --audit' takes the outcome.",
)
@click.option("--epsilon", type=float, default=1.0, show_default=True)
@click.option("--delta", type=float, help="Its own default unless given.")
@click.option(
    "--neighbors",
    type=click.Choice(["replace_one", "add_or_remove_one"]),
    help="What the promise holds for; replace_one unless given.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another parameter of the estimator; the value is JSON or plain text.",
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
    show_default=True,
    help="With --one-run: rows of which a coin settles the label or presence.",
)
@click.option(
    "--runs",
    type=click.IntRange(20),
    default=1000,
    show_default=True,
    help="Trainings on each data set of a pair; more for a larger epsilon.",
)
@click.option("--rows", type=click.IntRange(4), default=10, show_default=True)
@click.option(
    "--features",
    type=click.IntRange(2),
    help="2 unless given; with --one-run, as many as there are canaries.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
)
@click.option(
    "--method",
    type=click.Choice(["auto", "clopper-pearson", "any", "gaussian"]),
    default="auto",
    show_default=True,
    help="gaussian shows more and takes the noise to be Gaussian; auto does so where "
    "the estimator's report claims it. Otherwise clopper-pearson, or any with "
    "--one-run, which hold for any mechanism.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=min(2, os.cpu_count() or 1),
    show_default=True,
    help="Processes that train.",
)
@click.option("--seed", type=click.IntRange(0), help="Repeat an audit exactly.")
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
    """Attack an estimator, such as tacit.linear_model:LogisticRegression.

    It is trained many times on made-up data sets that differ in one row, once at its
    public bounds and once far beyond them. How well what it publishes can be told apart
    bounds its epsilon from below.

    With --one-run it is trained once, on many made-up rows of which a coin each settles
    the label, or whether it is there where the promise is for adding and removing rows.
    How many coins can be guessed bounds epsilon. It is fast and shows less.

    The audit can refute a promise and never prove one: a better attack, other rows or
    more runs may show more. The exit code is 5 when the promise is refuted. No row of
    yours is read and nothing is charged.
    """
    _refuse_options_of_the_other(one_run)
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

    # a bar only where somebody sees it
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
    lines = [f"no noise     {leak}" for leak in found.leaks]
    lines.append(f"trainings    {runs} on each side, {found.result.method}")
    _released(found, "runs", lines, as_json)


def _one_run(
    estimator: Any,
    canaries: int,
    features: int | None,
    common: dict[str, Any],
    as_json: bool,
) -> None:
    """Audit by one training and tell the outcome."""
    from tacit.audit import audit_one_run

    found = audit_one_run(estimator, n_canaries=canaries, n_features=features, **common)
    result = found.result
    guesses = (
        f"guesses      {result.n_correct} right of {result.n_guesses}, by "
        f"{found.attribute}, {result.method}"
    )
    _released(found, "canaries", [guesses], as_json)


def _released(found: Any, counted: str, lines: list[str], as_json: bool) -> None:
    """Tell the outcome of an audit, and end with the code of a refutation."""

    def human(console: Console) -> None:
        console.print(
            f"promised     epsilon {found.epsilon:g} at delta {found.delta:.3g}"
        )
        console.print(
            f"shown        epsilon of at least {found.epsilon_lower:.3g}, of "
            f"{found.most_shown:.3g} that so many {counted} can show"
        )
        for line in (*lines, found.verdict):
            console.print(clean(line), markup=False)

    out(as_json, found.to_dict(), human)
    if found.refuted:
        click.get_current_context().exit(REFUTED)


def _refuse_options_of_the_other(one_run: bool) -> None:
    """Say that an option is for the other kind of audit, rather than ignore it."""
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

    from tacit.persistence import SavedSide, read

    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    for name in ("epsilon", "delta", "neighbors", "settings"):
        if context.get_parameter_source(name) is given:
            option = "set" if name == "settings" else name
            raise Rejected(f"--{option} is not for --model, which has its parameters.")
    saved = read(folder)
    if saved.privacy is None or isinstance(saved.estimator, SavedSide):
        raise Rejected(f"{folder} holds no estimator that can be fitted and audited.")
    estimator = clone(saved.estimator)
    # a delta that was left out followed the number of rows, of which there are fewer
    estimator.set_params(delta=saved.privacy.guarantee.delta)
    if features is None and (not one_run or hasattr(estimator, "feature_bounds")):
        features = int(saved.estimator.n_features_in_)
    return estimator, features


def _estimator(path: str, settings: dict[str, Any], options: dict[str, Any]) -> Any:
    """Return the estimator of an import path, with these parameters."""
    from importlib import import_module

    from tacit.persistence import restored_parameter

    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise Rejected(f"The estimator must have the form MODULE:CLASS, got {path!r}.")
    # also what lies in this folder, but nothing there hides what is installed
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
            raise Rejected(f"--set {option} is not for that; use --{option}.")
    try:
        estimator = kind(**given)
        known = estimator.get_params(deep=False)
        chosen = {key: value for key, value in options.items() if value is not None}
        # a foreign estimator may have no delta and no neighbors to set
        estimator.set_params(**{k: v for k, v in chosen.items() if k in known})
    except (AttributeError, TypeError) as error:
        raise Rejected(
            f"{name} cannot be made with these parameters: {error}."
        ) from error
    return estimator
