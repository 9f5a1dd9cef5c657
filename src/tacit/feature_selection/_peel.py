"""Peeling: repeated choice of a column by the exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from tacit._validate import PlainNumbers
from tacit.feature_selection._sums import SCALE, UNIT
from tacit.mechanisms import Exponential, Gaussian, Laplace
from tacit.mechanisms.integer_noise import ROW_LIMIT_ASSUMPTION
from tacit.mechanisms.noise import noise_assumptions
from tacit.mechanisms.selection import (
    PARTS,
    check_choice_size,
    rank_scores,
    rank_sensitivity,
)
from tacit.privacy import (
    BoundedRange,
    Budget,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    Repeated,
    calibrate,
)

__all__ = [
    "FRACTIONS",
    "LEVELS",
    "BudgetFractions",
    "Peel",
    "PeelPlan",
    "Targets",
    "centered_targets",
]

# Quantiles of the targets that give their center and width
LEVELS = (PARTS // 5, PARTS - PARTS // 5)


@dataclass(frozen=True)
class BudgetFractions:
    """Fractions of the budget for each release."""

    targets: float = 0.12
    center: float = 0.05
    spread: float = 0.1
    fits: float = 0.2

    def choices(self, *names: str) -> float:
        """Return the fraction left for the choices after those named."""
        used: list[float] = [getattr(self, name) for name in names]
        return 1.0 - sum(used)


FRACTIONS = BudgetFractions()


@dataclass(frozen=True)
class PeelPlan(PlainNumbers):
    """Plan of peeling: the noise of every release, fixed without data.

    Multipliers are those of the sums of targets and their squares, of the sums of
    features and their squares (None where these would be mostly noise and are not
    released), and of each row of the normal equations of chosen columns (None where
    columns are chosen by their correlations only). Epsilons are those of one choice of
    a column and of one quantile of the targets (None where they are labels). ``pure``
    says that noise is Laplace and the guarantee pure.
    """

    n_select: int
    neighbors: Neighbors
    pure: bool
    center_multiplier: float
    choice_epsilon: float
    quantile_epsilon: float | None = None
    spread_multiplier: float | None = None
    fit_multiplier: float | None = None
    noise: str = "grid"

    @property
    def event(self) -> Event:
        additive = LaplaceNoise if self.pure else GaussianNoise
        events: list[Event] = [additive(self.center_multiplier)]
        if self.quantile_epsilon is not None:
            events.append(Repeated(BoundedRange(self.quantile_epsilon), len(LEVELS)))
        if self.spread_multiplier is not None:
            events.append(additive(self.spread_multiplier))
        if self.fit_multiplier is not None:
            events.append(Repeated(additive(self.fit_multiplier), self.n_select - 1))
        # [peel:choice] each choice is of bounded range
        events.append(Repeated(BoundedRange(self.choice_epsilon), self.n_select))
        return Composed(tuple(events))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (ROW_LIMIT_ASSUMPTION, *noise_assumptions(self.noise))

    @property
    def rows_changed(self) -> int:
        """Rows in which neighbors differ."""
        return self.neighbors.rows_changed

    def moments(self, count: int, multiplier: float) -> Gaussian | Laplace:
        """Return the noise of sums of ``count`` values from -1 to 1 and squares."""
        # [peel:moments] a replaced value changes by up to two, or its square with it;
        # an added one also changes the number of rows
        if self.neighbors is Neighbors.REPLACE_ONE:
            size = 2.25 * count if self.pure else 2 * sqrt(count)
        else:
            size = 2 * count + 1.0 if self.pure else sqrt(2 * count + 1)
        return self._additive(multiplier, size)

    def products(self, count: int) -> Gaussian | Laplace:
        """Return the noise of sums of a square and ``count - 1`` other products."""
        # [peel:fits] squares are between zero and one
        assert self.fit_multiplier is not None
        h, others = self.rows_changed, count - 1
        size = h * others + 1.0 if self.pure else sqrt(h**2 * others + 1)
        return self._additive(self.fit_multiplier, size)

    def _additive(self, multiplier: float, size: float) -> Gaussian | Laplace:
        kind = Laplace if self.pure else Gaussian
        # more than square roots lose by rounding
        return kind(multiplier, size * UNIT * (1 + 1e-12), self.noise)

    def column(self) -> Exponential:
        """Return the mechanism that chooses a column."""
        # [peel:score] the products of a row are at most one, of either sign
        return Exponential(self.choice_epsilon, self.rows_changed * UNIT, self.noise)

    def quantile(self, level: int) -> Exponential:
        """Return the mechanism that chooses a quantile of the targets."""
        assert self.quantile_epsilon is not None
        sensitivity = rank_sensitivity(level, self.neighbors)
        return Exponential(self.quantile_epsilon, sensitivity, self.noise)


Array = NDArray[np.float64]

# Cells of the grid for quantiles of the targets, and the width to which targets are
# clipped, as a multiple of half the distance of the quantiles: 1.6 standard deviations
# of normal targets
N_CELLS = 2**9
TARGET_REACH = 1.9
# Standard deviations to which features and residuals are clipped
WIDTH = 2.5
RESIDUAL_WIDTH = 1.75
LEAST_RESIDUAL = 0.05
# Typical mean square of a feature
USUAL_SQUARE = 0.1
# Largest noise in the mean square of a feature with which it is released
MOST_SPREAD_NOISE = 0.1
# Value of that release, as a factor of the epsilon of a choice
SPREAD_WORTH = 1.5


@dataclass(frozen=True)
class Peel(PlainNumbers):
    """Choice of columns one after another, each by an exponential mechanism.

    With ``pursuit`` each choice is by the correlation with the residuals of a private
    regression on the columns chosen so far. ``labels`` says that targets are two
    labels, -1 and 1, so that their range is known.

    Notes
    -----
    **Guarantee.** (epsilon, delta)-private, and pure where delta is zero: choices
    without replacement compose as choices with replacement (Durfee and Rogers 2019,
    Section 4; Dwork, Su and Zhang 2021, Algorithm 1), each is of bounded range, and
    sums get Gaussian or Laplace noise.
    """

    n_select: int
    pursuit: bool = False
    labels: bool = False
    noise: str = "grid"

    def plan(self, budget: Budget, n_rows: int, n_features: int) -> PeelPlan:
        """Return the plan with the least noise in choices that fits the budget."""
        return _planned(self, budget, n_rows, n_features)

    def _of_kind(
        self, pure: bool, budget: Budget, n_rows: int, n_features: int
    ) -> PeelPlan:
        plan = self._with(pure, budget, spread=True)
        assert plan.spread_multiplier is not None
        # means and squares of columns are released unless mostly noise
        scale = plan.moments(n_features, plan.spread_multiplier).scale(2 * n_features)
        if scale / UNIT <= MOST_SPREAD_NOISE * n_rows:
            return plan
        return self._with(pure, budget, spread=False)

    def _with(self, pure: bool, budget: Budget, spread: bool) -> PeelPlan:
        fits = self.pursuit and self.n_select > 1
        used = ["center", *(["spread"] if spread else []), *(["fits"] if fits else [])]
        if not self.labels:
            used.append("targets")

        def made(unit: float) -> PeelPlan:
            def bounded(fraction: float, count: int) -> float:
                part = fraction / count
                return (part if pure else sqrt(8 * part)) / unit

            def additive(fraction: float, count: int = 1) -> float:
                part = fraction / count
                return unit / (part if pure else sqrt(2 * part))

            others = self.n_select - 1
            quantile = None if self.labels else bounded(FRACTIONS.targets, len(LEVELS))
            return PeelPlan(
                n_select=self.n_select,
                neighbors=budget.neighbors,
                pure=pure,
                center_multiplier=additive(FRACTIONS.center),
                choice_epsilon=bounded(FRACTIONS.choices(*used), self.n_select),
                quantile_epsilon=quantile,
                spread_multiplier=additive(FRACTIONS.spread) if spread else None,
                fit_multiplier=additive(FRACTIONS.fits, others) if fits else None,
                noise=self.noise,
            )

        return made(calibrate(lambda unit: made(unit).event, budget))

    def run(self, plan: PeelPlan, X: Any, y: Array, rng: Generator) -> tuple[int, ...]:
        """Return the indices of the chosen columns, in order.

        Features, dense or CSR, are overwritten; they and targets are from -1 to 1.
        """
        targets = centered_targets(plan, y, rng)
        columns = _integer_columns(plan, X, targets.n_rows, rng)
        rows = _Residuals(plan, columns, targets)
        chosen: list[int] = []
        free = np.arange(columns.shape[1])
        for step in range(plan.n_select):
            scores = np.abs(columns.T @ rows.residual)[free]
            position = int(free[plan.column()(scores, rng)])
            chosen.append(position)
            free = free[free != position]
            if plan.fit_multiplier is not None and step + 1 < plan.n_select:
                rows.regress(position, rng)
        return tuple(sorted(chosen))


# a model that selects first makes the same plans repeatedly, to divide its budget
@lru_cache(maxsize=256)
def _planned(peel: Peel, budget: Budget, n_rows: int, n_features: int) -> PeelPlan:
    # with few choices Laplace noise may be smaller, whatever delta is
    kinds = (True,) if budget.delta == 0 else (False, True)
    plans = [peel._of_kind(pure, budget, n_rows, n_features) for pure in kinds]
    plan = max(plans, key=_worth)
    least = min(plan.choice_epsilon, plan.quantile_epsilon or 1.0)
    check_choice_size(least, budget, "select fewer columns")
    return plan


def _worth(plan: PeelPlan) -> float:
    """Return the quality of a plan: its epsilon of a choice, and scaled columns."""
    worth = 1.0 if plan.spread_multiplier is None else SPREAD_WORTH
    return plan.choice_epsilon * worth


@dataclass(frozen=True, eq=False)
class Targets:
    """Centered targets as integers, with their released number and sum of squares."""

    values: Array
    n_rows: float
    squares: float


def centered_targets(plan: PeelPlan, y: Array, rng: Generator) -> Targets:
    """Return targets clipped to a private width, less a private mean."""
    middle, width = 0.0, 1.0
    if plan.quantile_epsilon is not None:
        positions = np.rint((y + 1) / 2 * N_CELLS).astype(np.int64)
        counts = np.bincount(positions, minlength=N_CELLS + 1)
        ends = [plan.quantile(at)(rank_scores(counts, at), rng) for at in LEVELS]
        low, high = (2 * end / N_CELLS - 1 for end in sorted(ends))
        middle = (low + high) / 2
        width = max(TARGET_REACH * (high - low) / 2, 4 / N_CELLS)
        width = min(width, 1 + abs(middle))
    clipped = np.rint(np.clip((y - middle) / width, -1.0, 1.0) * SCALE)
    sums = [clipped.sum() * SCALE, (clipped**2).sum()]
    counted = plan.neighbors is Neighbors.REPLACE_ONE
    if not counted:
        sums.append(len(y) * UNIT)
    noisy = plan.moments(1, plan.center_multiplier)(np.array(sums), rng) / UNIT
    n_rows = float(len(y)) if counted else max(1.0, noisy[2])
    mean = float(np.clip(noisy[0] / n_rows, -1.0, 1.0))
    reach = 1 + abs(mean)
    values = np.rint((clipped / SCALE - mean) / reach * SCALE)
    # rounding must not exceed the range
    np.clip(values, -SCALE, SCALE, out=values)
    square = np.clip(noisy[1] / n_rows - mean**2, LEAST_RESIDUAL**2, 1.0) / reach**2
    return Targets(values, n_rows, square * n_rows)


def _integer_columns(plan: PeelPlan, X: Any, n_rows: float, rng: Generator) -> Any:
    """Return features as integers, centered and scaled where planned."""
    stored = X.data if sparse.issparse(X) else X
    stored *= SCALE
    np.rint(stored, out=stored)
    if plan.spread_multiplier is None:
        return X
    dense = not sparse.issparse(X)
    ones, n_features = np.ones(X.shape[0]), X.shape[1]
    squares = np.einsum("ij,ij->j", X, X) if dense else X.power(2).T @ ones
    vector = np.concatenate([X.T @ ones * SCALE, squares])
    if plan.neighbors is not Neighbors.REPLACE_ONE:
        vector = np.append(vector, X.shape[0] * UNIT)
    mechanism = plan.moments(n_features, plan.spread_multiplier)
    noisy = mechanism(vector, rng) / UNIT / n_rows
    mean = np.clip(noisy[:n_features], -1.0, 1.0)
    if not dense:  # zeros stay zeros
        mean[:] = 0.0
    square = noisy[n_features : 2 * n_features] - mean**2
    noise = mechanism.scale(vector.size) / UNIT / n_rows
    spread = WIDTH * np.sqrt(np.maximum(square, 0.0) + noise)
    spread = np.minimum(spread, 1 + np.abs(mean)) * SCALE
    if dense:
        X -= mean * SCALE
        X /= spread
    else:
        X.data /= spread[X.indices]
    np.clip(stored, -1.0, 1.0, out=stored)
    stored *= SCALE
    np.rint(stored, out=stored)
    return X


class _Residuals:
    """Residuals of the rows after a regression on the columns chosen so far."""

    def __init__(self, plan: PeelPlan, columns: Any, targets: Targets) -> None:
        self._plan, self._columns, self._targets = plan, columns, targets
        self.residual = targets.values
        self._private_chosen: list[Array] = []
        self._gram = np.zeros((0, 0))
        self._products = np.zeros(0)

    def regress(self, position: int, rng: Generator) -> None:
        """Add a column, and update the residuals by the private regression on all."""
        column = self._columns[:, [position]]
        column = np.asarray(column.todense() if sparse.issparse(column) else column)
        self._private_chosen.append(column.ravel())
        others = [*self._private_chosen, self._targets.values]
        sums = np.array([self._private_chosen[-1] @ other for other in others])
        mechanism = self._plan.products(len(sums))
        noisy = mechanism(sums, rng) / UNIT
        self._gram = np.pad(self._gram, (0, 1))
        self._gram[-1, :] = self._gram[:, -1] = noisy[:-1]
        self._products = np.append(self._products, noisy[-1])
        weights = self._weights(mechanism.scale(len(sums)) / UNIT)
        left = self._targets.values / SCALE
        # entry by entry, so that a row's residual does not depend on its position
        for weight, values in zip(weights, self._private_chosen, strict=True):
            left = left - weight * (values / SCALE)
        fit = weights @ self._gram @ weights - 2 * weights @ self._products
        square = max(float(self._targets.squares + fit) / self._targets.n_rows, 0.0)
        width = min(1.0, max(LEAST_RESIDUAL, RESIDUAL_WIDTH * sqrt(square)))
        self.residual = np.rint(np.clip(left / width, -1.0, 1.0) * SCALE)

    def _weights(self, noise: float) -> Array:
        """Return weights from noisy normal equations, with a ridge of their noise."""
        values, vectors = np.linalg.eigh(self._gram)
        # a much larger ridge where the equations are mostly noise: weights go to zero
        part = noise / (USUAL_SQUARE * self._targets.n_rows)
        regularized = np.maximum(values, 0.0) + noise * sqrt(len(values)) * (1 + part)
        return np.asarray(vectors @ (vectors.T @ self._products / regularized))
