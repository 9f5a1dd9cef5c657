"""``tacit label``: label public rows by private votes, and train a student."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tacit.cli._console import (
    Rejected,
    account_facts,
    json_option,
    out,
    show_account,
    warn_of_budget,
)
from tacit.cli._learners import LEARNERS, dry_run_checked, learner
from tacit.cli._options import (
    Account,
    Names,
    csv_options,
    given_settings,
    ledger_options,
    neighbors_options,
    no_ledger_option,
    schema_for,
    schema_options,
    settings_option,
)


def _mechanisms() -> list[str]:
    """Return the values of ``--mechanism``."""
    from tacit.mechanisms._votes._plans import VOTES

    return ["auto", *VOTES]


@click.command()
@click.argument("private", type=click.Path(path_type=Path))
@click.argument("public", type=click.Path(path_type=Path), required=False)
@schema_options
@click.option("--epsilon", type=float, required=True, help="Budget of all answers.")
@click.option("--delta", type=float, help="1 / rows^2 unless given.")
@neighbors_options
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="Folder for the teachers and the released labels. Keep it secret; it is "
    "needed to resume.",
)
@click.option(
    "--teachers",
    default="auto",
    metavar="N|auto",
    help="Number of teachers, among which the private rows are divided.",
)
@click.option(
    "--teacher",
    type=click.Choice(list(LEARNERS)),
    help="Learner of the teachers; by default logistic for categories, linear for "
    "numbers.",
)
@click.option(
    "--set-teacher",
    "teacher_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the teachers; the value is JSON or a string.",
)
@click.option(
    "--student",
    type=click.Choice([*LEARNERS, "none"]),
    help="Learner that is trained on the labels; none writes only the labels.",
)
@click.option(
    "--set-student",
    "student_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the student; the value is JSON or a string.",
)
@click.option(
    "--mechanism",
    type=Names(_mechanisms),
    default="auto",
    help="How votes become labels; auto is gnmax for categories, mean for numbers.",
)
@click.option(
    "--queries",
    type=click.IntRange(1),
    help="Number of public rows to label; all by default. Fewer need less noise.",
)
@click.option(
    "--max-refusals",
    type=click.IntRange(0),
    help="Rows that may stay without a label, for mechanism stable.",
)
@click.option(
    "--agreement",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.8,
    help="Public guess of the fraction of teachers that agree.",
)
@click.option(
    "--ids",
    metavar="COLUMN",
    help="Column of PRIVATE that names the person; all rows of a person are protected "
    "together.",
)
@click.option(
    "--labels-only",
    is_flag=True,
    help="Protect only the labels and treat the features as public: PRIVATE itself is "
    "labelled, and --labels contains only its features.",
)
@settings_option
@ledger_options
@no_ledger_option
@click.option("--label", help="Name of the charge in the ledger.")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="File to write the public rows and their labels to, .csv or .parquet.",
)
@click.option("--votes", is_flag=True, help="Also write the noisy votes or means.")
@click.option(
    "--output",
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write the student to, with its report and card.",
)
@click.option(
    "--force", is_flag=True, help="Replace existing labels and an existing student."
)
@click.option(
    "--jobs", type=int, help="Number of processes for training; one by default."
)
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Print cost and expected labels and exit; reads no row, charges nothing.",
)
@csv_options
@click.option("--quiet", is_flag=True, help="No progress bars.")
@json_option
def command(
    private: Path,
    public: Path | None,
    schema_path: str,
    target: str | None,
    state: Path | None,
    teachers: str,
    teacher: str | None,
    teacher_settings: tuple[str, ...],
    student: str | None,
    student_settings: tuple[str, ...],
    queries: int | None,
    ids: str | None,
    labels_only: bool,
    settings: tuple[str, ...],
    account: Account,
    label: str | None,
    labels: Path | None,
    votes: bool,
    output: Path | None,
    force: bool,
    jobs: int | None,
    only_plan: bool,
    reading: dict[str, Any],
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Label PUBLIC rows by votes of models trained on PRIVATE rows.

    The PRIVATE rows are divided among many ordinary models, the teachers, and the
    noisy majority or mean of their votes labels each row of PUBLIC. The student is an
    ordinary model that is trained on these labels and has the same guarantee.

    Both tables are CSV, Parquet or Arrow files, or folders of Parquet files, with the
    columns of the schema; PUBLIC needs no target. One charge covers all labels. The
    same command resumes a run that was interrupted.
    """
    # long: one parameter for each option, and steps in the order of what may fail
    account.require(only_plan)
    _check_combination(public, labels_only, ids, parameters["neighbors"])
    from tacit.cli import _labeling as labeling
    from tacit.cli import _students as students
    from tacit.cli._pool import read_pool, read_private
    from tacit.ensemble import PrivateStudent
    from tacit.privacy.ledger import labelled

    schema = schema_for(schema_path, target)
    shown = not (quiet or as_json)
    set_teacher = given_settings(teacher_settings, "--set-teacher")
    set_student = given_settings(student_settings, "--set-student")
    teacher_learner = learner(schema, teacher, set_teacher, "--teacher")
    student_learner = students.student_learner(schema, student, set_student, output)

    def dry_run(teacher_rows: float, student_rows: int) -> Any:
        """Fit teacher and student to synthetic rows; reject those that cannot learn."""
        labeler.set_params(
            estimator=dry_run_checked(
                teacher_learner, set_teacher, schema, int(teacher_rows), "--teacher"
            )
        )
        if student_learner is None:
            return None
        return dry_run_checked(
            student_learner, set_student, schema, student_rows, "--student"
        )

    labeler = labeling.labeler_for(
        schema,
        teacher_learner,
        given_settings(settings),
        n_teachers=_number_of_teachers(teachers),
        private="labels" if labels_only else "rows",
        n_jobs=jobs,
        verbose=shown,
        **parameters,
    )
    ledger = account.opened()
    if only_plan:
        facts = labeling.plan_facts(labeler, queries, ledger)
        dry_run(facts["plan"]["rows_per_teacher"], labeler.n_queries)
        out(as_json, facts, lambda console: _show_plan(console, facts))
        return
    label = schema.target.name if label is None else label
    used = [p for p in (private, public) if p is not None]
    used += [Path(schema_path), *account.files]
    paths = labeling.Paths(state, labels, output, force)
    paths.check(used, label)
    pool = read_pool(
        public or private, schema, queries, features_only=labels_only, **reading
    )
    labeling.check_outputs(pool, paths)
    rows = read_private(private, schema, ids, shown, **reading)
    labeler.set_params(n_queries=pool.n_queries)
    planned = labeler.plan(len(rows.X))
    if votes:
        labeling.check_votes(labeler, planned, schema, pool)
    ready_student = dry_run(planned.rows_per_teacher, pool.n_queries)
    counted = parameters["neighbors"] == "replace_one"
    warn_of_budget(planned.budget, len(rows.X) if counted else labeler.expected_rows)
    if ledger is not None and not paths.begun:
        with labelled(label):
            ledger.require(planned.event, "tacit label", guarantee=planned.budget)
    with labeling.opened(labeler, paths, pool, ledger) as durable:
        students.check_same_student(output, force, durable.identity)
        before = durable.n_queried
        with labelled(label):
            durable.fit(rows.X, rows.y, ids=rows.ids)
        answers = labeling.label_pool(durable, pool)
        if labels is not None:
            named = labeling.vote_columns(labeler, schema) if votes else None
            table = labeling.labelled_table(pool, answers, schema, named)
            labeling.write_labels(labels, table, force)
        data = _facts(durable, planned, pool, before, paths)
        data["private_rows"] = len(rows.X) if counted else None
        if output is not None:
            # no further label is released
            trained = PrivateStudent(durable, ready_student).fit_pool(pool.X, answers)
            data |= students.write(output, trained, schema, label, rows)
    out(as_json, data, lambda console: _show(console, labeler, data))


def _check_combination(
    public: Path | None, labels_only: bool, ids: str | None, neighbors: str
) -> None:
    """Reject options that exclude each other."""
    if labels_only and public is not None:
        raise Rejected(
            "--labels-only labels PRIVATE itself, whose features are public; leave "
            "PUBLIC out."
        )
    if not labels_only and public is None:
        raise Rejected(
            "PUBLIC is missing: name the table to label, or give --labels-only if the "
            "features of PRIVATE are public."
        )
    if labels_only and neighbors != "replace_one":
        raise Rejected(
            "--labels-only needs --neighbors replace_one, because the features and "
            "so the number of rows are public."
        )
    if ids is not None and neighbors != "add_or_remove_one":
        raise Rejected(
            "--ids needs --neighbors add_or_remove_one: a replaced row may have "
            "another id, which would change two teachers."
        )


def _number_of_teachers(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise Rejected(f"--teachers must be a number or auto, got {text!r}.") from None


def _facts(
    durable: Any, planned: Any, pool: Any, before: int, paths: Any
) -> dict[str, Any]:
    """Return the facts of a run, all of them public, as plain data."""
    labeler, answers = durable.labeler, durable.labels
    return {
        "mechanism": type(planned.mechanism).__name__,
        "teachers": labeler.n_teachers_,
        "rows": len(pool.X),
        "asked_before": before,
        "asked": durable.n_queried,
        "answered": int(answers.answered.sum()),
        "ended": durable.remaining.ended,
        "privacy": labeler.privacy_.to_dict(),
        "labels": None if paths.labels is None else str(paths.labels),
        "output": None if paths.output is None else str(paths.output),
        "state": str(paths.state),
        "ledger": account_facts(durable.ledger),
    }


def _show_plan(console: Console, facts: dict[str, Any]) -> None:
    console.print(facts["words"])
    rows = int(facts["plan"]["rows_per_teacher"])
    console.print(f"dry run      a teacher learns from {rows:,} synthetic rows")
    console.print(f"noise        {facts['noise']}")
    for assumption in facts["assumptions"]:
        console.print(f"assumes      {assumption}")
    show_account(console, facts["ledger"])


def _show(console: Console, labeler: Any, data: dict[str, Any]) -> None:
    console.print(str(labeler.privacy_))
    if data["asked_before"]:
        console.print(
            f"resumed      after {data['asked_before']} rows; this run charged nothing"
        )
    console.print(f"teachers     {data['teachers']}, mechanism {data['mechanism']}")
    console.print(
        f"labelled     {data['answered']} of {data['asked']} queried rows, of "
        f"{data['rows']} rows in all"
    )
    if data["answered"] < data["rows"]:
        console.print(
            f"unlabelled   {data['rows'] - data['answered']} rows: "
            f"{data['asked'] - data['answered']} withheld by the mechanism, "
            f"{data['rows'] - data['asked']} not queried"
        )
    for name in ("labels", "output", "state"):
        if data[name] is not None:
            console.print(f"{name:12} {data[name]}")
    show_account(console, data["ledger"])
