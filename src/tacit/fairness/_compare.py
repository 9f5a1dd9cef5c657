"""Comparison of two known models, with the looseness of the bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.fairness._bounds import changes, fragile_rows
from tacit.fairness._groups import cells_of
from tacit.fairness._margins import Codes, LinearModel, read_model
from tacit.fairness._notions import PRIVATE_DATA, GroupFairness, form_of

__all__ = ["ModelComparison", "compare_models"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Figures of two models on the same rows, and bounds on their difference.

    Parameters
    ----------
    first, second
        Figures of the models.
    distance
        Distance of their weights, intercepts included.
    turned
        Fraction of the rows that one model gets right and the other wrong.
    along, near
        Fractions of the rows that may turn, by how far each margin moved and by the
        distance alone.
    change_along, change_near
        Bounds on the change of each figure from those rows.
    privacy
        A note that this is private data.
    """

    first: GroupFairness
    second: GroupFairness
    distance: float
    turned: float
    along: float
    near: float
    change_along: Floats
    change_near: Floats
    privacy: str = PRIVATE_DATA

    @property
    def difference(self) -> Floats:
        """Figures of the second model less those of the first."""
        return self.second.values - self.first.values

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "difference": self.difference.tolist(),
            "distance": self.distance,
            "turned": self.turned,
            "along": self.along,
            "near": self.near,
            "change_along": self.change_along.tolist(),
            "change_near": self.change_near.tolist(),
            "privacy": self.privacy,
        }

    def __str__(self) -> str:
        lines = [
            f"{self.first.notion} of two models at distance {self.distance:.4g}",
            f"answers that turn: {self.turned:.4f}; margins that move far enough: "
            f"{self.along:.4f}; margins within the distance: {self.near:.4f}",
        ]
        for k, group in enumerate(self.first.groups):
            lines.append(
                f"  {group!s:30} {self.first.values[k]:+.4f} to "
                f"{self.second.values[k]:+.4f}  (at most {self.change_along[k]:.4f} by "
                f"margins, {self.change_near[k]:.4f} by the distance)"
            )
        return "\n".join([*lines, self.privacy])


def compare_models(
    y_true: Any,
    *,
    sensitive_features: Any,
    first: Any,
    second: Any,
    X: Any,
    notion: str = "equalized_odds",
    desirable: Any = None,
) -> ModelComparison:
    """Return how the figures of two known linear models differ, beside the bounds.

    Parameters
    ----------
    y_true
        Label of each row.
    sensitive_features
        Group of each row; with several columns, groups are their combinations.
    first, second
        Fitted linear classifiers of the same labels and features. Rows are clipped to
        the bounds of either, where there are any.
    X
        Rows.
    notion, desirable
        As in `group_fairness`.

    Notes
    -----
    **Bound.** Differences are exact. A margin moves by at most the move of its own
    score plus the largest move of another, for two labels and one vector of weights
    by exactly ``|(w - w') x|``; rows whose margin is smaller contain those that turn,
    and are contained in those within the distance of the weights (Mangold 2023,
    Appendix D.3.3). The difference between the two fractions is the loss of the
    Cauchy-Schwarz inequality: a row and the difference of two models are hardly ever
    parallel.
    """
    # long: one field of the comparison after another
    cells = cells_of(y_true, sensitive_features, notion, desirable)
    one, other = _comparable(read_model(first), read_model(second))
    # intercepts are compared as they are: weights of a constant feature of one
    constant = float(max(one.constant, other.constant) > 0)
    scores, norms = one.scores_and_norms(X, constant)
    moved = other.scores_and_norms(X, constant)[0]
    codes = one.codes(y_true, len(scores))
    known, found = one.judged(scores, norms, codes), other.judged(moved, norms, codes)
    distance = one.distance(other)
    rho, n_rows = known.margins, len(cells.codes)
    steps = _moves(one, scores, moved, codes)
    along = fragile_rows(rho, steps, 1.0, n_rows, known.right)
    near = fragile_rows(rho, known.lipschitz, distance, n_rows, known.right)
    form = form_of(cells)

    def figures(right: NDArray[np.bool_]) -> GroupFairness:
        values = form.value(cells.means(right))
        return GroupFairness(notion, form.groups, form.group_sizes, values)

    return ModelComparison(
        figures(known.right),
        figures(found.right),
        distance,
        float((known.right != found.right).mean()),
        float(along.either.mean()),
        float(near.either.mean()),
        changes(form, cells, along, rho, "count")[1],
        changes(form, cells, near, rho, "count")[1],
    )


def _comparable(
    one: LinearModel, other: LinearModel
) -> tuple[LinearModel, LinearModel]:
    """Return both models with the same bounds on rows, or reject them."""
    if one.classes != other.classes or one.weights.shape != other.weights.shape:
        raise ValueError("first and second must have the same labels and features.")
    given = [model.bounds for model in (one, other) if model.bounds is not None]
    if len(given) == 2 and given[0] != given[1]:
        raise ValueError("first and second must have the same bounds on rows.")
    bounds = given[0] if given else None
    return replace(one, bounds=bounds), replace(other, bounds=bounds)


def _moves(model: LinearModel, scores: Floats, moved: Floats, codes: Codes) -> Floats:
    """Return how far each margin can have moved, from the moves of its scores."""
    steps = np.abs(moved - scores)
    if model.binary:
        return steps[:, 0]
    # of the row's own label, and the largest of another
    each = np.arange(len(steps))
    own, others = steps[each, codes].copy(), steps
    others[each, codes] = 0.0
    return np.asarray(own + others.max(axis=1))
