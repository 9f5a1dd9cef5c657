"""``tacit stream``: fit a private model to a table that grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tacit.cli._console import (
    Rejected,
    account_facts,
    clean,
    cost_facts,
    json_option,
    out,
    show_account,
    warn_of_budget,
)
from tacit.cli._options import (
    Account,
    csv_options,
    given_settings,
    ledger_options,
    no_ledger_option,
    schema_for,
    schema_options,
    settings_option,
)

# Seconds that --follow may wait
SHORTEST, LONGEST = 0.01, 86400.0


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@schema_options
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="Folder for the state of the stream. Keep it secret; it is needed to resume.",
)
@click.option("--epsilon", type=float, required=True, help="Budget of all steps.")
@click.option("--delta", type=float, help="1 / rows^2 of all steps, at most 1e-6.")
@click.option(
    "--horizon",
    type=click.IntRange(1),
    required=True,
    help="Number of steps that are charged for; each releases a model.",
)
@click.option(
    "--rows-per-step",
    type=click.IntRange(1),
    required=True,
    help="Number of rows per step; a step starts when so many are there.",
)
@click.option(
    "--rows-per-person",
    type=click.IntRange(1),
    default=1,
    help="Largest number of rows of one person; the noise grows with it.",
)
@click.option(
    "--model",
    "model_name",
    type=click.Choice(["online", "incremental"]),
    default="online",
    help="online aims at the next predictions, incremental at the best fit to all "
    "rows so far; both learn from all rows.",
)
@click.option(
    "--method", help="Algorithm of the model; chosen by the model by default."
)
@click.option(
    "--neighbors",
    type=click.Choice(["replace_one", "add_or_remove_one"]),
    default="replace_one",
    help="How neighboring streams differ; only replace_one is possible.",
)
@settings_option
@ledger_options
@no_ledger_option
@click.option("--label", help="Name of the charge in the ledger.")
@click.option(
    "--once/--follow",
    default=True,
    show_default=False,
    help="Exit after the rows that are there, or wait for more until Ctrl-C.",
)
@click.option(
    "--poll",
    type=float,
    default=1.0,
    metavar="SECONDS",
    help="How often --follow looks for new rows.",
)
@click.option(
    "--output",
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write the latest model to, replaced at each step.",
)
@click.option(
    "--releases",
    type=click.Path(path_type=Path),
    help="File to write each model to, as one JSON line per step.",
)
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Print noise and cost and exit; reads no row, charges nothing.",
)
@csv_options
@click.option("--quiet", is_flag=True, help="Print no line per step.")
@json_option
def command(
    source: Path,
    schema_path: str,
    target: str | None,
    state: Path | None,
    model_name: str,
    neighbors: str,
    settings: tuple[str, ...],
    account: Account,
    label: str | None,
    once: bool,
    poll: float,
    output: Path | None,
    releases: Path | None,
    only_plan: bool,
    reading: dict[str, Any],
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Learn from a table that grows, for one charge.

    SOURCE is a CSV file, a file of JSON lines, or a folder of Parquet files, to which
    rows are added. The first step charges for all steps of the horizon. Later steps and
    later runs, which resume where the last one ended, charge nothing. Rows that do not
    fit the schema are counted and have no effect.
    """
    # long: one parameter for each option of the command
    account.require(only_plan)
    if neighbors != "replace_one":
        raise Rejected(
            "--neighbors must be replace_one: steps have a fixed number of rows, so "
            "that a row more or less would move all later rows to other steps; in "
            "Python, partial_fit can take steps by time."
        )
    if not SHORTEST <= poll <= LONGEST:  # NaN neither
        raise Rejected(
            f"--poll must be {SHORTEST:g} to {LONGEST:g} seconds, got {poll:g}."
        )
    from tacit.cli import _streaming as streaming
    from tacit.cli._output_files import (
        check_file,
        check_folder,
        check_label,
        check_state,
    )
    from tacit.privacy.ledger import labelled
    from tacit.streaming import DurableStream
    from tacit.tables import GrowingTable

    schema = schema_for(schema_path, target)
    model = streaming.stream_estimator(
        schema, model_name, given_settings(settings), **parameters
    )
    planned = model.plan(len(schema.feature_names))
    ignored = streaming.ignored_rows(schema)
    ledger = account.opened()
    warn_of_budget(planned.budget, model.horizon * model.rows_per_step)
    if only_plan:
        facts = _plan_facts(model, planned, ledger)
        facts["adds_nothing"] = ignored
        out(as_json, facts, lambda console: _show_plan(console, facts))
        return
    if state is None:
        raise Rejected("--state is missing: name a folder for the state of the stream.")
    label = schema.target.name if label is None else label
    check_label(label)
    table = GrowingTable(source, schema, **reading)
    paths = {"--releases": releases, "--output": output}
    check_state(state, streaming.OWN_FILES, "a stream", paths)
    used = [source, Path(schema_path), *account.files]
    if releases is not None:
        check_file(releases, used, "--releases")
    if output is not None:
        used = [*used, state, *([releases] if releases else [])]
        check_folder(output, True, used, "--output")
    outputs = streaming.Outputs(releases, output, schema, label)
    if not DurableStream.exists(state):  # check before the folder is created
        outputs.check(None)
        if ledger is not None:
            name = type(model).__name__
            with labelled(label):
                ledger.require(planned.event, name, guarantee=planned.budget)
    with streaming.opened_stream(model, state, ledger) as stream:
        outputs.check(stream)
        before = stream.n_steps
        if before == 0 and not (quiet or as_json):
            _print_ignored(ignored)

        def print_step(stream: Any) -> None:
            if not (once or quiet or as_json):
                click.echo(_step_line(stream))

        waiting = None
        try:
            waiting = streaming.learn(
                stream,
                table,
                outputs,
                follow=not once,
                poll=poll,
                after_step=print_step,
            )
        except KeyboardInterrupt:
            if once:
                raise
        data = _facts(stream, before, waiting, outputs)
        data["adds_nothing"] = ignored
    out(as_json, data, lambda console: _show(console, stream, data))


def _print_ignored(conditions: list[str]) -> None:
    """Print which rows are ignored, because no run reports that it met one."""
    for condition in conditions:
        click.echo(clean(f"ignored      rows where {condition}"))


def _plan_facts(model: Any, planned: Any, ledger: Any) -> dict[str, Any]:
    from tacit._release import is_note
    from tacit.privacy.report import in_words

    budget, terms = planned.budget, planned.terms
    stated = (*planned.assumptions, *planned.learner.assumptions)
    return {
        "estimator": type(model).__name__,
        "learner": type(planned.learner).__name__,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbors": budget.neighbors.value,
        "horizon": terms.horizon,
        "rows_per_step": terms.rows_per_step,
        "rows_per_person": terms.rows_per_person,
        "noise": in_words(planned.event),
        "assumptions": [words for words in stated if not is_note(words)],
        "notes": list(filter(is_note, stated)),
        "ledger": cost_facts(ledger, planned.event, planned.budget),
    }


def _show_plan(console: Console, facts: dict[str, Any]) -> None:
    console.print(f"estimator    {facts['estimator']}, {facts['learner']}")
    console.print(
        f"guarantee    epsilon {facts['epsilon']:g}, delta {facts['delta']:.3g}, "
        f"neighbors {facts['neighbors']}"
    )
    console.print(
        f"steps        {facts['horizon']:,} of {facts['rows_per_step']:,} row(s), "
        "charged together before the first"
    )
    console.print(f"noise        {facts['noise']}")
    for assumption in facts["assumptions"]:
        console.print(f"assumes      {assumption}")
    for note in facts["notes"]:
        console.print(f"note         {note}")
    _print_ignored(facts["adds_nothing"])
    show_account(console, facts["ledger"])


def _facts(
    stream: Any, before: int, waiting: int | None, outputs: Any
) -> dict[str, Any]:
    """Return the facts of a run, all of them public, as plain data."""
    model, begun = stream.model, stream.n_steps > 0
    return {
        "estimator": type(model).__name__,
        "stream": stream.identity,
        "steps_before": before,
        "step": stream.n_steps,
        "horizon": model.horizon,
        "rows": stream.n_steps * model.rows_per_step,
        "waiting": waiting,
        "done": stream.n_steps >= model.horizon,
        "ended_before": before >= model.horizon,
        "last_refit": getattr(model, "last_refit_", None),
        "privacy": model.privacy_.to_dict() if begun else None,
        "state": str(stream.folder),
        "releases": None if outputs.releases is None else str(outputs.releases),
        "output": None if outputs.folder is None else str(outputs.folder),
        "ledger": account_facts(stream.ledger),
    }


def _step_line(stream: Any) -> str:
    model = stream.model
    rows = stream.n_steps * model.rows_per_step
    return f"step         {stream.n_steps} of {model.horizon}, {rows} rows used"


def _show(console: Console, stream: Any, data: dict[str, Any]) -> None:
    if data["step"]:
        console.print(str(stream.model.privacy_))
    else:
        console.print("guarantee    none yet: the first step charges the budget")
    if data["steps_before"]:
        console.print("charged      at step 1; this run charged nothing")
    waiting = data["waiting"]
    rest = f", {waiting} waiting" if waiting is not None else ""
    console.print(f"{_step_line(stream)}{rest}")
    if data["step"] == data["steps_before"]:
        console.print("no step      this run released no model")
    last = data["last_refit"]
    if last:
        rows = last * stream.model.rows_per_step
        console.print(f"fitted       after step {last}, to the first {rows} rows")
    elif last is not None:
        console.print("fitted       not yet: the coefficients are those of the start")
    if data["done"]:
        console.print(
            f"end          all {data['horizon']} steps of the horizon are done; to "
            "learn from more rows, start another stream, with a charge of its own"
        )
    for name in ("releases", "output", "state"):
        if data[name] is not None:
            console.print(f"{name:12} {data[name]}")
    show_account(console, data["ledger"])
