"""Steps of ``tacit label``: the labeler, its folder, and the table of labels."""

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
from tacit.ensemble import DurableLabeler, Labels, PrivateLabeler
from tacit.ensemble._labeler_plan import LabelerPlan, public_classes
from tacit.ensemble._student import LEAST_POOL
from tacit.privacy.report import in_words
from tacit.tables import Schema

__all__ = [
    "Paths",
    "check_outputs",
    "check_votes",
    "label_pool",
    "labeler_for",
    "labelled_table",
    "opened",
    "plan_facts",
    "vote_columns",
    "write_labels",
]

# Folder of the labeler in the state folder, and the file of the command itself
LABELER, POOL = "labeler", "pool.json"
OWN_FILES = {LABELER, POOL, f"{POOL}.partial"}
# Parameters of the labeler that an option or the schema sets
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
# Rows that are labelled together: a kill loses the time of their votes
BATCH = 1024


def labeler_for(
    schema: Schema, teacher: Any, settings: dict[str, Any], **parameters: Any
) -> PrivateLabeler:
    """Return the labeler for the target of a schema; reject unknown parameters."""
    target = schema.target
    assert target is not None  # checked by schema_for
    make: Any = PrivateLabeler
    labeler: PrivateLabeler = make(teacher, classes=target.labels, y_range=target.range)
    known = labeler.get_params(deep=False)
    for setting in settings:
        if setting in FIXED:
            raise Rejected(f"--set {setting} is not possible; use {FIXED[setting]}.")
        if setting not in known:
            raise Rejected(f"{type(labeler).__name__} has no parameter {setting!r}.")
    labeler.set_params(**parameters, **settings)
    is_seeded(labeler.random_state)  # reject an invalid seed before rows are read
    return labeler


def plan_facts(
    labeler: PrivateLabeler, queries: int | None, ledger: Any
) -> dict[str, Any]:
    """Return cost and expected labels; reads no row."""
    if queries is None or labeler.expected_rows is None:
        raise Rejected(
            "--plan reads no row: give --expected-rows, the number of private rows, "
            "and --queries, the number of rows to label."
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
class Paths:
    """Paths of the state and of the outputs."""

    state: Path | None
    labels: Path | None
    output: Path | None
    force: bool

    @property
    def begun(self) -> bool:
        """Whether an earlier run began, and may have written the outputs."""
        assert self.state is not None
        return DurableLabeler.exists(self.state / LABELER)

    def check(self, used: list[Path], label: str) -> None:
        """Reject paths that cannot be written, before anything is charged."""
        check_label(label)
        if self.state is None:
            raise Rejected(
                "--state is missing: name a folder for the teachers and labels."
            )
        if self.labels is None and self.output is None:
            raise Rejected(
                "--labels or --output is missing: name a file or folder to write."
            )
        outputs = {"--labels": self.labels, "--output": self.output}
        check_state(self.state, OWN_FILES, "labels", outputs)
        if self.labels is not None:
            self._check_labels_file(self.labels, used)
            used = [*used, self.labels]
        if self.output is not None:
            may_replace = self.force or self.begun
            used = [*used, self.state]
            check_folder(self.output, may_replace, used, "--output", "student")

    def _check_labels_file(self, path: Path, used: list[Path]) -> None:
        if path.suffix not in SUFFIXES:
            raise Rejected(
                f"--labels must end in {' or '.join(SUFFIXES)}, got {path.name!r}."
            )
        check_file(path, used, "--labels")
        if path.exists() and not (self.force or self.begun):
            raise Rejected(f"{path} already exists; give another --labels, or --force.")
        try_writing(path, "--labels")


def opened(
    labeler: PrivateLabeler, paths: Paths, pool: Pool, ledger: Any
) -> DurableLabeler:
    """Return the labeler of the state folder; reject changed options or public rows.

    The public rows are bound to the folder before anything is charged.
    """
    state = paths.state
    assert state is not None  # checked by Paths.check
    made(state, "--state")
    try:
        durable = DurableLabeler(labeler, state / LABELER, ledger=ledger)
    except OtherParameters as other:
        options = [FIXED.get(name, f"--set {name}") for name in other.names]
        raise Rejected(
            f"The run in {state} began with other options; {', '.join(options)} must "
            "be unchanged."
        ) from None
    try:
        _bind(state / POOL, pool, begun=durable.identity is not None)
    except BaseException:
        durable.close()
        raise
    return durable


def _bind(path: Path, pool: Pool, *, begun: bool) -> None:
    """Store the digest of the rows to label, or reject rows with another digest."""
    facts = {"questions": pool.n_queries, "sha256": pool.digest}
    if not (begun or path.exists()):
        placed(path, _json.canonical(facts).encode())
    try:
        stored = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        # without it nobody knows which rows the labels belong to
        raise Rejected(
            f"{path} is damaged or missing; restore a full copy of --state, or start "
            "in another folder, which is charged again."
        ) from None
    if stored != facts:
        raise Rejected(
            f"The run in {path.parent} began with other public rows; the rows, their "
            "schema and --queries must be unchanged."
        )


def label_pool(durable: DurableLabeler, pool: Pool) -> Labels:
    """Label the remaining rows; return all labels, one for each row of the table."""
    queries = pool.X[pool.order]
    while durable.n_queried < len(queries) and not durable.remaining.ended:
        durable.label(queries[durable.n_queried : durable.n_queried + BATCH])
    labels = durable.labels
    return labels.at_rows(pool.order[: len(labels)], len(pool.X))


def vote_columns(labeler: PrivateLabeler, schema: Schema) -> list[str]:
    """Return the names of the columns with noisy votes per class, or a noisy mean."""
    assert schema.target is not None
    labels = public_classes(labeler)
    kinds = ["uncut"] if labels is None else labels
    return [f"{schema.target.name}={kind}" for kind in kinds]


def check_votes(
    labeler: PrivateLabeler, planned: LabelerPlan, schema: Schema, pool: Pool
) -> None:
    """Reject --votes if none are released, or if the table has such a column."""
    if not planned.mechanism.releases_votes:
        raise Rejected(
            "--votes needs --mechanism gnmax, confident_gnmax or mean, the only ones "
            "that release votes."
        )
    both = set(vote_columns(labeler, schema)) & set(pool.columns.column_names)
    if both:
        raise Rejected(
            f"The public table already has a column {min(both)!r}; rename it, or leave "
            "--votes out."
        )


def check_outputs(pool: Pool, paths: Paths) -> None:
    """Reject public rows that cannot become a student or a file of labels."""
    if paths.output is not None and len(pool.X) < LEAST_POOL:
        raise Rejected(
            f"A student needs at least {LEAST_POOL} rows to label; give more, or leave "
            "--output out."
        )
    if paths.labels is None:
        return
    try:
        # only the types of the columns can be wrong, so no row is needed
        empty = pool.columns.slice(0, 0)
        fill_table(pa.BufferOutputStream(), [empty], paths.labels.suffix)
    except pa.ArrowException as error:
        raise Rejected(
            f"A {paths.labels.suffix} file cannot contain all columns of the rows to "
            f"label: {str(error).splitlines()[0]}; give the other kind of file to "
            "--labels, or leave such columns out."
        ) from None


def labelled_table(
    pool: Pool, labels: Labels, schema: Schema, votes: list[str] | None
) -> Any:
    """Return the public rows with a column of labels, empty where one was withheld.

    ``votes`` are the names of the columns for noisy votes, if requested.
    """
    assert schema.target is not None
    missing = labels.missing
    column = pa.array(labels.filled(), mask=missing)
    table = pool.columns.append_column(schema.target.name, column)
    if votes:
        counts = labels.votes
        if counts is None:  # there is no answer at all
            counts = np.zeros((len(labels), len(votes)))
        for name, count in zip(votes, counts.T, strict=True):
            table = table.append_column(name, pa.array(count, mask=missing))
    return table


def write_labels(path: Path, table: Any, force: bool) -> None:
    """Write a table as a whole; without ``force`` only the same table may exist.

    An interrupted run may have written it already.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        fill_table(partial, [table], path.suffix)
        if path.exists() and not force and not filecmp.cmp(partial, path, False):
            raise Rejected(
                f"{path} already exists, with other content; give another --labels, or "
                "--force. All labels are stored in --state."
            )
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
