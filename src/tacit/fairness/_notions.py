"""Notions of group fairness, all of one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.fairness._groups import Cells, Group, Layout, cells_of, column
from tacit.fairness._plots import draw_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "PRIVATE_DATA",
    "FairnessForm",
    "GroupFairness",
    "comparisons",
    "form_of",
    "group_fairness",
]

Floats = NDArray[np.float64]

PRIVATE_DATA = (
    "private data: this was computed from rows without noise, and leaks information "
    "about them. Do not publish it unless the rows are public."
)


@dataclass(frozen=True, eq=False)
class FairnessForm:
    """A notion as a linear function of the accuracies in cells.

    ``F_k = C0_k + sum_c C_kc P(right | cell c)``, positive where the group is better
    off than the average.

    Parameters
    ----------
    notion
        Name of the notion.
    groups
        Group of each figure.
    cells
        What defines each cell.
    sizes
        Rows in each cell.
    own
        Fraction of each cell in the group, one row a group.
    average
        Fraction of each cell among those the group is compared with.
    sign
        -1 where a wrong answer is what the figure counts, else 1.

    Notes
    -----
    **Bound.** An identity [1]_, Section 6.3.1. A figure compares how often an event
    happens in the group, ``sum_c own_kc P(event | c)``, with how often it does on
    average. The event is a right answer; or, for demographic parity, that a label is
    predicted: a right answer to those who have it, a wrong one to the others.

    References
    ----------
    .. [1] Mangold, "Exploiting problem structure in privacy-preserving optimization and
       machine learning", dissertation, Universite de Lille, 2023, Chapter 6 and
       Appendix C.1.
    """

    notion: str
    groups: tuple[Group, ...]
    cells: tuple[Group, ...]
    sizes: tuple[int, ...]
    own: Floats
    average: Floats
    sign: Floats

    @property
    def C(self) -> Floats:
        """Weight of the accuracy in each cell, one row a group."""
        return self.sign * (self.own - self.average)

    @property
    def C0(self) -> Floats:
        """Part of each figure that no prediction changes."""
        wrong = np.where(self.sign < 0, self.own - self.average, 0.0)
        return np.asarray(wrong.sum(axis=1))

    def value(self, accuracies: ArrayLike) -> Floats:
        """Return the figure of each group from the accuracies in cells."""
        return self.C0 + self.C @ np.asarray(accuracies, dtype=np.float64)

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Rows of each group."""
        sizes = (self.own > 0) @ np.asarray(self.sizes)
        return tuple(int(size) for size in sizes)


@dataclass(frozen=True, eq=False)
class GroupFairness:
    """Figures of groups, on the rows a model was measured on.

    Parameters
    ----------
    notion
        Name of the notion.
    groups
        Group of each figure.
    sizes
        Rows of each group.
    values
        The figure of each group: above zero where it is better off than the average.
    privacy
        A note that this is private data.
    """

    notion: str
    groups: tuple[Group, ...]
    sizes: tuple[int, ...]
    values: Floats
    privacy: str = PRIVATE_DATA

    @property
    def aggregate(self) -> float:
        """Mean over the groups of the absolute figures."""
        return float(np.abs(self.values).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "notion": self.notion,
            "groups": [
                {**group.to_dict(), "rows": size, "value": float(value)}
                for group, size, value in zip(
                    self.groups, self.sizes, self.values, strict=True
                )
            ],
            "aggregate": self.aggregate,
            "privacy": self.privacy,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the figure of each group; needs matplotlib."""
        return draw_groups(self.notion, self.groups, self.values, ax=ax)

    def __str__(self) -> str:
        lines = [f"{self.notion}, mean of absolute figures {self.aggregate:.4f}"]
        for group, size, value in zip(
            self.groups, self.sizes, self.values, strict=True
        ):
            lines.append(f"  {group!s:30} {value:+.4f}  ({size} rows)")
        return "\n".join([*lines, self.privacy])


def form_of(cells: Cells) -> FairnessForm:
    """Return the form of a notion for rows in cells."""
    sizes = cells.counts()
    groups, inside, among, sign = comparisons(cells.layout)
    return FairnessForm(
        cells.layout.notion,
        groups,
        cells.layout.cells,
        tuple(int(size) for size in sizes),
        _fractions(inside, sizes),
        _fractions(among, sizes),
        sign,
    )


def comparisons(
    layout: Layout,
) -> tuple[tuple[Group, ...], NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """Return groups, the cells of each and those it is compared with, and signs."""
    known = layout.cells
    if layout.alone:
        every, none = np.ones((1, 1), dtype=bool), np.zeros((1, 1), dtype=bool)
        return known, every, none, np.ones((1, 1))
    if layout.notion == "demographic_parity":
        # the group is all of its rows, and right answers to some are what counts
        inside = np.array([[g.sensitive == c.sensitive for c in known] for g in known])
        sign = np.array([[1.0 if g.label == c.label else -1.0 for c in known]
                         for g in known])  # fmt: skip
        return known, inside, np.ones_like(inside), sign
    groups = known
    if layout.notion == "equal_opportunity":
        # the mean is over desirable labels only: other figures are zero by definition
        groups = tuple(group for group in known if group.label in layout.desirable)
    inside = np.array([[group == cell for cell in known] for group in groups])
    among = np.array([[g.label == c.label for c in known] for g in groups])
    return groups, inside, among, np.ones(inside.shape)


def _fractions(chosen: NDArray[np.bool_], sizes: NDArray[np.int64]) -> Floats:
    """Return the fraction of each cell among those chosen, zero where none is."""
    counts = chosen * sizes
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.maximum(total, 1), dtype=np.float64)


def group_fairness(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    notion: str = "equalized_odds",
    desirable: Any = None,
) -> GroupFairness:
    """Return how much better or worse than the average each group is treated.

    Parameters
    ----------
    y_true
        Label of each row.
    y_pred
        What a model predicts for each row.
    sensitive_features
        Group of each row; with several columns, groups are their combinations.
    notion
        ``"equalized_odds"``: right answers given label and group, against given the
        label. ``"equal_opportunity"``: the same for desirable labels alone.
        ``"accuracy_parity"``: right answers in the group, against in all rows.
        ``"demographic_parity"``: how often a label is predicted in the group, against
        in all rows. ``"accuracy"``: right answers in all rows.
    desirable
        Labels that count for equality of opportunity; the larger of two by default.

    Notes
    -----
    **Bound.** Exact for these rows, and no statement about others. It is not private:
    figures of private rows are private data.

    Examples
    --------
    >>> from tacit.fairness import group_fairness
    >>> y = [0] * 10 + [1] * 10
    >>> who = ["a", "b"] * 10
    >>> found = group_fairness(y, [0] * 15 + [1] * 5, sensitive_features=who)
    >>> [f"{group}: {value:+.2f}" for group, value in zip(found.groups, found.values)]
    ['label 0, group a: +0.00', 'label 0, group b: +0.00', 'label 1, group a: -0.10', \
'label 1, group b: +0.10']
    """
    cells = cells_of(y_true, sensitive_features, notion, desirable)
    truth, predicted = column("y_true", y_true), column("y_pred", y_pred)
    if len(predicted) != len(truth):
        raise ValueError("y_true and y_pred must have as many rows as each other.")
    # strings beside numbers, or probabilities, would be wrong everywhere and look fair
    if not set(predicted.tolist()) <= set(truth.tolist()):
        raise ValueError(
            "y_pred must contain labels of y_true, of the same type; give predicted "
            "labels, not probabilities."
        )
    right = np.asarray(truth == predicted, dtype=bool)
    form = form_of(cells)
    values = form.value(cells.means(right))
    return GroupFairness(notion, form.groups, form.group_sizes, values)
