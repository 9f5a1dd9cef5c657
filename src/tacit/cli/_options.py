"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tacit._discovery import classes_with, declaring
from tacit._random import Seed
from tacit.cli._console import Rejected

__all__ = [
    "DEFAULT_MODELS",
    "Account",
    "Names",
    "all_of",
    "csv_options",
    "dataset_option",
    "estimator_for",
    "estimator_options",
    "given_settings",
    "ledger_options",
    "models",
    "neighbors_option",
    "neighbors_options",
    "no_ledger_option",
    "schema_for",
    "schema_options",
    "settings_option",
]


class Names(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """Choice among names that are found when a command needs them."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        # the choices are set at their first use, as finding them loads the models
        self._names = names
        self.case_sensitive = True

    def __getattr__(self, name: str) -> Any:
        if name != "choices":
            raise AttributeError(name)
        self.choices = tuple(self._names())
        return self.choices


class Interactions(click.ParamType):  # type: ignore[type-arg]  # as above
    """A number of pairs of columns, or the pairs as JSON."""

    name = "pairs"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            given = json.loads(value)
        except (ValueError, RecursionError):
            given = None
        # what pairs there are is checked by the model, before the charge
        if isinstance(given, list) or (type(given) is int and given >= 0):
            return given
        self.fail("must be a non-negative integer, or a JSON list of pairs of names.")


# Packages of the estimators that ``--model`` names
MODELS = ("tacit.additive", "tacit.linear_model")


def models() -> list[str]:
    """Return the ``--model`` names of estimators.

    A classifier and a regressor may share one.
    """
    names = {vars(kind)["model_name"] for kind in declaring("model_name", *MODELS)}
    return sorted(names - {None})


# The default model for each kind of target
DEFAULT_MODELS = {"category": "logistic", "number": "linear"}
# The model that selects columns, by the one that uses all of them
SELECTING = {"linear": "sparse-linear"}
# Parameters that have their own option or entry of the schema
FIXED = {
    "epsilon": "--epsilon",
    "delta": "--delta",
    "neighbors": "--neighbors",
    "expected_rows": "--expected-rows",
    "solver": "--solver",
    "n_features_to_select": "--select",
    "x_norm": "row_norm in the schema",
    "x_max": "ranges in the schema",
    "feature_bounds": "ranges in the schema",
    "ranges": "ranges in the schema",
    "categories": "categories in the schema",
    "interactions": "--interactions",
    "classes": "the target's categories in the schema",
    "y_range": "the target's range in the schema",
    "verbose": "--quiet",
}


Decorator = Callable[[Any], Any]


def all_of(*options: Decorator) -> Decorator:
    """Return one decorator that adds several options."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _gathered(name: str, make: Callable[..., Any], parts: Iterable[str]) -> Decorator:
    """Return a decorator of a command that gets some options as one argument."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        def command(*args: Any, **given: Any) -> Any:
            own = {part: given.pop(part) for part in parts if part in given}
            return function(*args, **given, **{name: make(**own)})

        return command

    return decorate


@dataclass(frozen=True)
class Account:
    """The ledger that options of a command name, if they do."""

    ledger_url: str | None
    dataset: str | None
    analyst: str | None = None
    no_ledger: bool = False

    def require(self, only_plan: bool = False) -> None:
        """Require a ledger, or the option to charge none."""
        if self.ledger_url is None and not (self.no_ledger or only_plan):
            raise Rejected(
                "No ledger is given: name one with --ledger, or charge none with "
                "--no-ledger."
            )

    def opened(self) -> Any:
        """Return the ledger, which may be unnamed if there is only one; or None."""
        if self.no_ledger or self.ledger_url is None:
            return None
        from tacit.privacy import Ledger  # noqa: PLC0415 - keeps the command line light
        from tacit.privacy._store import datasets  # noqa: PLC0415

        dataset = self.dataset
        if dataset is None:
            names = datasets(self.ledger_url)
            if len(names) != 1:
                known = ", ".join(names) if names else "none yet"
                raise Rejected(
                    f"--dataset must name a data set of the ledger: {known}."
                )
            (dataset,) = names
        ledger = Ledger.open(self.ledger_url, dataset=dataset, analyst=self.analyst)
        context = click.get_current_context(silent=True)
        if context is not None and isinstance(context.obj, list):
            context.obj.append(ledger)  # for `explained`, should the command be stopped
        return ledger

    @property
    def files(self) -> list[Path]:
        """The file of the ledger, if it is stored in one."""
        _, is_file, name = (self.ledger_url or "").partition("sqlite:///")
        return [Path(name)] if is_file else []


dataset_option = click.option(
    "--dataset",
    envvar="TACIT_DATASET",
    help="Data set of the ledger; may be left out if there is only one.",
)
ledger_options = all_of(
    click.option(
        "--ledger",
        "ledger_url",
        envvar="TACIT_LEDGER",
        metavar="URL",
        help="Ledger of the table: sqlite:///budget.db or postgresql://user@host/db.",
    ),
    dataset_option,
    click.option(
        "--analyst", help="Analyst whose allowance is charged; you by default."
    ),
    _gathered("account", Account, [field.name for field in fields(Account)]),
)
no_ledger_option = click.option(
    "--no-ledger",
    is_flag=True,
    help="Charge no ledger: this guarantee is not composed with any other.",
)

csv_options = all_of(
    click.option("--encoding", default="utf-8", help="Encoding of a CSV file."),
    click.option(
        "--delimiter",
        help="Delimiter of a CSV file; comma, semicolon and tab are detected.",
    ),
    _gathered("reading", dict, ("encoding", "delimiter")),
)

schema_options = all_of(
    click.option(
        "--schema",
        "schema_path",
        required=True,
        type=click.Path(exists=True, dir_okay=False),
        help="Public facts about the columns; see 'tacit schema init'.",
    ),
    click.option(
        "--target", help="Column to predict; by default the target of the schema."
    ),
)

neighbors_option = click.option(
    "--neighbors",
    type=click.Choice(["replace_one", "add_or_remove_one"]),
    default="replace_one",
    help="How neighboring tables differ; with replace_one the number of rows is "
    "public.",
)
neighbors_options = all_of(
    neighbors_option,
    click.option(
        "--expected-rows",
        type=int,
        help="Public guess of the number of rows, if that is private.",
    ),
)

settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another parameter of the estimator; the value is JSON or a string.",
)

estimator_options = all_of(
    schema_options,
    click.option(
        "--epsilon", type=float, required=True, help="Epsilon of the guarantee."
    ),
    click.option(
        "--delta", type=float, help="Delta of the guarantee; 1 / rows^2 by default."
    ),
    click.option(
        "--model",
        "model_name",
        type=Names(models),
        help="Model to fit; by default logistic for categories, linear for numbers.",
    ),
    click.option(
        "--select",
        type=click.IntRange(1),
        metavar="K",
        help="Privately select at most K columns before the fit; for linear and "
        "sparse-linear.",
    ),
    click.option(
        "--interactions",
        type=Interactions(),
        metavar="N|PAIRS",
        help="Privately choose and fit N pairs of columns too, or fit these, such as "
        '\'[["age", "debt"]]\'; for additive.',
    ),
    click.option("--solver", default="auto", help="Algorithm."),
    click.option(
        "--alpha",
        type=float,
        help="Penalty of the coefficients; per row for lasso, elastic-net and "
        "sparse-logistic.",
    ),
    neighbors_options,
    settings_option,
)


def schema_for(path: str, target: str | None) -> Any:
    """Return a confirmed schema with the given target."""
    from tacit.tables import Schema  # noqa: PLC0415

    schema = Schema.load(path)
    if target is not None:
        schema = schema.with_target(target)
    if schema.target is None:
        raise Rejected(
            f"{path} has no target; give --target, or draft the schema with one."
        )
    waiting = schema.unconfirmed()
    if waiting:
        names = ", ".join(map(repr, waiting))
        raise Rejected(
            f"The schema is not confirmed for {names}: compare each entry with what is "
            f"publicly known, then run 'tacit schema confirm {path} --all', or list "
            "the columns that you confirm instead of --all."
        )
    return schema


def given_settings(settings: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """Return the values of an option like ``--set``, by name."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise Rejected(f"{option} must have the form NAME=VALUE, got {setting!r}.")
        if name in found:
            raise Rejected(f"{option} gives {name!r} twice.")
        try:
            found[name] = _plain(json.loads(text))
        except (ValueError, RecursionError):
            found[name] = text
    seed = found.get("random_state")
    if type(seed) is int and seed >= 0:
        # given for this run, so it is meant to fix the noise
        found["random_state"] = Seed(seed)
    return found


def _plain(value: Any) -> Any:
    """Return JSON as parameters are written: an object without a type is a mapping."""
    if not isinstance(value, dict) or isinstance(value.get("type"), str):
        return value
    items = [[name, _plain(part)] for name, part in value.items()]
    return {"type": "dict", "items": items}


def estimator_for(
    schema: Any,
    *,
    model_name: str | None,
    settings: dict[str, Any],
    alpha: float | None = None,
    select: int | None = None,
    interactions: int | list[Any] | None = None,
    **parameters: Any,
) -> Any:
    """Return the estimator for the target of a schema."""
    # long: one check of an option after another, before anything is read
    import numpy as np  # noqa: PLC0415
    from sklearn.base import is_classifier  # noqa: PLC0415

    from tacit.persistence._values import restored_parameter  # noqa: PLC0415
    from tacit.privacy import Budget  # noqa: PLC0415

    target = schema.target
    option = model_name or DEFAULT_MODELS[target.kind]
    chosen = option if select is None else SELECTING.get(option, option)
    kinds = [make() for make in classes_with("model_name", chosen, *MODELS)]
    fitting = (m for m in kinds if is_classifier(m) == (target.kind == "category"))
    model = next(fitting, kinds[0])
    name = type(model).__name__
    if "loss" in settings and "loss" in model.get_params(deep=False):
        # what it predicts follows from the loss
        model.set_params(loss=restored_parameter("loss", settings["loss"]))
    if is_classifier(model) != (target.kind == "category"):
        wanted = "categories" if is_classifier(model) else "a number"
        raise Rejected(
            f"{name} predicts {wanted}, and the target {target.name!r} is a "
            f"{target.kind}; give another --model."
        )
    known = model.get_params(deep=False)
    if (select is not None) != ("n_features_to_select" in known):
        raise Rejected(
            f"{name} does not select columns; give --model linear with --select."
            if select is not None
            else f"{name} selects columns; give their number with --select."
        )
    if parameters.get("solver") == "auto" and "solver" not in known:
        del parameters["solver"]
    if interactions is not None:
        parameters["interactions"] = interactions
    for given, value in parameters.items():
        if given not in known:
            raise Rejected(f"{name} has no --{given}, got {value!r}; leave it out.")
    if select is not None:
        parameters["n_features_to_select"] = select
    if alpha is not None:
        if "alpha" in settings:
            raise Rejected(
                "--alpha and --set alpha are the same parameter; give only one."
            )
        settings = {**settings, "alpha": alpha}
    for setting in settings:
        if setting in FIXED:
            raise Rejected(f"--set cannot set {setting}; use {FIXED[setting]}.")
        if setting not in known:
            raise Rejected(f"{name} has no parameter {setting!r}.")
    # checked here, before anything is read
    delta = parameters.get("delta")
    Budget(parameters["epsilon"], 0.0 if delta is None else delta)
    public = {
        "x_norm": schema.row_norm,
        "x_max": 1.0,  # numbers are scaled to -1 to 1, and indicators are 0 or 1
        # one pair each, as flags and indicators are on one side of zero
        "feature_bounds": np.array(schema.feature_ranges),
        "classes": target.labels,
        "y_range": target.range,
        **_cells(schema),
    }
    model.set_params(
        **parameters,
        **{key: value for key, value in public.items() if key in known},
        **{key: restored_parameter(key, value) for key, value in settings.items()},
    )
    return model


def _cells(schema: Any) -> dict[str, Any]:
    """Return the public facts of models that read columns as they are."""
    return {
        "ranges": {c.name: c.range for c in schema.columns if c.kind == "number"},
        "categories": {
            c.name: c.labels for c in schema.columns if c.kind == "category"
        },
    }
