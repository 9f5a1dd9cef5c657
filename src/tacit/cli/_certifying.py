"""Steps of ``tacit fairness``: read rows, measure groups, certify and write."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import types

from tacit.cli._console import Rejected, account_facts
from tacit.cli._output_files import write_text
from tacit.cli._reporting import made_now, model_reads_cells
from tacit.data.rows import UNREADABLE, cells_of
from tacit.exceptions import LedgerDamaged, LedgerUnavailable
from tacit.fairness import certify_model, group_fairness, private_certificate
from tacit.fairness._certificate import FairnessCertificate
from tacit.fairness._models import WeightDistance, weight_distance
from tacit.fairness._notions import GroupFairness
from tacit.persistence import SavedModel, digest
from tacit.persistence._sides import SavedSide
from tacit.privacy.ledger import labelled
from tacit.reports import fairness_html
from tacit.tables import Schema, batches, cell_batches
from tacit.tables._column import OTHER, Column
from tacit.tables._encode import is_listable, text_of
from tacit.tables._text import canonical

__all__ = ["Comparison", "Outcome", "Payment", "outcome", "written"]

NO_CERTIFICATE = (
    "how much noise changed this model is known only for models fitted with --solver "
    "output_perturbation or amp; for another linear model give --distance."
)
# Errors after the charge of a certificate, which must not lose it
LATE_ERRORS = (OSError, LedgerUnavailable, LedgerDamaged)


@dataclass(frozen=True)
class Comparison:
    """The groups, and what the certificate compares between them."""

    sensitive: tuple[str, ...]
    listed: dict[str, list[str]]
    notion: str
    desirable: tuple[str, ...]
    failure: float
    sampling: float | None
    distance: float | None


@dataclass(frozen=True)
class Payment:
    """The budget of a certificate, its ledger and the label of its charge."""

    epsilon: float
    delta: float
    ledger: Any
    label: str


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows, their labels and groups, and the desirable labels."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any]
    desirable: list[Any] | None


@dataclass(frozen=True)
class Outcome:
    """Figures of groups, a certificate, or both."""

    figures: GroupFairness | None
    certificate: FairnessCertificate | None
    no_certificate: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        found = self.certificate
        return {
            "measured": None if self.figures is None else self.figures.to_dict(),
            "certificate": None if found is None else found.to_dict(),
            "no_certificate": self.no_certificate,
        }


def outcome(
    folder: Path,
    saved: SavedModel,
    data: Path,
    comparison: Comparison,
    payment: Payment | None,
    **reading: Any,
) -> Outcome:
    """Return figures and a certificate, after all checks."""
    model, schema = _classifier(folder, saved)
    moved, reason = _distance(saved, comparison.distance)
    if payment is None:
        rows = _read(data, schema, model, comparison, **reading)
        return _measured(model, rows, comparison, moved, reason)
    if moved is None:
        raise Rejected(f"No certificate is possible: {reason}")
    groups = _public_groups(schema, comparison)
    rows = _read(data, schema, model, comparison, **reading)
    return _charged(model, rows, comparison, moved, groups, payment)


def _classifier(folder: Path, saved: SavedModel) -> tuple[Any, Schema]:
    """Return a classifier and its schema; reject a folder without them."""
    model = saved.estimator
    if isinstance(model, SavedSide) or not hasattr(model, "classes_"):
        raise Rejected(f"{folder} must contain a model that predicts categories.")
    if saved.schema is None:
        raise Rejected(
            f"{folder} has no schema: it was not written by 'tacit fit', 'stream' or "
            "'label'."
        )
    return model, Schema.from_dict(saved.schema)


def _distance(
    saved: SavedModel, given: float | None
) -> tuple[WeightDistance | float | None, str | None]:
    """Return how far noise moved a model, from its plan; or None and the reason."""
    if given is not None:
        return given, None
    model = saved.estimator
    rows = saved.facts.get("rows") or getattr(model, "expected_rows", None)
    try:
        planned = model.plan(rows, model.n_features_in_) if rows else None
        return weight_distance(model, planned), None
    except (AttributeError, TypeError, ValueError):  # fitted in another way
        return None, NO_CERTIFICATE


def _read(
    data: Path, schema: Schema, model: Any, comparison: Comparison, **reading: Any
) -> GroupedRows:
    """Return the rows of a file, by the schema that the model was fitted with."""
    name, labels = _target(schema).name, _labels(schema)
    if name in comparison.sensitive:
        raise Rejected(f"--sensitive cannot be {name!r}, the target that is predicted.")
    wanted = list(map(canonical, comparison.desirable))
    if not set(wanted) <= set(labels):
        raise Rejected(f"--desirable must name categories of {name!r}.")
    blocks: list[Any] = []
    columns: dict[str, list[str]] = {key: [] for key in (name, *comparison.sensitive)}
    read = cell_batches if model_reads_cells(model) else batches
    for block in read(data, schema, keep=list(columns), **reading):
        blocks.append(block.X)
        for key, texts in columns.items():
            texts.extend(_texts(block.kept[key], key))
    truth = columns.pop(name)
    if not set(truth) <= set(labels):
        raise Rejected(f"{data}: {name!r} must contain only categories of the schema.")
    people = [
        _joined(key, texts, _listed(schema, comparison, key))
        for key, texts in columns.items()
    ]
    groups = people[0] if len(people) == 1 else list(zip(*people, strict=True))
    column = np.empty(len(truth), dtype=object)  # numpy would make a table of tuples
    column[:] = groups
    y = np.array([labels[text] for text in truth])
    desirable = [labels[text] for text in wanted] or None
    return GroupedRows(_joined_blocks(blocks), y, column, desirable)


def _joined_blocks(blocks: list[Any]) -> Any:
    """Return the rows of all blocks, which are arrays or data frames."""
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    import pandas  # noqa: PLC0415 - an extra, which read the blocks

    return pandas.concat(blocks, ignore_index=True)


def _target(schema: Schema) -> Column:
    assert schema.target is not None  # a model was fitted to it
    return schema.target


def _labels(schema: Schema) -> dict[str, Any]:
    """Return the labels of the categories of the target, by their strings."""
    target = _target(schema)
    texts = map(canonical, target.categories)
    return dict(zip(texts, target.labels or (), strict=True))


def _texts(values: Any, name: str) -> list[str]:
    """Return one string for each value, whatever its type in the file."""
    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if not (is_listable(kind) or types.is_temporal(kind)):
        raise Rejected(f"{name!r} must contain strings or numbers.")
    found = cells_of(values)
    return ["" if cell is UNREADABLE else canonical(text_of(cell)) for cell in found]


def _listed(schema: Schema, comparison: Comparison, name: str) -> list[str] | None:
    """Return the public values of a column, None where none are known."""
    if name in comparison.listed:
        return list(dict.fromkeys([*map(canonical, comparison.listed[name]), OTHER]))
    known = {column.name: column for column in schema.columns}
    if name not in known or known[name].kind != "category":
        return None
    return list(map(canonical, known[name].indicators))


def _joined(name: str, texts: list[str], listed: list[str] | None) -> list[str]:
    """Return the group of each row; values that are not listed form one group."""
    if listed is not None:
        known = set(listed)
        return [text if text in known else OTHER for text in texts]
    if "" in set(texts):
        raise Rejected(
            f"{name!r} must not be empty in any row; give such rows a value, or list "
            f"the other values with --groups {name}=VALUE,VALUE."
        )
    return texts


def _public_groups(schema: Schema, comparison: Comparison) -> list[Any]:
    """Return the public groups of a charged certificate; reads no row."""
    each = []
    for name in comparison.sensitive:
        listed = _listed(schema, comparison, name)
        if listed is None:
            raise Rejected(
                f"The groups of {name!r} are not public: the schema does not list its "
                f"categories. Give --groups {name}=VALUE,VALUE; all other values are "
                f"then one group, {OTHER!r}."
            )
        each.append(listed)
    return each[0] if len(each) == 1 else list(product(*each))


def _measured(
    model: Any,
    rows: GroupedRows,
    comparison: Comparison,
    distance: WeightDistance | float | None,
    reason: str | None,
) -> Outcome:
    """Return figures of a model and, if a distance is known, its certificate."""
    figures = group_fairness(
        rows.y,
        model.predict(rows.X),
        sensitive_features=rows.groups,
        notion=comparison.notion,
        desirable=rows.desirable,
    )
    if distance is None:
        return Outcome(figures, None, reason)
    certificate = certify_model(
        model,
        rows.X,
        rows.y,
        sensitive_features=rows.groups,
        distance=distance,
        notion=comparison.notion,
        desirable=rows.desirable,
        failure=comparison.failure,
        sampling=comparison.sampling,
    )
    return Outcome(figures, certificate)


def _charged(
    model: Any,
    rows: GroupedRows,
    comparison: Comparison,
    distance: WeightDistance | float,
    groups: list[Any],
    payment: Payment,
) -> Outcome:
    """Return a certificate that is charged before its noise is drawn."""
    with labelled(payment.label):
        certificate = private_certificate(
            model,
            rows.X,
            rows.y,
            sensitive_features=rows.groups,
            groups=groups,
            epsilon=payment.epsilon,
            delta=payment.delta,
            notion=comparison.notion,
            desirable=rows.desirable,
            distance=distance,
            failure=comparison.failure,
            ledger=payment.ledger,
        )
    return Outcome(None, certificate)


def written(
    folder: Path,
    saved: SavedModel,
    comparison: Comparison,
    found: Outcome,
    page: Path | None,
    ledger: Any,
) -> dict[str, Any]:
    """Return an outcome as plain data, and write its page.

    It may be charged already: errors from here on are reported, and lose nothing.
    """
    assert saved.schema is not None
    facts: dict[str, Any] = {
        "title": saved.facts.get("label", type(saved.estimator).__name__),
        **made_now(),
        "model": digest(folder),
        "target": _target(Schema.from_dict(saved.schema)).name,
        "sensitive": list(comparison.sensitive),
        **found.to_dict(),
        "page": None,
        "ledger": None,
        "failed": {},
    }
    try:
        if page is not None:
            write_text(page, fairness_html(facts))
            facts["page"] = str(page)
    except LATE_ERRORS as error:
        facts["failed"]["page"] = str(error)
    try:
        facts["ledger"] = account_facts(ledger)
    except LATE_ERRORS as error:
        facts["failed"]["ledger"] = f"the charge was made; {error}"
    return facts
