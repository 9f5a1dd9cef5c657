"""The parts of ``tacit label``: the rows to label, the questions, what is written."""

from __future__ import annotations

import filecmp
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tacit import _json
from tacit._random import is_seeded
from tacit._resumable.files import made, placed
from tacit._resumable.record import OtherParameters
from tacit.cli._console import Rejected, cost_facts, warn_of_budget
from tacit.cli._output_files import (
    SUFFIXES,
    check_file,
    check_folder,
    check_label,
    check_state,
    fill_table,
    try_writing,
)
from tacit.cli._pool import Pool
from tacit.ensemble import DurableLabeler, LabelerPlan, Labels, PrivateLabeler
from tacit.ensemble._labeler_plan import public_classes
from tacit.ensemble._student import LEAST_POOL
from tacit.privacy.report import in_words
from tacit.tables import Schema

__all__ = [
    "Positions",
    "ask",
    "check_outputs",
    "check_votes",
    "labeler_for",
    "labelled_table",
    "opened",
    "plan_facts",
    "put_table",
    "vote_columns",
]

# Folder of the labeler in a folder of state, and what the command itself keeps there
LABELER, POOL = "labeler", "pool.json"
OWN_FILES = {LABELER, POOL, f"{POOL}.partial"}
# Parameters of the labeler with an option or a line of the schema of their own
FIXED = {
    "epsilon": "--epsilon",
    "delta": "--delta",
    "mechanism": "--mechanism",
    "max_refusals": "--max-refusals",
    "agreement": "--agreement",
    "neighbors": "--neighbors",
    "expected_rows": "--expected-rows",
    "estimator": "--teacher",
    "n_teachers": "--teachers",
    "n_queries": "--queries",
    "n_jobs": "--jobs",
    "private": "--labels-only",
    "classes": "the target's categories in the schema",
    "y_range": "the target's range in the schema",
    "teacher_folder": "--state",
    "verbose": "--quiet",
}
# Questions that are asked together: a kill loses the time that their votes took
TOGETHER = 1024


def labeler_for(
    schema: Schema, teacher: Any, settings: dict[str, Any], **parameters: Any
) -> PrivateLabeler:
    """Return the labeler for a schema's target, or refuse what it has not."""
    target = schema.target
    assert target is not None  # schema_for has refused others
    make: Any = PrivateLabeler
    labeler: PrivateLabeler = make(teacher, classes=target.labels, y_range=target.range)
    known = labeler.get_params(deep=False)
    for setting in settings:
        if setting in FIXED:
            raise Rejected(f"--set {setting} is not for that; use {FIXED[setting]}.")
        if setting not in known:
            raise Rejected(f"{type(labeler).__name__} has no parameter {setting!r}.")
    labeler.set_params(**parameters, **settings)
    is_seeded(labeler.random_state)  # rejects what is no seed, before any row is read
    return labeler


def plan_facts(
    labeler: PrivateLabeler, queries: int | None, ledger: Any
) -> dict[str, Any]:
    """Return what would be spent and is to be expected; reads no row."""
    if queries is None or labeler.expected_rows is None:
        raise Rejected(
            "--plan reads no row: give --expected-rows, the number of private rows, "
            "and --queries, that of the public ones."
        )
    labeler.set_params(n_queries=queries)
    planned = labeler.plan(labeler.expected_rows)
    warn_of_budget(planned.budget, labeler.expected_rows)
    expected = planned.expected(queries, labeler.agreement)
    return {
        "plan": expected.to_dict(),
        "words": str(expected),
        "noise": in_words(planned.event),
        "assumptions": list(planned.assumptions),
        "ledger": cost_facts(ledger, planned.event, planned.budget),
    }


@dataclass(frozen=True)
class Positions:
    """Where the state is kept and what is released goes."""

    state: Path | None
    labels: Path | None
    output: Path | None
    force: bool

    @property
    def begun(self) -> bool:
        """Whether a run began before, and may have written what is there."""
        assert self.state is not None
        return DurableLabeler.exists(self.state / LABELER)

    def reject(self, used: list[Path], label: str) -> None:
        """Refuse what could not be written, while nothing is charged yet."""
        check_label(label)
        if self.state is None:
            raise Rejected("--state must name the folder to keep teachers and answers.")
        if self.labels is None and self.output is None:
            raise Rejected("--labels or --output must say where what is released goes.")
        outputs = {"--labels": self.labels, "--output": self.output}
        check_state(self.state, OWN_FILES, "labels", outputs)
        if self.labels is not None:
            self._check_labels_file(self.labels, used)
            used = [*used, self.labels]
        if self.output is not None:
            there = self.force or self.begun
            used = [*used, self.state]
            check_folder(self.output, there, used, "--output", "student")

    def _check_labels_file(self, path: Path, used: list[Path]) -> None:
        if path.suffix not in SUFFIXES:
            raise Rejected(
                f"--labels must end in {' or '.join(SUFFIXES)}, got {path.name!r}."
            )
        check_file(path, used, "--labels")
        if path.exists() and not (self.force or self.begun):
            raise Rejected(
                f"{path} is there already; give another --labels, or --force."
            )
        try_writing(path, "--labels")


def opened(
    labeler: PrivateLabeler, positions: Positions, pool: Pool, ledger: Any
) -> DurableLabeler:
    """Return the labeler in a folder; refuse other options or rows than at its start.

    What is asked is bound to the folder before anything is charged.
    """
    state = positions.state
    assert state is not None  # as places has refused
    made(state, "--state")
    try:
        durable = DurableLabeler(labeler, state / LABELER, ledger=ledger)
    except OtherParameters as other:
        options = [FIXED.get(name, f"--set {name}") for name in other.names]
        raise Rejected(
            f"The labels in {state} were begun with other options; "
            f"{', '.join(options)} must be as then."
        ) from None
    try:
        _bind(state / POOL, pool, begun=durable.identity is not None)
    except BaseException:
        durable.close()
        raise
    return durable


def _bind(path: Path, pool: Pool, *, begun: bool) -> None:
    """Keep what is asked, or refuse rows other than those that were kept."""
    facts = {"questions": pool.n_queries, "sha256": pool.digest}
    if not (begun or path.exists()):
        placed(path, _json.canonical(facts).encode())
    try:
        kept = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        # without it nobody knows which rows the answers are of
        raise Rejected(
            f"{path} is damaged or gone; put a whole copy of --state back, or begin in "
            "another folder, which is charged anew."
        ) from None
    if kept != facts:
        raise Rejected(
            f"The labels in {path.parent} were begun for other public rows; the rows, "
            "their schema and --queries must be as then."
        )


def ask(durable: DurableLabeler, pool: Pool) -> Labels:
    """Ask what was not asked yet; return all answers, one for each row of the table."""
    questions = pool.X[pool.order]
    while durable.n_queried < len(questions) and not durable.remaining.ended:
        durable.label(questions[durable.n_queried : durable.n_queried + TOGETHER])
    labels = durable.labels
    return labels.at_rows(pool.order[: len(labels)], len(pool.X))


def vote_columns(labeler: PrivateLabeler, schema: Schema) -> list[str]:
    """Return the names of the columns with noisy votes, one a class or for a mean."""
    assert schema.target is not None
    labels = public_classes(labeler)
    told = ["uncut"] if labels is None else labels
    return [f"{schema.target.name}={label}" for label in told]


def check_votes(
    labeler: PrivateLabeler, planned: LabelerPlan, schema: Schema, pool: Pool
) -> None:
    """Refuse votes where there will be none, or a table that has such columns."""
    if not planned.mechanism.releases_votes:
        raise Rejected(
            "--votes are released by --mechanism gnmax, confident_gnmax and mean "
            "alone; leave the option out."
        )
    both = set(vote_columns(labeler, schema)) & set(pool.columns.column_names)
    if both:
        raise Rejected(
            f"The public table has a column {min(both)!r} already; rename it, or leave "
            "--votes out."
        )


def check_outputs(pool: Pool, positions: Positions) -> None:
    """Refuse public rows that no student or no file of labels can be made of."""
    if positions.output is not None and len(pool.X) < LEAST_POOL:
        raise Rejected(
            f"A student learns from at least {LEAST_POOL} rows to label; give more, or "
            "leave --output out."
        )
    if positions.labels is None:
        return
    try:
        # the types are what can be wrong, and no row has others
        none = pool.columns.slice(0, 0)
        fill_table(pa.BufferOutputStream(), [none], positions.labels.suffix)
    except pa.ArrowException as error:
        raise Rejected(
            f"--labels cannot be a file {positions.labels.suffix} with all columns of "
            f"the rows to label: {str(error).splitlines()[0]}; give the other kind of "
            "file, or leave such columns out."
        ) from None


def labelled_table(
    pool: Pool, labels: Labels, schema: Schema, votes: list[str] | None
) -> Any:
    """Return the public rows with one column more, empty where there is no answer.

    ``votes`` are the names of the columns for noisy votes, if they are wanted.
    """
    assert schema.target is not None
    missing = labels.missing
    column = pa.array(labels.filled(), mask=missing)
    table = pool.columns.append_column(schema.target.name, column)
    if votes:
        counts = labels.votes
        if counts is None:  # as there is no answer at all
            counts = np.zeros((len(labels), len(votes)))
        for name, count in zip(votes, counts.T, strict=True):
            table = table.append_column(name, pa.array(count, mask=missing))
    return table


def put_table(path: Path, table: Any, force: bool) -> None:
    """Write a table as a whole; what is there must be this very table, or go by force.

    A run that was killed may have written it already.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        fill_table(partial, [table], path.suffix)
        if path.exists() and not force and not filecmp.cmp(partial, path, False):
            raise Rejected(
                f"{path} is there already, with something else; give another --labels, "
                "or --force. All answers are kept in --state."
            )
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
