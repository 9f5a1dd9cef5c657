"""Certificates of the fairness of a model near another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._validate import fraction, nonnegative, one_of
from tacit.fairness._bounds import BOUNDS, Fragile, changes, fragile_rows
from tacit.fairness._distances import Distance
from tacit.fairness._groups import Cells, Group, cells_of
from tacit.fairness._notions import PRIVATE_DATA, form_of
from tacit.fairness._plots import draw_groups
from tacit.fairness._sampling import Ends, population_ends, tallies_of
from tacit.privacy import PrivacyReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FairnessCertificate", "certify", "checked_distance"]

Floats = NDArray[np.float64]


# wide: one field for each fact that a certificate states
@dataclass(frozen=True, eq=False)
class FairnessCertificate:
    """Intervals for the figures of another model, from those of a reference.

    Parameters
    ----------
    notion
        Name of the notion.
    groups
        Group of each figure.
    sizes
        Rows of each group; None where they were released with noise.
    values
        Figures of the reference on these rows.
    lower, upper
        Ends for the figures of the other model on these rows.
    change
        Most by which each figure can differ between the two models.
    distance
        Distance of the weights that this is based on; None for simulations.
    failure
        Probability that any of the intervals fails.
    bound
        How the change was bounded.
    sampling
        Part of ``failure`` that is for the sampling of rows.
    population_lower, population_upper
        Ends for the other model in the population; None without ``sampling``.
    privacy
        A note that this is private data, or the report of the charge for it.
    other
        Description of the other model, where the distance has one.
    """

    notion: str
    groups: tuple[Group, ...]
    sizes: tuple[int, ...] | None
    values: Floats
    lower: Floats
    upper: Floats
    change: Floats
    distance: float | None
    failure: float
    bound: str = "one_sided"
    sampling: float | None = None
    population_lower: Floats | None = None
    population_upper: Floats | None = None
    privacy: str | PrivacyReport = PRIVATE_DATA
    other: str | None = None

    @property
    def largest_change(self) -> float:
        """Most by which any figure can differ between the two models."""
        return float(self.change.max())

    @property
    def aggregate(self) -> float:
        """Mean over the groups of the absolute figures of the reference."""
        return float(np.abs(self.values).mean())

    @property
    def aggregate_interval(self) -> tuple[float, float]:
        """Ends for that mean of the other model."""
        crossing = (self.lower <= 0) & (self.upper >= 0)
        ends = np.abs(np.stack([self.lower, self.upper]))
        least = np.where(crossing, 0.0, ends.min(axis=0))
        return float(least.mean()), float(ends.max(axis=0).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        charged = isinstance(self.privacy, PrivacyReport)
        return {
            "notion": self.notion,
            "groups": [self._row(k) for k in range(len(self.groups))],
            "aggregate": self.aggregate,
            "aggregate_interval": list(self.aggregate_interval),
            "largest_change": _finite(self.largest_change),
            "distance": self.distance,
            "failure": self.failure,
            "sampling": self.sampling,
            "bound": self.bound,
            "other": self.other,
            "charged": charged,
            "privacy": self.privacy.to_dict()  # type: ignore[union-attr]
            if charged
            else self.privacy,
        }

    def _row(self, k: int) -> dict[str, Any]:
        row = {
            **self.groups[k].to_dict(),
            "rows": None if self.sizes is None else self.sizes[k],
            "value": float(self.values[k]),
            "lower": float(self.lower[k]),
            "upper": float(self.upper[k]),
            "change": _finite(self.change[k]),
        }
        if self.population_lower is not None and self.population_upper is not None:
            row["population_lower"] = float(self.population_lower[k])
            row["population_upper"] = float(self.population_upper[k])
        return row

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the figures of the reference and the intervals; needs matplotlib."""
        intervals = [("other model, these rows", self.lower, self.upper)]
        if self.population_lower is not None and self.population_upper is not None:
            intervals.append(
                ("other model, population", self.population_lower,
                 self.population_upper)
            )  # fmt: skip
        return draw_groups(
            self.notion, self.groups, self.values, intervals=tuple(intervals), ax=ax
        )

    def __str__(self) -> str:
        near = (
            "as the simulated ones"
            if self.distance is None
            else f"within {self.distance:.4g} of the reference in its weights"
        )
        lines = [
            f"{self.notion}: no figure of the other model, {near}, differs by more "
            f"than {self.largest_change:.4f}",
            f"certified except with probability {self.failure:g}, if the distance "
            "holds: where the other model's figures lie, relative to the reference",
            "not certified: that either model is fair, or anything about other models",
            *([] if self.other is None else [f"the other model: {self.other}"]),
        ]
        for k, group in enumerate(self.groups):
            line = (
                f"  {group!s:30} {self.values[k]:+.4f}  "
                f"[{self.lower[k]:+.4f}, {self.upper[k]:+.4f}]"
            )
            if self.population_lower is not None and self.population_upper is not None:
                ends = self.population_lower[k], self.population_upper[k]
                line += "  population [{:+.4f}, {:+.4f}]".format(*ends)
            lines.append(line)
        if self.population_lower is None:
            lines.append("these rows only: not certified for the population")
        return "\n".join([*lines, str(self.privacy)])


def _finite(value: float) -> float | None:
    """Return a number for JSON; an infinite bound is None."""
    return float(value) if np.isfinite(value) else None


def certify(
    y_true: Any,
    *,
    sensitive_features: Any,
    margins: ArrayLike,
    lipschitz: ArrayLike,
    distance: Distance,
    right: ArrayLike | None = None,
    notion: str = "equalized_odds",
    desirable: Any = None,
    failure: float = 0.01,
    sampling: float | None = None,
    bound: str = "one_sided",
) -> FairnessCertificate:
    """Return intervals for the fairness of any model near a reference.

    Parameters
    ----------
    y_true
        Label of each row.
    sensitive_features
        Group of each row; with several columns, groups are their combinations.
    margins, lipschitz
        Margins of the reference and their Lipschitz constants, as `linear_margins`
        gives them. The reference may be the private model, and the other one that
        without noise, or the other way round.
    distance
        Distance of the weights of the two models: a number that holds except with
        ``failure`` less ``sampling``, or a function of that probability.
    right
        Whether the reference is right about each row, as `linear_margins` gives it.
        Only ties, whose margin is zero, need it: without it they count as wrong.
    notion, desirable
        As in `group_fairness`.
    failure
        Probability that the certificate fails, over noise and sampling.
    sampling
        Part of ``failure`` for the rows being a sample; None for intervals that are
        about these rows only.
    bound
        ``"one_sided"``, the tightest, or a looser one for comparison: ``"count"`` of
        rows with small margins, ``"markov"``; ``"corollary"``, as published with
        Markov's inequality, and ``"corollary_count"``, as computed in the publication.

    Notes
    -----
    **Bound.** A margin moves by at most its Lipschitz constant times the distance, so
    only rows with smaller margins can turn (Mangold 2023, Theorem 6.4.1). In each cell
    accuracy falls by the fraction of right and fragile rows at most, and grows by that
    of wrong and fragile ones; figures are linear in accuracies, which gives an interval
    for each (Theorem 6.4.2, with exact sums and both sides apart). Intervals for the
    population have the ends of Clopper and Pearson (1934) for each fraction, and hold
    for rows drawn independently that neither model was fitted on.

    It is relative: the reference may itself be unfair. Computed on private rows, a
    certificate is private data; `private_certificate` releases one that is not.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.datasets import make_census
    >>> from tacit.fairness import certify, linear_margins
    >>> census = make_census(2000, random_state=0)
    >>> X, y, female = census.X, census.y, census.X[:, 5]
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> found = linear_margins(model, X, y)
    >>> certificate = certify(
    ...     y,
    ...     sensitive_features=female,
    ...     margins=found.margins,
    ...     lipschitz=found.lipschitz,
    ...     right=found.right,
    ...     distance=0.01,
    ... )
    >>> certificate.largest_change < 0.05
    True
    """
    # long: one field of the certificate after another
    one_of(BOUNDS, bound=bound)
    within = checked_distance(distance, failure, sampling)
    if sampling is not None and bound != "one_sided":
        raise ValueError(f"sampling is for bound='one_sided', got bound={bound!r}.")
    cells = cells_of(y_true, sensitive_features, notion, desirable)
    form = form_of(cells)
    fragile = fragile_rows(margins, lipschitz, within, len(cells.codes), right)
    low, high = changes(form, cells, fragile, margins, bound)
    values = form.value(cells.means(fragile.right))
    least = 0.0 if cells.layout.alone else -1.0
    population = _population(cells, fragile, sampling)
    return FairnessCertificate(
        notion=notion,
        groups=form.groups,
        sizes=form.group_sizes,
        values=values,
        lower=np.clip(values + low, least, 1.0),
        upper=np.clip(values + high, least, 1.0),
        change=np.maximum(-low, high),
        distance=within,
        failure=failure,
        bound=bound,
        sampling=sampling,
        population_lower=population.low if population else None,
        population_upper=population.high if population else None,
        other=getattr(distance, "other", None),
    )


def _population(cells: Cells, fragile: Fragile, sampling: float | None) -> Ends | None:
    if sampling is None:
        return None
    tallies = tallies_of(
        cells.layout,
        cells.counts(),
        cells.counts(fragile.surely_right),
        cells.counts(fragile.possibly_right),
    )
    return population_ends(tallies, sampling)


def checked_distance(
    distance: Distance, failure: float, sampling: float | None
) -> float:
    """Return the distance that holds except with ``failure`` less ``sampling``."""
    fraction(closed=False, failure=failure)
    if sampling is not None:
        fraction(closed=False, sampling=sampling)
        if not sampling < failure:
            raise ValueError(
                f"sampling must be less than failure, got {sampling!r} and {failure!r}."
            )
    found = distance(failure - (sampling or 0.0)) if callable(distance) else distance
    nonnegative(distance=found)
    return float(found)
