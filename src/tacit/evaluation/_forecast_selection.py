"""Forecasts of the rows that it takes to find the relevant columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, comb, exp, inf, log, sqrt
from typing import Any

from tacit._validate import at_least, fraction, one_of, positive
from tacit.exceptions import PlanError
from tacit.feature_selection import LassoStabilitySelector
from tacit.feature_selection._lasso_distance import safe_distance
from tacit.feature_selection._peel import RESIDUAL_WIDTH, Peel
from tacit.mechanisms import StableRelease
from tacit.privacy import Budget, Neighbors
from tacit.stability import blocks_needed
from tacit.stability._subsamples import tight_rate
from tacit.stability._votes import epsilon_of_choice, votes_needed

__all__ = ["SUPPORT_METHODS", "rows_for_support"]

# More rows than anyone has
NO_MORE_ROWS = 2**40
# Fraction of the blocks that must find the columns
AGREEMENT = 0.75
# The sum of absolute weights that is allowed, over the sum there is
BOUND = 1.5
# Half of the public range of the target, in standard deviations of the target
RANGE_REACH = 4.0


@dataclass(frozen=True)
class _Setting:
    """Columns of equal standard deviation, some of which have weights of one size."""

    n_features: int
    n_relevant: int
    budget: Budget
    signal: float
    noise: float
    spread: float
    failure: float
    coef_bound: float

    @property
    def effect(self) -> float:
        """Standard deviation of the contribution of a relevant column."""
        return self.signal * self.spread

    @property
    def std(self) -> float:
        """Standard deviation of the target."""
        return sqrt(self.n_relevant * self.effect**2 + self.noise**2)

    @property
    def others(self) -> int:
        """Number of irrelevant columns, at least one."""
        return max(1, self.n_features - self.n_relevant)

    @property
    def largest_of_others(self) -> float:
        """Largest standardized correlation among the irrelevant columns."""
        return sqrt(2 * log(self.others + 1))

    @property
    def rows_changed(self) -> int:
        return self.budget.neighbors.rows_changed


def rows_for_support(
    n_features: int,
    n_relevant: int,
    *,
    method: str,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    signal: float = 0.5,
    noise: float = 0.25,
    spread: float = 0.5,
    neighbors: str = "replace_one",
    failure: float = 0.1,
    coef_bound: float = 1.5,
) -> int:
    """Return the rows with which a selector should find exactly the relevant columns.

    Features are taken to be independent, of mean zero and the same standard deviation,
    and the target to be the sum of ``n_relevant`` features with weights of
    plus or minus ``signal`` and normal noise. Correlated features take more.

    Parameters
    ----------
    n_features
        Number of columns.
    n_relevant
        Number of relevant columns, all of which are to be found.
    method
        ``"lasso"`` for the lasso without privacy; ``"blocks"``, ``"subsamples"`` or
        ``"features"`` for `~tacit.feature_selection.BlockVoteSelector`;
        ``"correlation"`` or ``"pursuit"`` for
        `~tacit.feature_selection.PeelingSelector`; ``"stability"`` for the lasso with
        a test of its stability; ``"exponential"`` for the exponential mechanism on all
        sets of columns.
    epsilon
        Privacy budget.
    delta
        Probability with which the bound may fail; 0.0 for pure privacy, where the
        method has it.
    signal
        Absolute weight of a relevant column, for features from -1 to 1.
    noise
        Standard deviation of the noise in the target, in the same unit.
    spread
        Standard deviation of a feature, as a fraction of half of its public range.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    failure
        Probability with which a column may be missed.
    coef_bound
        That of `~tacit.feature_selection.LassoStabilitySelector`, for ``"stability"``:
        a bound on the sum of absolute weights in units of half the range of the target.

    Notes
    -----
    **Bound.** None: these are the leading terms of the theorems with the constants of
    this library, a guide to orders of magnitude. The lasso takes about ``2 r log p``
    rows with ``r = s + (noise / (signal spread))^2`` (Wainwright 2009, Theorem 3).
    Votes take that many a block, times the blocks (Thakurta 2013, Corollary 6.37). The
    lasso must reach the distance that is released, in each of its tests, at the
    selector's default penalty; a penalty for the actual noise takes fewer rows. The
    public range of the target is taken to reach four standard deviations to both sides;
    a wider one takes more rows. The others follow from a union bound on the exponential
    mechanism: over columns, and over sets that lack some of the columns.

    Examples
    --------
    >>> from tacit.evaluation import rows_for_support
    >>> least = rows_for_support(1000, 5, method="pursuit", epsilon=1.0)
    >>> 500 < least < 10_000
    True
    """
    at_least(1, n_features=n_features, n_relevant=n_relevant)
    if n_relevant > n_features:
        raise ValueError(
            f"n_relevant must be at most n_features={n_features}, got {n_relevant!r}."
        )
    one_of(SUPPORT_METHODS, method=method)
    positive(signal=signal, noise=noise, spread=spread, coef_bound=coef_bound)
    fraction(failure=failure, closed=False)
    if spread > 1:
        raise ValueError(f"spread must be at most 1, got {spread!r}.")
    setting = _Setting(
        int(n_features),
        int(n_relevant),
        Budget(epsilon, delta, Neighbors.of(neighbors)),
        float(signal),
        float(noise),
        float(spread),
        float(failure),
        float(coef_bound),
    )
    return _METHODS[method](setting)


def _lasso(at: _Setting) -> int:
    """Return the rows with which the lasso path starts with the right columns."""
    weight = at.n_relevant + (at.noise / at.effect) ** 2
    return at.n_relevant + ceil(2 * weight * log(at.others + 1)) + 1


def _blocks(at: _Setting) -> int:
    budget = _with_delta(at)
    failure = at.failure / 2
    blocks = blocks_needed(
        budget.epsilon, budget.delta, agreement=AGREEMENT, failure=failure
    )
    return blocks * _lasso(at)


def _subsamples(at: _Setting) -> int:
    budget = _with_delta(at)
    return ceil(_lasso(at) / tight_rate(budget.epsilon, budget.delta))


def _features(at: _Setting) -> int:
    count = at.n_relevant
    epsilon = epsilon_of_choice(at.budget, count)
    return votes_needed(epsilon, count, at.n_features) * _lasso(at)


def _peeling(at: _Setting, pursuit: bool) -> int:
    solver = Peel(at.n_relevant, pursuit=pursuit)

    def found(n_rows: int) -> bool:
        plan = solver.plan(at.budget, n_rows, at.n_features)
        margin = log(at.n_features * at.n_relevant / at.failure)
        for left in range(at.n_relevant, 0, -1):
            rest = left if pursuit else at.n_relevant
            std = sqrt(rest * at.effect**2 + at.noise**2)
            # targets are clipped at RESIDUAL_WIDTH standard deviations, the unit
            unit = RESIDUAL_WIDTH * std
            lead = n_rows * at.spread * at.effect / unit
            lead -= at.largest_of_others * sqrt(n_rows) * at.spread / RESIDUAL_WIDTH
            # any remaining column will do, so that the last choice is the hardest,
            # unless less of the target is left by then
            noise = 2 * at.rows_changed / plan.choice_epsilon
            noise *= max(1.0, margin - log(left))
            if lead < noise:
                return False
        return True

    return _least(found, _lasso(at))


def _stability(at: _Setting) -> int:
    """Return the rows at which all tests of the lasso pass with room for the noise."""
    # long: one formula, whose terms all depend on the same setting
    budget = _with_delta(at)
    release = StableRelease(budget.epsilon, budget.delta)
    needed = release.distance_needed(at.failure / 2)
    s = at.n_relevant
    scale = RANGE_REACH * at.std
    weight, error = at.signal / scale, at.noise / scale
    norm = s * weight
    if norm >= at.coef_bound:
        raise PlanError(
            f"coef_bound must be above {norm:.3g}, which is what the weights add up to "
            "in units of half the range of the target, got "
            f"{at.coef_bound!r}; LassoStabilitySelector has no answer beyond it."
        )
    kind: Any = LassoStabilitySelector  # which has no types
    selector = kind(budget.epsilon, n_features_to_select=s, coef_bound=at.coef_bound)
    # the largest error among the relevant columns, in standard deviations
    worst = sqrt(2 * log(2 * s / at.failure))

    def found(n: int) -> bool:
        try:
            facts = selector.plan_selection(budget, n, at.n_features).facts
        except PlanError:  # no column exceeds the penalty
            return False
        least = n * at.spread**2 * max(0.0, 1 - sqrt((s + 1) / n)) ** 2
        # gradients outside the support come from noise and from the penalty's bias
        steepest = error * at.spread * sqrt(n) + facts.penalty * sqrt(s / n)
        outside = (facts.penalty - at.largest_of_others * steepest) / facts.slack
        # the penalty shrinks every weight, and noise some
        lost = facts.penalty / (n * at.spread**2) * (1 + worst * sqrt(s / n))
        lost += worst * error / (at.spread * sqrt(n))
        inside = facts.changes_inside(
            s + 1,
            s,
            least=least,
            coherence=sqrt(s / n) * (sqrt(s) + at.largest_of_others),
            norm=norm,
            smallest=weight - lost,
        )
        return safe_distance(min(outside, inside)) >= needed

    return _least(found, _lasso(at))


def _exponential(at: _Setting) -> int:
    """Return the rows at which the right set outweighs all others together."""
    s, scale = at.n_relevant, RANGE_REACH * at.std
    bound = BOUND * s * at.signal / scale
    loss = (1 + bound) ** 2 / 2
    gap = (at.effect / scale) ** 2 / 2
    monotone = at.budget.neighbors is Neighbors.ADD_OR_REMOVE_ONE
    rate = at.budget.epsilon / (loss if monotone else 2 * loss)

    def found(n: int) -> bool:
        # sets by how many of the columns they lack
        total = 0.0
        for lack in range(1, min(s, at.n_features - s) + 1):
            sets = log(comb(s, lack)) + log(comb(at.n_features - s, lack))
            exponent = sets - rate * n * lack * gap
            total += inf if exponent > 0 else exp(exponent)
        return total <= at.failure

    return _least(found, _lasso(at))


def _with_delta(at: _Setting) -> Budget:
    if at.budget.delta == 0:
        raise PlanError(
            "delta must be above 0 for this method, which may give no answer; give a "
            "delta, or use 'features', 'correlation', 'pursuit' or 'exponential'."
        )
    return at.budget


def _least(found: Callable[[int], bool], start: int) -> int:
    """Return the least number of rows from ``start`` on, within a hundredth."""
    high = max(2, start)
    if found(high):
        return high
    while not found(high):
        high *= 2
        if high > NO_MORE_ROWS:
            raise PlanError("No number of rows suffices; raise epsilon or signal.")
    low = high // 2
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


_METHODS: dict[str, Callable[[_Setting], int]] = {
    "lasso": _lasso,
    "blocks": _blocks,
    "subsamples": _subsamples,
    "features": _features,
    "correlation": lambda at: _peeling(at, pursuit=False),
    "pursuit": lambda at: _peeling(at, pursuit=True),
    "stability": _stability,
    "exponential": _exponential,
}
SUPPORT_METHODS = tuple(_METHODS)
