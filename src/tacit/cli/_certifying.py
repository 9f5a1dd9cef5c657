"""What ``tacit fairness`` reads, measures and writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import types

from tacit import __version__
from tacit.cli._accounts import account_facts
from tacit.cli._console import Rejected
from tacit.cli._reporting import put
from tacit.exceptions import LedgerDamaged, LedgerUnavailable
from tacit.fairness import (
    FairnessCertificate,
    GroupFairness,
    WeightDistance,
    certify_model,
    group_fairness,
    private_certificate,
    weight_distance,
)
from tacit.persistence import SavedModel, SavedSide, digest
from tacit.privacy import labelled
from tacit.reports import fairness_html
from tacit.tables import Schema, batches
from tacit.tables._column import OTHER, Column
from tacit.tables._encode import is_listable, text_of
from tacit.tables._parquet_cells import UNREADABLE, cells_of
from tacit.tables._text import canonical

__all__ = ["Asked", "Outcome", "Payment", "outcome", "told"]

NO_CERTIFICATE = (
    "how far noise moved this model is not known: it is for models fitted with "
    "--solver output_perturbation or amp; for another linear model give --distance."
)
# What may go wrong once a certificate is paid for, and must not lose it
TROUBLE = (OSError, LedgerUnavailable, LedgerDamaged)


@dataclass(frozen=True)
class Asked:
    """Which columns say who is in which group, and what is asked of them."""

    sensitive: tuple[str, ...]
    listed: dict[str, list[str]]
    notion: str
    desirable: tuple[str, ...]
    failure: float
    sampling: float | None
    distance: float | None


@dataclass(frozen=True)
class Payment:
    """What a certificate may spend, and who pays."""

    epsilon: float
    delta: float
    ledger: Any
    label: str


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows, their labels, the group of each, and the labels that count."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    groups: NDArray[Any]
    desirable: list[Any] | None


@dataclass(frozen=True)
class Outcome:
    """What was found: figures, a certificate, or both."""

    figures: GroupFairness | None
    certificate: FairnessCertificate | None
    why_not: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        found = self.certificate
        return {
            "measured": None if self.figures is None else self.figures.to_dict(),
            "certificate": None if found is None else found.to_dict(),
            "no_certificate": self.why_not,
        }


def outcome(
    folder: Path,
    saved: SavedModel,
    data: Path,
    asked: Asked,
    payment: Payment | None,
    **reading: Any,
) -> Outcome:
    """Return figures and a certificate; what cannot be done is refused before."""
    model, schema = _classifier(folder, saved)
    moved, why_not = _distance(saved, asked.distance)
    if payment is None:
        rows = _read(data, schema, asked, **reading)
        return _measured(model, rows, asked, moved, why_not)
    if moved is None:
        raise Rejected(f"There is no certificate: {why_not}")
    groups = _public_groups(schema, asked)
    rows = _read(data, schema, asked, **reading)
    return _charged(model, rows, asked, moved, groups, payment)


def _classifier(folder: Path, saved: SavedModel) -> tuple[Any, Schema]:
    """Return a classifier and its schema, or refuse a folder without them."""
    model = saved.estimator
    if isinstance(model, SavedSide) or not hasattr(model, "classes_"):
        raise Rejected(f"{folder} must hold a model that predicts categories.")
    if saved.schema is None:
        raise Rejected(
            f"{folder} has no schema: it was not written by 'tacit fit', 'stream' or "
            "'label'."
        )
    return model, Schema.from_dict(saved.schema)


def _distance(
    saved: SavedModel, given: float | None
) -> tuple[WeightDistance | float | None, str | None]:
    """Return how far noise moved a model, from its plan; or None, and why not."""
    if given is not None:
        return given, None
    model = saved.estimator
    rows = saved.facts.get("rows") or getattr(model, "expected_rows", None)
    try:
        planned = model.plan(rows, model.n_features_in_) if rows else None
        return weight_distance(model, planned), None
    except (AttributeError, TypeError, ValueError):  # fitted in another way
        return None, NO_CERTIFICATE


def _read(data: Path, schema: Schema, asked: Asked, **reading: Any) -> GroupedRows:
    """Return the rows of a file, by the schema that the model was fitted with."""
    name, labels = _target(schema).name, _labels(schema)
    if name in asked.sensitive:
        raise Rejected(f"--sensitive cannot be {name!r}, which is what is predicted.")
    wanted = list(map(canonical, asked.desirable))
    if not set(wanted) <= set(labels):
        raise Rejected(f"--desirable must name categories of {name!r}.")
    blocks: list[NDArray[np.float64]] = []
    columns: dict[str, list[str]] = {key: [] for key in (name, *asked.sensitive)}
    for block in batches(data, schema, keep=list(columns), **reading):
        blocks.append(block.X)
        for key, texts in columns.items():
            texts.extend(_texts(block.kept[key], key))
    truth = columns.pop(name)
    if not set(truth) <= set(labels):
        raise Rejected(f"{data}: {name!r} must hold the categories of the schema only.")
    people = [
        _joined(key, texts, _listed(schema, asked, key))
        for key, texts in columns.items()
    ]
    groups = people[0] if len(people) == 1 else list(zip(*people, strict=True))
    column = np.empty(len(truth), dtype=object)  # numpy would make a table of tuples
    column[:] = groups
    y = np.array([labels[text] for text in truth])
    desirable = [labels[text] for text in wanted] or None
    return GroupedRows(np.concatenate(blocks), y, column, desirable)


def _target(schema: Schema) -> Column:
    assert schema.target is not None  # a model was fitted to it
    return schema.target


def _labels(schema: Schema) -> dict[str, Any]:
    """Return what the texts of the target's categories stand for."""
    target = _target(schema)
    texts = map(canonical, target.categories)
    return dict(zip(texts, target.labels or (), strict=True))


def _texts(values: Any, name: str) -> list[str]:
    """Return one text for each value, whatever the file holds it as."""
    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if not (is_listable(kind) or types.is_temporal(kind)):
        raise Rejected(f"{name!r} must hold texts or numbers.")
    found = cells_of(values)
    return ["" if cell is UNREADABLE else canonical(text_of(cell)) for cell in found]


def _listed(schema: Schema, asked: Asked, name: str) -> list[str] | None:
    """Return the public values of a column, None where none are known."""
    if name in asked.listed:
        return list(dict.fromkeys([*map(canonical, asked.listed[name]), OTHER]))
    known = {column.name: column for column in schema.columns}
    if name not in known or known[name].kind != "category":
        return None
    return list(map(canonical, known[name].indicators))


def _joined(name: str, texts: list[str], listed: list[str] | None) -> list[str]:
    """Return the groups of rows: what is not listed is taken together."""
    if listed is not None:
        known = set(listed)
        return [text if text in known else OTHER for text in texts]
    if "" in set(texts):
        raise Rejected(
            f"{name!r} must not be empty in any row; give such rows a value of their "
            f"own, or list the others with --groups {name}=VALUE,VALUE."
        )
    return texts


def _public_groups(schema: Schema, asked: Asked) -> list[Any]:
    """Return the groups that a charged certificate is about; reads no row."""
    each = []
    for name in asked.sensitive:
        listed = _listed(schema, asked, name)
        if listed is None:
            raise Rejected(
                f"The groups of {name!r} are not public: the schema does not list its "
                f"categories. Give --groups {name}=VALUE,VALUE; all other values are "
                f"then counted together, as {OTHER!r}."
            )
        each.append(listed)
    return each[0] if len(each) == 1 else list(product(*each))


def _measured(
    model: Any,
    rows: GroupedRows,
    asked: Asked,
    distance: WeightDistance | float | None,
    why_not: str | None,
) -> Outcome:
    """Return figures of a model and, where a distance is known, its certificate."""
    figures = group_fairness(
        rows.y,
        model.predict(rows.X),
        sensitive_features=rows.groups,
        notion=asked.notion,
        desirable=rows.desirable,
    )
    if distance is None:
        return Outcome(figures, None, why_not)
    certificate = certify_model(
        model,
        rows.X,
        rows.y,
        sensitive_features=rows.groups,
        distance=distance,
        notion=asked.notion,
        desirable=rows.desirable,
        failure=asked.failure,
        sampling=asked.sampling,
    )
    return Outcome(figures, certificate)


def _charged(
    model: Any,
    rows: GroupedRows,
    asked: Asked,
    distance: WeightDistance | float,
    groups: list[Any],
    payment: Payment,
) -> Outcome:
    """Return a certificate that is paid for, charged before the noise is drawn."""
    with labelled(payment.label):
        certificate = private_certificate(
            model,
            rows.X,
            rows.y,
            sensitive_features=rows.groups,
            groups=groups,
            epsilon=payment.epsilon,
            delta=payment.delta,
            notion=asked.notion,
            desirable=rows.desirable,
            distance=distance,
            failure=asked.failure,
            ledger=payment.ledger,
        )
    return Outcome(None, certificate)


def told(
    folder: Path,
    saved: SavedModel,
    asked: Asked,
    found: Outcome,
    page: Path | None,
    ledger: Any,
) -> dict[str, Any]:
    """Return what is told of an outcome, as plain data, and write its page.

    It may be paid for: what goes wrong now is told, and loses nothing.
    """
    assert saved.schema is not None
    facts: dict[str, Any] = {
        "title": saved.facts.get("label", type(saved.estimator).__name__),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "tacit": __version__,
        "model": digest(folder),
        "target": _target(Schema.from_dict(saved.schema)).name,
        "sensitive": list(asked.sensitive),
        **found.to_dict(),
        "page": None,
        "ledger": None,
        "failed": {},
    }
    try:
        if page is not None:
            put(page, fairness_html(facts))
            facts["page"] = str(page)
    except TROUBLE as error:
        facts["failed"]["page"] = str(error)
    try:
        facts["ledger"] = account_facts(ledger)
    except TROUBLE as error:
        facts["failed"]["ledger"] = f"the charge stands; {error}"
    return facts
