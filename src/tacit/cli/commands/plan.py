"""``tacit plan``: noise, cost and expected score of a fit, before a row is read."""

from __future__ import annotations

from contextlib import suppress
from math import sqrt
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from tacit.cli._console import (
    json_option,
    out,
    spent_up,
    warn_of_budget,
    warn_of_noise,
)
from tacit.cli._options import (
    Account,
    estimator_for,
    estimator_options,
    given_settings,
    ledger_options,
    schema_for,
)
from tacit.exceptions import BudgetExceeded, PlanError

# Coefficient of a relevant column and standard deviation of columns, for ranges from
# -1 to 1
SIGNAL, SPREAD = 0.5, 0.5
# Probability of missing such a column at the number of rows that is reported as enough
MISSED = 0.1


@click.command()
@estimator_options
@click.option(
    "--rows",
    type=click.IntRange(2),
    required=True,
    help="Number of rows, or your estimate of it.",
)
@ledger_options
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.02,
    help="Loss of score that defines the least number of rows.",
)
@click.option("--quiet", is_flag=True, help="No progress bars.")
@json_option
def command(
    schema_path: str,
    target: str | None,
    rows: int,
    account: Account,
    tolerance: float,
    settings: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Print noise, cost and expected score of a fit. Reads no row, charges nothing.

    Scores come from private fits on synthetic rows with the columns of the schema, for
    targets with a weak, medium or strong signal. Real rows may be easier or harder.
    With --select, only as many synthetic columns as are selected carry signal; without
    it, all do. For a number, the noise is proportional to the width of its range: a
    range that the target hardly fills costs accuracy.
    """
    # long: one parameter for each option of the command
    from tacit._execution import progress
    from tacit._release import is_note
    from tacit.cli._reporting import feature_names, model_reads_cells
    from tacit.evaluation import expected_score
    from tacit.evaluation._forecast_scores import least_rows
    from tacit.privacy.report import in_words

    schema = schema_for(schema_path, target)
    model = estimator_for(schema, settings=given_settings(settings), **parameters)
    features = feature_names(model, schema)
    planned = model.plan(rows, len(features))
    warn_of_budget(planned.budget, rows)
    warn_of_noise(planned)
    ledger = account.opened()
    cost = None if ledger is None else _cost(ledger, planned)
    shape: dict[str, Any] = {
        "widths": schema.widths,
        "n_classes": len(schema.target.labels or ()),
    }
    with progress(not (quiet or as_json)):
        forecast = expected_score(model, rows, **shape)
        least = least_rows(model, tolerance=tolerance, **shape)
    budget = planned.budget
    data = {
        "estimator": type(model).__name__,
        "solver": _solver(planned),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbors": budget.neighbors.value,
        "rows": rows,
        "columns": len(features),
        "unit": "columns" if model_reads_cells(model) else "encoded columns",
        "row_norm": _row_norm(planned, schema),
        "noise": in_words(planned.event),
        "assumptions": [a for a in planned.assumptions if not is_note(a)],
        "notes": list(filter(is_note, planned.assumptions)),
        "measure": forecast.measure,
        "telling": _n_informative(model, len(features)),
        "expected": [
            {
                "signal": outlook.signal,
                "without_privacy": outlook.plain,
                "low": outlook.low,
                "high": outlook.high,
            }
            for outlook in forecast.outlooks
        ],
        "least_rows": {"tolerance": tolerance, "rows": least},
        "selection": _selection(planned),
        "added_error": _added_error(model, planned, rows),
        "ledger": cost,
    }
    out(as_json, data, lambda console: _show(console, data))


def _row_norm(planned: Any, schema: Any) -> float:
    """Return the norm that rows are clipped to, of features that the model makes."""
    norm: float = getattr(planned, "x_norm", schema.row_norm)
    return norm


def _solver(planned: Any) -> str:
    """Return the solver of the coefficients, and the selector before it."""
    plan: Any = getattr(planned, "plan", None)
    solver = planned.solver
    if not hasattr(solver, "selector"):
        return type(solver).__name__
    second = type(plan.solver).__name__
    if plan.selection is None:
        return second
    return f"{type(solver.selector).__name__}, then {second}"


def _selection(planned: Any) -> dict[str, Any] | None:
    """Return cost and needed rows of the selection of columns, if there is one."""
    plan: Any = getattr(planned, "plan", None)
    budget = planned.budget
    if not hasattr(planned.solver, "selector") or plan.selection is None:
        return None
    from tacit.evaluation import rows_for_support

    n_selected, selector = plan.n_selected, planned.solver.selector
    bound = getattr(selector, "coef_bound", None)
    least: int | None = None
    with suppress(PlanError):
        least = selector.method and rows_for_support(
            plan.problem.n_columns,
            n_selected,
            method=selector.method,
            epsilon=plan.first.epsilon,
            delta=plan.first.delta,
            # noise equal to the signal, so the best R2 is one half
            signal=SIGNAL,
            noise=SIGNAL * SPREAD * sqrt(n_selected),
            spread=SPREAD,
            neighbors=budget.neighbors,
            failure=MISSED,
            **({} if bound is None else {"coef_bound": bound}),
        )
    return {
        "columns": n_selected,
        "share": plan.share,
        "epsilon": plan.selection.event.curve(budget.neighbors).epsilon(budget.delta),
        "least_rows": least,
    }


def _n_informative(model: Any, n_columns: int) -> int | None:
    """Return the number of synthetic columns that carry signal; None for all."""
    selected = getattr(model, "n_features_to_select", None)
    return None if selected is None or selected >= n_columns else int(selected)


def _added_error(model: Any, planned: Any, rows: int) -> dict[str, Any] | None:
    """Return the squared error that privacy adds, for solvers with a formula."""
    from tacit.solvers._base import solver_fact

    budget = planned.budget
    known = solver_fact(planned.solver, "has_risk_formula")
    if not known or getattr(model, "penalty", None) is not None:
        return None
    from tacit.evaluation import regression_risk

    risk = regression_risk(
        rows,
        planned.problem.n_features,
        epsilon=budget.epsilon,
        delta=budget.delta,
        solver=planned.solver.name,
        neighbors=budget.neighbors,
    )
    _, unit = model.target_unit()
    return {"solver": planned.solver.name, "squared": risk * unit**2}


def _cost(ledger: Any, planned: Any) -> dict[str, Any]:
    """Return the spend of the ledger after the charge, or why it does not fit."""
    reason = after = None
    try:
        ledger.require(planned.event, "This fit", planned.budget)
        after = ledger.spent_with(planned.event, planned.budget)
    except BudgetExceeded as error:
        reason = str(error)
    return {
        "dataset": ledger.dataset,
        "budget": ledger.budget.to_dict(),
        "spent": ledger.spent(),
        "spent_after": after,
        "fits": reason is None,
        "why_not": reason,
    }


def _show(console: Console, data: dict[str, Any]) -> None:
    # long: one printed line for each fact of a plan
    console.print(
        f"[bold]{data['estimator']}[/] by {data['solver']}, {data['rows']} rows of "
        f"{data['columns']} {data['unit']}, row norm {data['row_norm']:.4g}",
        markup=True,
    )
    console.print(
        f"guarantee    epsilon {data['epsilon']:g}, delta {data['delta']:.3g}, "
        f"neighbors {data['neighbors']}"
    )
    console.print(f"noise        {data['noise']}")
    chosen = data["selection"]
    if chosen is not None:
        console.print(
            f"selection    {chosen['columns']} of {data['columns']} columns, at a "
            f"cost of epsilon {chosen['epsilon']:.3g} of the guarantee"
        )
        least = chosen["least_rows"]
        rows = "no number of rows is" if least is None else f"about {least} rows are"
        console.print(
            f"             {rows} enough to find all relevant columns with probability "
            f"{1 - MISSED:g}, if columns are not correlated and explain half of the "
            "variance of the target"
        )
    for assumption in data["assumptions"]:
        console.print(f"assumes      {assumption}")
    for note in data["notes"]:
        console.print(f"note         {note}")
    informative = data["telling"]
    where = "" if informative is None else f", with signal in {informative} columns"
    console.print(f"expected {data['measure']} on synthetic rows{where}")
    table = Table(box=None)
    table.add_column("signal")
    table.add_column("without privacy", justify="right")
    table.add_column("private", justify="right")
    for row in data["expected"]:
        table.add_row(
            row["signal"],
            f"{row['without_privacy']:.1%}",
            f"{row['low']:.1%} to {row['high']:.1%}",
        )
    console.print(table)
    least = data["least_rows"]
    within = f"within {least['tolerance']:.1%} of the fit without privacy"
    if least["rows"] is None:
        console.print(
            f"least rows   no number of rows up to 2^26 gives a score {within}"
        )
    else:
        console.print(f"least rows   about {least['rows']} for a score {within}")
    added = data["added_error"]
    if added is not None:
        console.print(
            f"added error  about {added['squared']:.3g} in the squared unit of the "
            "target, by a formula for typical rows"
        )
    cost = data["ledger"]
    if cost is None:
        console.print("ledger       not given")
        return
    after = f", {spent_up(cost['spent_after'])} after this" if cost["fits"] else ""
    console.print(
        f"ledger       {cost['dataset']}: epsilon {spent_up(cost['spent'])} of "
        f"{cost['budget']['epsilon']:g} is spent{after}"
    )
    if not cost["fits"]:
        console.print(f"DOES NOT FIT {cost['why_not']}")
